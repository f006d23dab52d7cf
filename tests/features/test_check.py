"""Every rule of the specification has a verdict that names it; what our own writer writes breaks none."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from drainwise.features.check import (
    ABSENT,
    ERROR,
    INFO,
    MOST_UNKNOWN,
    OK,
    PROBE_ERRORS,
    PROBE_WARNINGS,
    WARNING,
    KeyVerdict,
    check,
    worst,
)
from drainwise.features.facts import KEYS, HostFacts, JobFacts, deadline_values, job_values, machine_values
from drainwise.features.read import open_features
from drainwise.features.serve import FeatureServer
from drainwise.features.write import write_directory

NOW = 1795249000
HOST = HostFacts(total_cpu=24, hs06=300, hs23=300, grace_secs=600, jobslots=3, phys_cores=12, log_cores=24)
JOB = JobFacts(
    allocated_cpu=8,
    jobstart_secs=NOW - 1000,
    job_id="12.0",
    wall_limit_secs=259200,
    cpu_limit_secs=8 * 259200,
    cpufactor_lrms=1.15,
    max_rss_bytes=16_500_000_001,
    max_swap_bytes=1,
    scratch_limit_bytes=160_900_000_000,
    grace_secs_job=600,
)


class Site:
    """The two directories of a job, written by our own writer; a test then spoils one thing."""

    def __init__(self, root: Path) -> None:
        self.machine, self.job = root / "machine", root / "job"
        write_directory(str(self.machine), machine_values(HOST))
        write_directory(str(self.job), job_values(JOB, HOST))

    def place(self, key: str) -> Path:
        return (self.machine if key in {k.name for k in KEYS if k.directory == "machine"} else self.job) / key

    def put(self, key: str, content: bytes | str) -> None:
        self.place(key).write_bytes(content.encode() if isinstance(content, str) else content)

    def deadline(self, machine: int | None, job: int | None, set_at: int = NOW) -> None:
        for directory, values in zip((self.machine, self.job), deadline_values(machine, job, NOW)):
            write_directory(str(directory), values)
            for key, text in values.items():
                if text is not None:
                    os.utime(directory / key, (set_at, set_at))

    def check(self) -> list[KeyVerdict]:
        return check(open_features(str(self.machine)), open_features(str(self.job)), NOW)

    def found(self, key: str) -> set[tuple[str, str]]:
        return {(verdict.level, verdict.rule) for verdict in self.check() if verdict.key == key}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_our_own_directories_break_no_rule(site: Site) -> None:
    verdicts = site.check()
    assert worst([verdict for verdict in verdicts if verdict.level != INFO]) == ABSENT
    levels = {verdict.key: verdict.level for verdict in verdicts if verdict.key}
    assert set(levels) == {key.name for key in KEYS}
    assert {key for key, level in levels.items() if level == ABSENT} == {
        "shutdowntime",
        "shutdowntime_job",
        "shutdown_command",
    }


def test_our_own_planned_shutdown_breaks_no_rule(site: Site) -> None:
    site.deadline(NOW + 7200, NOW + 3600)
    assert site.found("shutdowntime") == {(INFO, "jalien")}
    assert site.found("shutdowntime_job") == {(OK, "present")}


@pytest.mark.parametrize("key", sorted(PROBE_ERRORS | PROBE_WARNINGS))
def test_a_missing_key_is_what_the_sam_probe_says_it_is(site: Site, key: str) -> None:
    site.place(key).unlink()
    expected = (ERROR, "sam-required") if key in PROBE_ERRORS else (WARNING, "sam-wanted")
    assert expected in site.found(key)


@pytest.mark.parametrize(
    ("key", "content", "level", "rule"),
    [
        ("total_cpu", "", ERROR, "not-empty"),
        ("total_cpu", "\n", ERROR, "not-empty"),
        ("total_cpu", "24", WARNING, "one-newline"),
        ("total_cpu", "24\n\n", WARNING, "one-newline"),
        ("total_cpu", "24\r\n", WARNING, "no-blanks"),
        ("total_cpu", " 24\n", WARNING, "no-blanks"),
        ("hs06", "\n300\n", WARNING, "no-blanks"),
        ("total_cpu", "0\n", ERROR, "range"),
        ("allocated_cpu", "0\n", ERROR, "range"),
        ("hs06", "0\n", ERROR, "range"),
        ("hs06", "0.0\n", ERROR, "range"),
        ("total_cpu", "24.0\n", ERROR, "format"),
        ("max_rss_bytes", "-1\n", ERROR, "format"),
        ("wall_limit_secs", "9223372036854775808\n", ERROR, "format"),
        ("cpu_limit_secs", "1e6\n", ERROR, "format"),
        ("job_id", "12 0\n", ERROR, "format"),
        ("job_id", "12.0\x1b[31m\n", ERROR, "format"),
        ("shutdown_command", "halt\n", ERROR, "format"),
        ("wall_limit_secs", "0\n", WARNING, "zero-limit"),
        ("disk_limit_GB", "0\n", WARNING, "zero-limit"),
        ("shutdowntime", f"{NOW}\n", ERROR, "future"),
        ("shutdowntime_job", f"{NOW - 1}\n", ERROR, "future"),
        ("shutdowntime", f"{NOW + 10}.0\n", ERROR, "format"),
        ("shutdowntime", f"{NOW + 900}\n", INFO, "jalien"),
        ("shutdowntime", f"{NOW + 599}\n", INFO, "panda-leaves"),
        ("allocated_cpu", "25\n", ERROR, "allocated<=total"),
        ("log_cores", "6\n", WARNING, "logical>=physical"),
        ("hs23", "301\n", INFO, "hs23=hs06"),
        ("hs06_job", "300.1\n", ERROR, "share<=host"),
        ("hs06_job", "50\n", INFO, "share-by-cores"),
        ("allocated_CPU", "9\n", ERROR, "twins-agree"),
        ("mem_limit_MB", "16501\n", WARNING, "twin-rounding"),
        ("mem_limit_MB", "15737\n", ERROR, "twins-agree"),
        ("disk_limit_GB", "161\n", WARNING, "twin-rounding"),
        ("wall_limit_secs_lrms", "259200\n", ERROR, "twins-agree"),
        ("cpu_limit_secs_lrms", "2384641\n", WARNING, "twin-rounding"),
        ("jobstart_secs", f"{NOW + 1}\n", ERROR, "start-past"),
        ("jobstart_secs", f"{NOW * 1000}\n", ERROR, "start-past"),
        ("jobstart_secs", f"{NOW - 10}\n", OK, "present"),
    ],
)
def test_a_broken_rule_is_named(site: Site, key: str, content: str, level: str, rule: str) -> None:
    """HOSTILE 23, 36, 37, 41."""
    site.put(key, content)
    assert (level, rule) in site.found(key)
    for verdict in site.check():
        assert (verdict.value or "").isprintable()
        assert verdict.detail.isprintable()


def test_a_verdict_carries_value_and_reason(site: Site) -> None:
    site.put("allocated_cpu", "25\n")
    verdict = next(verdict for verdict in site.check() if verdict.rule == "allocated<=total")
    assert verdict == KeyVerdict(
        "job", "allocated_cpu", ERROR, "allocated<=total", "more than total_cpu, which is 24", "25"
    )


def test_a_broken_relation_leaves_no_ok_for_the_same_key(site: Site) -> None:
    site.put("allocated_cpu", "25\n")
    assert OK not in {level for level, _ in site.found("allocated_cpu")}


def test_one_shutdown_file_without_the_other_is_an_error_on_the_missing_one(site: Site) -> None:
    site.put("shutdowntime_job", f"{NOW + 7200}\n")
    assert (ERROR, "both-or-neither") in site.found("shutdowntime")
    site.deadline(None, None)
    site.put("shutdowntime", "garbage\n")
    assert (ERROR, "both-or-neither") in site.found("shutdowntime_job")


def test_a_machine_time_after_the_jobs_is_seen_by_no_panda_pilot(site: Site) -> None:
    site.deadline(None, NOW + 7200)
    site.put("shutdowntime", f"{NOW + 9000}\n")
    assert (WARNING, "mirrors-job") in site.found("shutdowntime")


def test_less_notice_than_promised_is_seen_from_when_the_file_was_written(site: Site) -> None:
    site.deadline(None, NOW + 650, set_at=NOW + 100)
    assert (WARNING, "notice") in site.found("shutdowntime")
    assert (WARNING, "notice") in site.found("shutdowntime_job")
    site.deadline(None, NOW + 651, set_at=NOW + 50)
    assert (WARNING, "notice") not in site.found("shutdowntime_job")


def test_a_stale_directory_is_suspected(site: Site) -> None:
    """HOSTILE 48: the job would have outlived its own limit."""
    site.put("jobstart_secs", f"{NOW - 259201}\n")
    assert (WARNING, "within-limit") in site.found("wall_limit_secs")


def test_draft_keys_alone_and_normalised_limits_without_a_factor_are_told(site: Site) -> None:
    site.place("max_rss_bytes").unlink()
    site.place("cpufactor_lrms").unlink()
    site.place("hs06").unlink()
    assert (INFO, "twin-missing") in site.found("mem_limit_MB")
    assert (WARNING, "cpufactor") in site.found("wall_limit_secs_lrms")
    assert (WARNING, "hs23=hs06") in site.found("hs23")


def test_unreadable_and_strange_files_are_errors(site: Site) -> None:
    """HOSTILE 1, 5, 8, 10: and a file that is not for everybody is a warning."""
    site.place("hs06").unlink()
    site.place("hs06").symlink_to("/etc/passwd")
    site.place("job_id").unlink()
    os.mkfifo(site.place("job_id"))
    site.place("jobslots").unlink()
    site.place("jobslots").mkdir()
    site.place("phys_cores").chmod(0o640)
    for key in ("hs06", "job_id", "jobslots"):
        assert site.found(key) == {(ERROR, "readable")}
    assert site.found("phys_cores") == {(WARNING, "world-readable")}


def test_files_that_are_no_keys_are_told_but_not_by_the_thousand(site: Site) -> None:
    """HOSTILE 15, 26: names with escapes are shown harmless; a key in the wrong directory is a warning."""
    (site.machine / "a\n\x1b[31m").write_text("x")
    (site.machine / "allocated_cpu").write_text("8\n")
    for number in range(200):
        (site.machine / f"stranger{number}").write_text("x")
    strangers = [verdict for verdict in site.check() if verdict.rule == "unknown-key"]
    assert len(strangers) <= MOST_UNKNOWN + 1
    assert all(verdict.level == INFO and verdict.key.isprintable() for verdict in strangers)
    assert any("more files that are no keys" in verdict.detail for verdict in strangers)
    misplaced = [verdict for verdict in site.check() if verdict.rule == "right-directory"]
    assert [(verdict.directory, verdict.key, verdict.level) for verdict in misplaced] == [
        ("machine", "allocated_cpu", WARNING)
    ]


def test_the_location_itself_has_verdicts(site: Site, tmp_path: Path) -> None:
    site.machine.chmod(0o700)
    verdicts = check(open_features(f"{site.machine}/"), open_features(str(tmp_path / "absent")), NOW)
    about = {(verdict.directory, verdict.level, verdict.rule) for verdict in verdicts if not verdict.key}
    assert {
        ("machine", WARNING, "no-trailing-slash"),
        ("machine", WARNING, "world-readable"),
        ("machine", INFO, "dirac"),
        ("job", ERROR, "reachable"),
    } <= about
    assert not any(verdict.directory == "job" and verdict.key for verdict in verdicts)


def test_one_directory_alone_is_not_blamed_for_the_other(site: Site) -> None:
    site.put("shutdowntime", f"{NOW + 7200}\n")
    verdicts = check(open_features(str(site.machine)), None, NOW)
    assert "both-or-neither" not in {verdict.rule for verdict in verdicts}
    assert {verdict.directory for verdict in verdicts} == {"machine"}


def test_over_http_the_same_rules_hold(site: Site, tmp_path: Path) -> None:
    site.put("total_cpu", "0\n")
    site.place("job_id").unlink()
    os.mkfifo(site.place("job_id"))
    with FeatureServer(str(tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        verdicts = check(open_features(f"{server.url}/machine"), open_features(f"{server.url}/job"), NOW)
        server.shutdown()
    found = {(verdict.key, verdict.level, verdict.rule) for verdict in verdicts}
    assert ("total_cpu", ERROR, "range") in found
    assert ("job_id", ERROR, "readable") in found
    assert ("wall_limit_secs", OK, "present") in found
    assert ("", INFO, "panda-local") in found


def test_a_server_that_is_down_is_one_error_per_directory(tmp_path: Path) -> None:
    """HOSTILE 54."""
    with FeatureServer(str(tmp_path)) as server:
        url = server.url
    verdicts = [verdict for verdict in check(open_features(url), open_features(url), NOW) if verdict.level == ERROR]
    assert [(verdict.directory, verdict.key, verdict.rule) for verdict in verdicts] == [
        ("machine", "", "reachable"),
        ("job", "", "reachable"),
    ]


def test_the_worst_of_nothing_is_ok() -> None:
    assert worst([]) == OK
    assert (
        worst([KeyVerdict("job", "", INFO, "x"), KeyVerdict("job", "", ERROR, "y"), KeyVerdict("job", "", OK, "z")])
        == ERROR
    )
