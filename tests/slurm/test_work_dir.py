"""A job's WorkDir: the site notice stands there where it is the job's alone, and two pilots there are told apart."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drainwise.pilotad.site_ad import SiteAd, parse_site_ad
from drainwise.slurm.node_agent.user_task import WorkDirTask, bring_to_work_dir
from drainwise.slurm.node_agent.work_dirs import work_dirs_in
from made_up_node import public_directory

from .agent_host import ALICE, BOB, AgentHost, as_user

LOOK_PERIOD, LONGEST, LEFT_OVER = 300, 86_400, 3600

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the agent becomes each job's user")


@pytest.fixture
def host() -> Iterator[AgentHost]:
    with public_directory() as base:
        yield AgentHost(base)


def home_of(host: AgentHost, name: str = "home", uid: int = ALICE) -> Path:
    """A directory of a user's own."""
    path = Path(host.base, name)
    path.mkdir()
    os.chown(path, uid, uid)
    return path


def ordered(host: AgentHost, number: int) -> int:
    """Shorten a job's lease; its new end."""
    end = host.now + 601
    host.slurm.set(number, EndTime=end, TimeLimit="00:12:00")
    return end


def notice_in(directory: Path) -> SiteAd | None:
    path = directory / ".site.ad"
    return parse_site_ad(path.read_bytes())[0] if path.exists() else None


def test_another_runs_notice_stays_when_a_job_ends(host: AgentHost) -> None:
    """Another host may have brought it, of which this one knows nothing."""
    home = home_of(host)
    host.start(17, work_dir=bytes(home))
    host.round()
    ordered(host, 17)
    host.round()
    notice = home / ".site.ad"
    notice.write_text(notice.read_text().replace(f"17@{host.now - 100}", "18@1795249000"))
    host.tree(17).rename(f"{host.base}/gone")
    host.slurm.end(17)
    host.round()
    found = notice_in(home)
    assert found is not None and found.run == "18@1795249000"


def test_a_pilot_that_knows_the_paper_alone_is_told_in_its_work_dir(host: AgentHost) -> None:
    """As the job's user, by name of the run; nothing before there is an order, and nothing after it."""
    home = home_of(host)
    host.start(17, work_dir=bytes(home))
    host.round()
    assert os.listdir(home) == [] and host.slurm.questions() == []
    end = ordered(host, 17)
    host.round()
    assert notice_in(home) == SiteAd(True, end, f"17@{host.now - 100}")
    status = (home / ".site.ad").stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode), os.listdir(home)) == (ALICE, 0o644, [".site.ad"])
    assert host.slurm.questions() == [str(ALICE)]
    host.round()
    assert host.slurm.questions() == [str(ALICE)], "what stands is not asked for in each round"
    host.slurm.set(17, EndTime=host.now + 3500, TimeLimit="01:00:00")
    host.slurm.mark(17, host.now + 3500)
    host.round()
    assert os.listdir(home) == []
    assert host.said == []


@pytest.mark.parametrize("another_agent", [False, True])
def test_the_notice_goes_with_the_job(host: AgentHost, another_agent: bool) -> None:
    """Also when the agent has been started again meanwhile, and before a new job's tasks may begin."""
    home = home_of(host)
    host.start(17, work_dir=bytes(home))
    host.round()
    ordered(host, 17)
    host.round()
    assert notice_in(home) is not None
    host.tree(17).rename(f"{host.base}/gone")
    host.slurm.end(17)
    if another_agent:
        host.restart()
    host.start(18, work_dir=bytes(home))
    host.agent.greet(host.now)
    assert (host.tree(18) / "complete").exists()
    assert os.listdir(home) == []
    assert [name for name in os.listdir(host.tree(18).parent) if "work_dir" in name] == []


@pytest.mark.daemons
def test_two_jobs_in_one_directory_hear_in_their_own_alone(host: AgentHost) -> None:
    """On one node: nothing there, whoever came first; each hears in its $JOBSTATUS."""
    home = home_of(host)
    host.start(17, work_dir=bytes(home))
    host.round()
    end = ordered(host, 17)
    host.round()
    assert notice_in(home) is not None
    host.start(18, work_dir=bytes(home))
    host.agent.greet(host.now)
    assert notice_in(home) is None, "before the second job's tasks begin"
    host.round()
    later = ordered(host, 18)
    host.now += LOOK_PERIOD
    host.round()
    assert os.listdir(home) == []
    assert [host.site_ad(number).count(str(when)) for number, when in ((17, end), (18, later))] == [1, 1]


