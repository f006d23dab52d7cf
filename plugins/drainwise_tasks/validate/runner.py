"""Runs inside a validation's job: starts the program, measures it with everything it starts, and reports.

`REPORT CORES EVENTS MEMORY -- COMMAND…` in the arguments. The program finds DRAINWISE_VALIDATION_CORES, _EVENTS,
_MEMORY (MB) and _REPORT in its environment; in the file that the last one names it leaves a JSON object: `written`
(events) and `output_bytes`; and where it likes `events` that it ran and `event_seconds` of its event loop. Or it is the
job report of CMSSW (FrameworkJobReport.xml), with the metrics that McM's validation takes from it.

Standard library alone; Python 3.9.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from drainwise.common.local_file import read_small, replace_file, split_path
from drainwise.facts.errors import FeatureError
from drainwise.processes.children import ended_children, memory_of_trees
from drainwise.processes.process import children, kill_group
from drainwise.processes.tree import adopt_orphans, kill_all_below, lead_group

PREFIX = "DRAINWISE_VALIDATION_"
_LOOK = 0.1
_CHILD_ENDED = {signal.SIGCHLD}
_ENDINGS = (signal.SIGTERM, signal.SIGINT)
_REPORT_LIMIT = 1 << 22
_LAST_WAIT = 5.0
_WRITTEN_MEGABYTES = ("Timing-tstoragefile-write-totalMegabytes", "Timing-file-write-totalMegabytes")
_MEGABYTE = 1 << 20  # as the storage statistics count them
_NOT_FOUND, _CANNOT_RUN = 127, 126


def measure(
    command: Sequence[str], environment: dict[str, str], limit: float = math.inf
) -> tuple[int, dict[str, float]]:
    """Run a command to its end: its exit code (128 + N for signal N), and what it took. Raises OSError.

    wall_seconds, cpu_seconds (of everything it started and that has ended), peak_rss_bytes. What has run for `limit`
    seconds is killed.
    """
    adopt_orphans()
    signal.pthread_sigmask(signal.SIG_BLOCK, _CHILD_ENDED)  # it is waited for: a program's end is seen at once
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)  # until there is somebody to pass them on to
    peak, began, before = 0, time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        preexec_fn=_in_child,  # noqa: PLW1509 - this process has one thread
    )
    for number in _ENDINGS:
        signal.signal(number, lambda got, _: kill_group(child.pid, got))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
    code, look_at = None, began
    while code is None:
        now = time.monotonic()
        if now >= look_at:
            peak, look_at = max(peak, memory_of_trees(children(), proportional=False)), now + _LOOK
        if now - began >= limit:
            sys.stderr.write("drainwise: its wall limit is over\n")
            kill_group(child.pid, signal.SIGKILL)
            limit = math.inf
        signal.sigtimedwait(_CHILD_ENDED, max(0.0, look_at - now))
        for ended in ended_children(lambda _: False):  # orphans that it left behind are among them
            if ended.pid == child.pid:
                code = child.returncode = ended.code
                # The kernel keeps the peak of it and of what it waited for: a peak between two looks is not missed.
                peak = max(peak, ended.peak_bytes)
    wall = time.monotonic() - began
    kill_group(child.pid, signal.SIGKILL)
    kill_all_below(_LAST_WAIT)  # and reaps them: what was not waited for has no CPU time
    # Whoever ends this one now ends the next command, which has not begun.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if used.ru_maxrss > before.ru_maxrss:  # of what it did not wait for, unless a command before had a larger one
        peak = max(peak, used.ru_maxrss * 1024)
    seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    taken = {"wall_seconds": wall, "cpu_seconds": seconds, "peak_rss_bytes": peak}
    return code if code >= 0 else 128 - code, taken


def program_report(path: str) -> tuple[object, str]:
    """Return what the program reported, or what is wrong with it; its numbers are judged elsewhere."""
    try:
        found = read_small(path, _REPORT_LIMIT)
    except FeatureError as fault:
        return None, f"the program's report: {fault}"
    if found is None:
        return None, f"the program wrote no report: it must leave one in ${PREFIX}REPORT"
    if found[0].lstrip()[:1] == b"<":
        try:
            return report_in_xml(found[0]), ""
        except ValueError as fault:
            return None, str(fault)
    try:
        return json.loads(found[0]), ""
    except (ValueError, RecursionError):
        return None, "the program's report is not JSON"


def report_in_xml(content: bytes) -> dict[str, object]:
    """Return `written` and `output_bytes`, and `events` and `event_seconds` where the report states them.

    Raises ValueError for what is no such report. A document type is refused: entities could grow without bound.
    """
    from xml.etree import ElementTree  # noqa: PLC0415 - most programs need no XML

    if b"<!" in content.replace(b"<!--", b"").replace(b"<![CDATA[", b""):
        raise ValueError("the job report declares a document type")
    try:
        root = ElementTree.fromstring(content)  # noqa: S314 - no document type, so no entities
    except (ElementTree.ParseError, ValueError, LookupError):
        raise ValueError("the job report is no sound XML") from None
    metrics = {one.get("Name", ""): one.get("Value", "") for one in root.iter("Metric")}
    written = [one.text or "" for one in root.iter("TotalEvents")]
    megabytes = next((metrics[name] for name in _WRITTEN_MEGABYTES if name in metrics), None)
    if not written or megabytes is None:
        missing = _WRITTEN_MEGABYTES[0] if written else "TotalEvents"
        raise ValueError(f"the job report has no {missing}")
    found: dict[str, object] = {
        "written": int(_number("TotalEvents", written[-1])),
        "output_bytes": round(_number(_WRITTEN_MEGABYTES[0], megabytes) * _MEGABYTE),
    }
    if "NumberEvents" in metrics:
        events = _number("NumberEvents", metrics["NumberEvents"])
        found["events"] = int(events)
        throughput = _number("EventThroughput", metrics.get("EventThroughput", "0"))
        if throughput > 0:
            found["event_seconds"] = events / throughput
    return found


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"the job report: {name} = {ascii(text)[:60]}: expected a number, 0 or more")
    return value


def _in_child() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*_CHILD_ENDED, *_ENDINGS))
    lead_group()


def main(
    arguments: Sequence[str] | None = None, limit: float = math.inf, following: Sequence[Sequence[str]] = ()
) -> int:
    """Run for at most `limit` seconds, measure and report; the program's exit code.

    following: the commands of further sequences, one after the other until one fails; its exit code is returned.
    """
    report, cores, events, memory, dashes, *command = sys.argv[1:] if arguments is None else arguments
    if dashes != "--" or not command:
        sys.stderr.write("drainwise: REPORT CORES EVENTS MEMORY -- COMMAND…\n")
        return 2
    report, code, ends = os.path.abspath(report), 0, time.monotonic() + limit
    values: list[dict[str, object]] = []
    for number, words in enumerate((command, *following)):
        own = f"{report}.program{number or ''}"
        figures = {"CORES": cores, "EVENTS": events, "MEMORY": memory, "REPORT": own}
        environment = {**os.environ, **{PREFIX + name: value for name, value in figures.items()}}
        try:
            code, measured = measure(words, environment, ends - time.monotonic())
        except OSError as fault:
            sys.stderr.write(f"drainwise: {words[0]}: {fault.strerror}\n")
            return _NOT_FOUND if isinstance(fault, FileNotFoundError) else _CANNOT_RUN
        reported, fault_said = program_report(own)
        values.append({"measured": measured, "reported": reported, "fault": fault_said})
        if code:
            break
    value = {**values[0], "following": values[1:]} if following else values[0]
    directory, name = split_path(report)
    replace_file(name, json.dumps(value).encode() + b"\n", directory)
    return code


if __name__ == "__main__":
    sys.exit(main())
