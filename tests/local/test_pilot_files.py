"""Which site notices a job of the local batch system gets: what its kind of client may see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from drainwise.common.service import Faults
from drainwise.facts.client_rules import ClientRules
from drainwise.local.job import RUNNING, JobRequest, LocalJob
from drainwise.local.pilot_files import SiteNotices

NOW = 1795249000
RULES = ClientRules({"alice": "user=bob", "none": "account=shown.*"})


def job(user: str, account: str, deadline: int | None) -> LocalJob:
    request = JobRequest(account, user, 8, ("pilot",), 3600)
    return LocalJob(1, request, 0.0, state=RUNNING, run=f"{user}@{account}", deadline=deadline)


def test_what_a_client_must_not_see_is_not_written_and_goes_when_a_row_comes(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name in (".machinefeatures", ".jobfeatures"):
        (work / name).mkdir(parents=True)
    notices = SiteNotices(Faults(lambda _: None), repair=600.0)

    def shown(clients: ClientRules | None, user: str = "bob", account: str = "x", deadline: int = NOW + 60) -> set[str]:
        notices.write(job(user, account, deadline), str(tmp_path), NOW + 900, None, NOW, clients)
        return {file.name for file in work.rglob("*") if file.is_file()}

    files = {"shutdowntime", "shutdowntime_job"}
    assert shown(None) == {".site.ad", *files}
    assert shown(RULES) == {".site.ad"}
    assert shown(RULES, deadline=NOW + 30) == {".site.ad"}
    assert shown(RULES, user="carol") == {".site.ad", *files}
    assert shown(RULES, user="carol", account="shown.nothing") == set()


def test_a_shutdown_behind_the_leases_end_is_told_as_that_end(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    running = replace(job("bob", "x", None), started=NOW)
    SiteNotices(Faults(lambda _: None), repair=600.0).write(running, str(tmp_path), NOW + 86_400, None, NOW)
    text = (tmp_path / "work" / ".site.ad").read_text()
    assert text == f"VACATE_DESIRED = False\nPAYLOAD_DEADLINE = {NOW + 3600}\n"