@pytest.mark.daemons
def test_a_job_on_another_node_counts(host: AgentHost) -> None:
    """Only slurmctld knows of it. When it comes later, the notice goes at the next look."""
    home = home_of(host)
    host.start(17, work_dir=bytes(home))
    host.round()
    ordered(host, 17)
    elsewhere = {"WorkDir": str(home), "NodeList": "node9"}
    host.slurm.job(99, ALICE, host.now, host.now + 3600, elsewhere)
    host.round()
    assert notice_in(home) is None and host.site_ad(17) != ""
    host.slurm.end(99)
    host.now += LOOK_PERIOD
    host.round()
    assert notice_in(home) is not None
    host.slurm.job(98, BOB, host.now, host.now + 3600, elsewhere)
    host.now += LOOK_PERIOD
    host.round()
    assert notice_in(home) is not None, "bob cannot silence alice by her directory's name"
    host.slurm.job(99, ALICE, host.now, host.now + 3600, elsewhere)
    host.now += LOOK_PERIOD
    host.round()
    assert notice_in(home) is None


def test_one_directory_by_two_names_is_one(host: AgentHost) -> None:
    """A link in the path of one of them."""
    home = home_of(host)
    os.symlink(host.base, f"{host.base}/link")
    host.start(17, work_dir=bytes(home))
    host.start(18, work_dir=f"{host.base}/link/home".encode())
    host.round()
    ordered(host, 17)
    host.round()
    assert notice_in(home) is None


def fifo(home: Path) -> None:
    os.mkfifo(home / ".site.ad")


def own_words(home: Path) -> None:
    (home / ".site.ad").write_text("VACATE_DESIRED = False\n")


def link(home: Path) -> None:
    (home / ".site.ad").symlink_to("victim")
    (home / "victim").write_text("mine\n")


def directory(home: Path) -> None:
    (home / ".site.ad").mkdir()


def large(home: Path) -> None:
    (home / ".site.ad").write_bytes(b'SITE_AD_RUN = "1@1795000000"\n' * 1000)


def hard_link(home: Path) -> None:
    (home / "victim").write_text('VACATE_DESIRED = True\nSITE_AD_RUN = "1@1795000000"\n')
    (home / ".site.ad").hardlink_to(home / "victim")


@pytest.mark.daemons
@pytest.mark.parametrize("make", [fifo, own_words, link, directory, large, hard_link])
def test_what_is_not_ours_is_left_alone(host: AgentHost, make: Callable[[Path], None]) -> None:
    """It is neither followed nor waited for, neither replaced nor removed; one line says so, and $JOBSTATUS has it."""
    home = home_of(host)
    as_user(ALICE, lambda: make(home))
    before = {path: (path.lstat().st_ino, path.lstat().st_size, path.lstat().st_mode) for path in home.iterdir()}
    host.start(17, work_dir=bytes(home))
    host.round()
    ordered(host, 17)
    for _ in range(2):
        host.now += LOOK_PERIOD
        host.round()
    assert {
        path: (path.lstat().st_ino, path.lstat().st_size, path.lstat().st_mode) for path in home.iterdir()
    } == before
    assert [line.split(" (")[0] for line in host.said] == ["job 17: WorkDir: .site.ad there is somebody's own"], (
        host.said
    )
    assert "VACATE_DESIRED = True" in host.site_ad(17)
    host.tree(17).rename(f"{host.base}/gone")
    host.agent.greet(host.now)
    assert {
        path: (path.lstat().st_ino, path.lstat().st_size, path.lstat().st_mode) for path in home.iterdir()
    } == before


@pytest.mark.daemons
def test_a_notice_that_cannot_be_removed_is_tried_for_a_day_after_the_jobs_end(host: AgentHost) -> None:
    """Until then it is written down, for an agent that starts later too."""
    home = home_of(host)
    host.start(17, work_dir=bytes(home))
    host.round()
    ordered(host, 17)
    host.round()
    as_user(ALICE, lambda: home.chmod(0o500))
    node = host.tree(17).parent
    host.tree(17).rename(f"{host.base}/gone")
    host.slurm.end(17)

    def known() -> list[str]:
        host.round()
        return [name for name in os.listdir(node) if "work_dir" in name]

    assert known() == [".work_dir.17"]
    host.now += LONGEST
    assert known() == [".work_dir.17"]
    host.now += 1
    assert known() == []


