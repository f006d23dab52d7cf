"""What every batch system is put through beside the launcher: one function each, which raises Unexpected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from launch_on_site import BUCKETS, JOBS, USER, LaunchOnSite, begun_wrongly, chains, handed_over_wrongly, job

MOST_QUEUED = 8
MOST_WRONG = 0.1


class Unexpected(AssertionError):  # noqa: N818 - what a test fails with
    """Something came out otherwise than promised."""


def expect(truth: object, what: str) -> None:
    """Raise Unexpected with what is wrong unless it is true."""
    if not truth:
        raise Unexpected(what)


def two_hundred(launcher: LaunchOnSite) -> None:
    """200 jobs with dependencies in 5 buckets, beside one that fails and one that somebody ends by hand."""
    jobs, pressures = chains()
    extra = [job("fails", ["sh", "-c", "echo oh; exit 3"]), job("ended", ["sleep", "300"], expected=1e6)]
    extra.append(job("never", ["true"], after=["fails"]))
    launched = launcher.launch("demo", [*extra, *jobs], n_max_queued_jobs=MOST_QUEUED)
    launcher.system.end(launcher.number("ended", waiting=False))
    code, ended, said = launched.end(lambda: launcher.system.queued(waiting=True))
    states = Counter(str(one["state"]) for name, one in ended.items() if name.startswith("m"))
    expect(states == {"done": JOBS}, f"{states} of {JOBS} jobs: {said}")
    expect(code == 1, f"exit code {code}")
    expect(ended["fails"]["code"] == 3, f"{ended['fails']}")
    expect(ended["ended"]["state"] == "failed" and ended["ended"]["code"], f"{ended['ended']}")
    expect(ended["never"]["state"] not in {"done", "failed"}, f"{ended['never']}")
    most = {bucket: launched.waiting[f"m{bucket}"] for bucket in BUCKETS}
    expect(all(1 <= count <= MOST_QUEUED for count in most.values()), f"seen waiting: {most}")
    launcher.done(JOBS + 2)
    runs = launcher.system.accounted()
    again = [name for name, count in Counter(name for name, _record in runs).items() if count > 1]
    expect(not again, f"submitted more than once: {again}")
    faults = handed_over_wrongly(dict(runs), pressures)
    expect(not faults, f"handed over in the wrong order: {faults[:10]}")
    share = begun_wrongly(dict(runs), pressures, launcher.system.slack)
    expect(share <= MOST_WRONG, f"{share:.0%} of all pairs began in the wrong order")


def vanished(
    launcher: LaunchOnSite, resource: str, prepare: Callable[[], object], lose: Callable[[str], object]
) -> None:
    """One job waits for a resource; `lose` has the batch system forget the job, and gives. It is started once more."""
    prepare()
    launched = launcher.launch("lost", [{**job("lost", ["true"]), "resources": {resource: 1}}])
    lose(launcher.number("lost", waiting=True))
    code, ended, said = launched.end()
    expect(code == 0 and ended["lost"]["state"] == "done", f"code {code}: {ended}: {said}")
    expect(said.count("vanished") == 1 and "started once more" in said, said)


def away(launcher: LaunchOnSite, name: str, leave: Callable[[], object], come_back: Callable[[], object]) -> None:
    """The daemon goes away while jobs run and others wait; jobs end, it comes back, and each job has run once."""
    before = len(launcher.system.accounted())
    command = ["sh", "-c", f"until test -e ~/{name}-left; do sleep 0.2; done; exec sleep 1"]
    jobs = [job(f"{name}-{place}", command, after=[f"{name}-{place - 4}"] * (place >= 4)) for place in range(8)]
    launched = launcher.launch(name, jobs, command_seconds=3)
    launcher.number(f"{name}-0", waiting=False)
    leave()
    launcher.system.site.run(["touch", f"/home/{USER}/{name}-left"], user=USER)
    come_back()
    code, ended, said = launched.end()
    expect(code == 0, f"code {code}: {said}: {ended}")
    launcher.done(before + len(jobs))
    runs = Counter(one for one, _record in launcher.system.accounted() if one.startswith(f"{name}-"))
    expect(runs == Counter(str(one["name"]) for one in jobs), f"{runs}")


def hangs(launcher: LaunchOnSite, daemon: int, question: list[str]) -> None:
    """The daemon with this number takes connections and answers none, for longer than a command may take."""
    site = launcher.system.site

    def come_back() -> None:
        asked = site.run(["timeout", "4", *question], check=False)
        expect(asked.returncode == 124, f"{question} ended with {asked.returncode} before a daemon that is stopped")
        site.run(["kill", "-CONT", str(daemon)])

    away(launcher, "hangs", lambda: site.run(["kill", "-STOP", str(daemon)]), come_back)


def launcher_killed(launcher: LaunchOnSite) -> None:
    """The launcher dies by SIGKILL; the next one takes up what runs, and no job has run twice."""
    before = len(launcher.system.accounted())
    jobs = [job(f"taken-{place}", ["sleep", "2"], after=[f"taken-{place - 3}"] * (place >= 3)) for place in range(6)]
    launcher.launch("taken", jobs)
    launcher.number("taken-0", waiting=False)
    launcher.signal_launcher("taken", "KILL")
    code, ended, said = launcher.launch("taken", jobs).end()
    expect(code == 0, f"code {code}: {said}: {ended}")
    launcher.done(before + len(jobs))
    runs = Counter(name for name, _record in launcher.system.accounted() if name.startswith("taken-"))
    expect(runs == Counter(str(one["name"]) for one in jobs), f"{runs}")


def interrupted(launcher: LaunchOnSite) -> None:
    """Ctrl-C ends what runs and what waits in the batch system; run again, the launcher goes on."""
    command = ["sh", "-c", "test -e ~/go-on || exec sleep 300"]
    jobs = [job("before", ["true"]), *(job(f"stop-{place}", command, after=["before"]) for place in range(4))]
    launched = launcher.launch("stop", jobs)
    for place in range(4):
        launcher.number(f"stop-{place}", waiting=False)
    launcher.signal_launcher("stop", "INT")
    code, _ended, said = launched.end()
    expect(code == 130, f"code {code}: {said}")
    left = {**launcher.system.queued(waiting=True), **launcher.system.queued(waiting=False)}
    expect(not left, f"still there: {left}: {said}")
    launcher.system.site.run(["touch", f"/home/{USER}/go-on"], user=USER)
    code, ended, said = launcher.launch("stop", jobs).end()
    expect(code == 0 and len(ended) == 5, f"code {code}: {said}: {ended}")
    launcher.done(1)
    runs = Counter(name for name, _record in launcher.system.accounted())
    expect(runs["before"] == 1, f"what was done was done again: {runs}")


def reprioritised(launcher: LaunchOnSite, resources: dict[str, object], unblock: Callable[[], object]) -> None:
    """Jobs that wait for the same room, one at a time, get new priorities: they begin in the new order."""
    order = launcher.by_hand(resources)
    before = len(launcher.system.accounted())
    unblock()
    launcher.done(before + len(order), 60.0)
    began = {name: record.began for name, record in launcher.system.accounted() if name in order}
    expect(sorted(order, key=lambda name: began[name]) == order, f"meant: {order}; begun: {began}")
