"""The reporters of docs/pilots.md, as its text has them, in jobs of the local batch system: what its pool sees."""

from __future__ import annotations

import re
import time
import zipfile
from pathlib import Path

import drainwise
from drainwise.local.job import ENDED
from drainwise.pilotad.report import FRESH, PilotReport, standing
from local_batch import Batch
from real_daemons.waiting import wait_for

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pilots.md").read_text()
SHELL = ROOT / "share" / "pilots" / "sh"
CORES = 8


def lines_of(section: str) -> str:
    """The code of a section of the page."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    [code] = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(code)


def report_of(batch: Batch, job_id: int) -> PilotReport | None:
    """What the pool sees of a job."""
    pilots = batch.pool.snapshot(int(time.time())).pilots
    return next((pilot.report for pilot in pilots if pilot.name == str(job_id)), None)


def seen(batch: Batch, job_id: int, cores: float) -> PilotReport:
    """The report with so many cores in use, believed and of nine values."""

    def uses() -> bool:
        report = report_of(batch, job_id)
        return report is not None and report.used_cpu == cores

    wait_for(uses, what=f"{cores} cores in use")
    report = report_of(batch, job_id)
    assert report is not None and standing(report, int(time.time()), 3600, None, CORES) == FRESH
    assert None not in (report.last_max_job_end, report.priority_factor, report.can_postpone_last_job)
    return report


def test_a_wrapper_reports_with_the_shell_script(batch: Batch) -> None:
    """Two payloads by hand: draining waste, kill waste and both ends; then one of them ends, and then both have."""
    batch.start()
    payload = "printf '#!/bin/sh\\nwhile [ ! -e go ]; do sleep 0.1; done\\n' > simulate; chmod 755 simulate"
    first, second, last = lines_of("Any wrapper, in shell").splitlines()
    assert (first, last) == ("drainwise_report.sh watch 8 $$ &", "wait $!")
    another = "sleep 2; sh -c 'while [ ! -e end ]; do sleep 0.1; done' & drainwise_report.sh payload 2 600 900 $!"
    begin = f"PATH={SHELL}:$PATH DRAINWISE_LOOK=0.2; export PATH DRAINWISE_LOOK"
    stays = "wait $!; sleep 2; while [ ! -e over ]; do sleep 0.1; done"
    [job_id] = batch.submit(f"{begin}\n{payload}\n{first}\n{second}\n{another}\n{stays}")
    report, work = seen(batch, job_id, 6), batch.work(job_id)
    started = {}
    for file in (work / ".drainwise-payloads").iterdir():
        words = file.read_text().split()
        started[int(words[0])] = int(words[1])
    assert started.keys() == {4, 2} and started[2] - started[4] >= 2
    assert (report.last_job_start, report.first_exp_job_end) == (started[2], started[2] + 600)
    assert (report.last_exp_job_end, report.last_max_job_end) == (started[4] + 3600, started[4] + 7200)
    assert report.add_uncom_time == 4 * (started[2] - started[4])
    span = started[4] + 3600 - started[2] - 600
    assert report.add_final_exp_waste == CORES * span - 4 * span
    status = {file.name: file.read_text().strip() for file in (work / ".jobstatus").iterdir()}
    assert (status["used_CPU"], status["can_postpone_last_job"], len(status)) == ("6", "True", 9)

    (work / "end").touch()
    assert seen(batch, job_id, 4).first_exp_job_end == started[4] + 3600
    (work / "go").touch()
    idle = seen(batch, job_id, 0)
    assert (idle.add_uncom_time, idle.add_final_exp_waste) == (0, 0)
    (work / "over").touch()
    batch.await_state(ENDED, job_id)
    wait_for(batch.empty, what="the reporter has gone with the wrapper")
    assert batch.job(job_id).code == 0 and (work / "err").read_text() == ""


def test_a_pilot_in_python_brings_the_package_as_one_file(batch: Batch) -> None:
    """The wheel is a zip file with the package at its top; nothing else of drainwise is on the node."""
    batch.start()
    name = f"drainwise-{drainwise.__version__}-py3-none-any.whl"
    wheel = Path(batch.directory, name)
    package = Path(drainwise.__file__).parent
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for module in package.rglob("*.py"):
            archive.write(module, module.relative_to(package.parent))
    text = lines_of("Pilots in Python").replace('"/usr/share/drainwise", ', "")
    assert name in text
    more = (
        "import os, time\n"
        "while not os.path.exists('go'): time.sleep(0.1)\n"
        "reporter.ended('payload-1')\n"
        "while not os.path.exists('over'): time.sleep(0.1)\n"
        "assert drainwise_is_from_the_wheel()\n".replace(
            "drainwise_is_from_the_wheel()", f"{name!r} in sys.modules['drainwise'].__file__"
        )
    )
    Path(batch.directory, "pilot.py").write_text(text + more)
    [job_id] = batch.submit(f"cp {batch.directory}/{name} .; exec /usr/bin/python3 -I -S {batch.directory}/pilot.py")
    begin = int(time.time())
    report, work = seen(batch, job_id, 4), batch.work(job_id)
    start = report.last_job_start
    assert start is not None and begin - 1 <= start <= time.time()
    # The job's wall limit is 600 s: no end lies behind it.
    limit = int((work / ".jobfeatures" / "jobstart_secs").read_text()) + 600
    assert report.first_exp_job_end == report.last_exp_job_end == report.last_max_job_end == limit
    (work / "go").touch()
    seen(batch, job_id, 0)
    (work / "over").touch()
    batch.await_state(ENDED, job_id)
    assert batch.job(job_id).code == 0, (work / "err").read_text()