def shared_tmp(host: AgentHost) -> str:
    path = Path(host.base, "tmp")
    path.mkdir()
    path.chmod(0o1777)
    return str(path)


def of_bob(host: AgentHost) -> str:
    path = home_of(host, "bob", BOB)
    path.chmod(0o777)
    return str(path)


def a_link(host: AgentHost) -> str:
    home_of(host, "target")
    os.symlink("target", f"{host.base}/link")
    return f"{host.base}/link"


@pytest.mark.daemons
@pytest.mark.parametrize("place", [shared_tmp, of_bob, a_link, lambda _: "/", lambda _: "/tmp", lambda _: "gone"])
def test_a_directory_that_is_not_the_users_own_is_left_alone(
    host: AgentHost, place: Callable[[AgentHost], str]
) -> None:
    """Other users' pilots may look there; a link may lead anywhere. Nothing is said: it is so at many sites."""
    path = place(host)
    host.start(17, work_dir=path.encode())
    host.round()
    ordered(host, 17)
    host.round()
    assert not os.path.lexists(os.path.join(path, ".site.ad"))
    assert not any(name.startswith(".site.ad") for name in os.listdir(path if os.path.isdir(path) else "/"))
    assert host.said == [] and host.site_ad(17) != ""


def test_roots_jobs_have_no_work_dir_of_their_own(host: AgentHost) -> None:
    """`/` and `/tmp` are root's, and everybody's."""
    root = Path(host.base, "rootdir")
    root.mkdir()
    host.start(17, 0, work_dir=bytes(root))
    host.round()
    ordered(host, 17)
    host.round()
    assert os.listdir(root) == [] and host.site_ad(17) != ""


@pytest.mark.daemons  # twenty thousand files take their time
def test_a_huge_directory_costs_nothing(host: AgentHost) -> None:
    """It is never listed: in this one the user may not."""
    home = home_of(host)
    home.chmod(0o300)
    host.start(17, work_dir=bytes(home))
    host.round()
    ordered(host, 17)
    host.round()
    assert notice_in(home) is not None


def test_a_full_directory_leaves_nothing_half(host: AgentHost) -> None:
    """Nothing can be written: one line, no file, and no record once the job has gone."""
    home = home_of(host)
    os.chmod(home, 0o555)
    host.start(17, work_dir=bytes(home))
    host.round()
    ordered(host, 17)
    host.round()
    assert os.listdir(home) == []
    assert host.said == ["job 17: WorkDir: .site.ad: permission denied"]
    host.tree(17).rename(f"{host.base}/gone")
    host.agent.greet(host.now)
    assert [name for name in os.listdir(f"{host.runtime}/node1") if "work_dir" in name] == []


def test_one_who_was_stopped_between_two_steps_leaves_nothing(tmp_path: Path) -> None:
    """The new file had both names already."""
    run, temporary = "17@1795000000", ".site.ad.17.node1"
    (tmp_path / temporary).write_text(f'VACATE_DESIRED = True\nSITE_AD_RUN = "{run}"\n')
    (tmp_path / ".site.ad").hardlink_to(tmp_path / temporary)
    ad = SiteAd(True, 1_795_000_600)
    task = WorkDirTask(bytes(tmp_path), os.geteuid(), run, temporary, ad)
    assert bring_to_work_dir(task) == (True, "")
    assert os.listdir(tmp_path) == [".site.ad"]
    assert notice_in(tmp_path) == SiteAd(True, 1_795_000_600, run)


@pytest.mark.parametrize("before", [None, "17@1795000000"])
def test_one_who_was_stopped_before_the_first_step_is_in_nobodys_way(tmp_path: Path, before: str | None) -> None:
    """The new file had but its own name yet, beside no notice or an earlier one of ours."""
    run, temporary = "17@1795000000", ".site.ad.17.node1"
    (tmp_path / temporary).write_text("VACATE_DESIRED = True\n")
    if before is not None:
        (tmp_path / ".site.ad").write_text(f'VACATE_DESIRED = True\nSITE_AD_RUN = "{before}"\n')
    task = WorkDirTask(bytes(tmp_path), os.geteuid(), run, temporary, SiteAd(True, 1_795_000_600))
    assert bring_to_work_dir(task) == (True, "")
    assert os.listdir(tmp_path) == [".site.ad"]
    assert notice_in(tmp_path) == SiteAd(True, 1_795_000_600, run)


def test_while_nobody_knows_whose_a_directory_is_what_stands_there_stands(host: AgentHost) -> None:
    """slurmctld does not say which jobs have it: a notice comes when it does, and nothing is wrong with the job."""
    home, squeue = home_of(host), Path(host.slurm.bin_dir, "squeue")
    host.start(17, work_dir=bytes(home))
    host.round()
    end, program = ordered(host, 17), squeue.read_text()
    squeue.write_text("#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1\n")
    host.round()
    assert os.listdir(home) == [] and "VACATE_DESIRED = True" in host.site_ad(17)
    squeue.write_text(program)
    host.round()
    assert notice_in(home) == SiteAd(True, end, f"17@{host.now - 100}")
    assert not any("WorkDir" in line for line in host.said)


def test_what_a_lost_node_left_is_removed_by_the_next_one(host: AgentHost) -> None:
    """Where a pilot is looked for in its WorkDir; long after the deadline, and never a file that names no run."""
    home, other = home_of(host), home_of(host, "other")
    over = host.now - LEFT_OVER - 1
    text = f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {over}\n"
    as_user(ALICE, lambda: (home / ".site.ad").write_text(f'{text}SITE_AD_RUN = "9@1795000000"\n'))
    as_user(ALICE, lambda: (other / ".site.ad").write_text(text))
    host.start(17, work_dir=bytes(home))
    host.start(18, work_dir=bytes(other))
    host.round()
    assert os.listdir(home) == [] and os.listdir(other) == [".site.ad"]


def report_in(home: Path, when: int, used: int = 512) -> None:
    def write() -> None:
        (home / ".pilot.ad").write_text(f"USED_FRACTION1k = {used}\nLAST_EXP_JOB_END = {when + 500}\n")
        os.utime(home / ".pilot.ad", (when, when))

    as_user(ALICE, write)


@pytest.mark.daemons
def test_a_report_in_a_directory_of_two_nodes_jobs_is_nobodys(host: AgentHost) -> None:
    """A job on another node has the same directory: whose report it is nobody can tell, and nothing is published."""
    home = home_of(host)
    host.start(17, work_dir=bytes(home))
    host.slurm.job(99, ALICE, host.now, host.now + 3600, {"WorkDir": str(home), "NodeList": "node9"})
    report_in(home, host.now)
    host.round()
    assert host.slurm.comment(17) == ""
    assert host.said == ["job 17: WorkDir: .pilot.ad: another job has the same directory"]
    host.slurm.end(99)
    host.now += LOOK_PERIOD
    report_in(home, host.now)
    host.round()
    published = host.published(17)
    assert published is not None and published.report.used_cpu == 4.0
    asked = len(host.slurm.questions())
    host.now += 30
    host.round()
    assert len(host.slurm.questions()) == asked, "a report that has not changed asks nothing"


@pytest.mark.daemons  # it waits for what hangs
def test_a_work_dir_that_hangs_costs_one_round_two_seconds(host: AgentHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an NFS server that does not answer: the child is ended, the others hear, and it is tried again later."""
    from drainwise.slurm.node_agent import work_dirs

    home, other = home_of(host), home_of(host, "bob", BOB)
    asked = os.memfd_create("asked")

    def step(task: WorkDirTask) -> tuple[bool, str]:
        if task.uid == ALICE:
            os.write(asked, b"x")  # in a child
            signal.pause()
        return bring_to_work_dir(task)

    monkeypatch.setattr(work_dirs, "bring_to_work_dir", step)
    host.start(17, work_dir=bytes(home))
    host.start(18, BOB, work_dir=bytes(other))
    host.round()
    ordered(host, 17)
    ordered(host, 18)
    host.round()
    assert notice_in(other) is not None and host.site_ad(17) != ""
    assert host.said == ["job 17: WorkDir: a file of the user's does not answer in time"]
    host.now += 5
    host.round()
    assert os.fstat(asked).st_size == 1, "not in the next round"
    os.close(asked)


def test_names_of_any_kind_in_slurmctlds_answer() -> None:
    """A line end in a name makes no other user's job, and no crash."""
    answer = b"17|/home/alice|\n18|/a\n19|/b|\n|\n20|relative|\n21|/x|y|\n"
    assert work_dirs_in(answer) == {"17": b"/home/alice", "19": b"/b", "21": b"/x|y"}
