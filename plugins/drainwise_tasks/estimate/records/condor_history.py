"""HTCondor's job history as finished payloads: `condor_history -json`, one object per line or an array, and `-long`.

A job's task is its batch name, else its owner and cluster. An ad that is broken costs itself, not its neighbours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from drainwise_tasks.estimate.records.record import (
    LONGEST_LINE,
    NOT_JSON,
    TOO_LONG,
    UNFINISHED,
    Finished,
    json_of,
    sound_one,
)

_COMPLETED, _REMOVED = 4, 3
_KB, _MB = 1024, 1024**2
_ASSIGNMENT = re.compile(rb"\s*([A-Za-z_]\w*) = (.*?)\s*")
_WANTED = frozenset(
    (
        *("ClusterId", "ProcId", "Owner", "JobBatchName", "DAGNodeName", "JobStatus", "NumJobStarts"),
        *("JobStartDate", "JobCurrentStartDate", "CompletionDate", "EnteredCurrentStatus"),
        *("RemoteWallClockTime", "CumulativeSuspensionTime", "CpusProvisioned", "RequestCpus"),
        *("RemoteUserCpu", "RemoteSysCpu", "ProportionalSetSizeKb", "ResidentSetSize_RAW", "ResidentSetSize"),
        *("MemoryUsage", "DiskUsage_RAW", "DiskUsage", "BytesSent", "BytesRecvd"),
        *("BlockReadBytes", "BlockWriteBytes", "BlockReadKbytes", "BlockWriteKbytes"),
        *("ExitCode", "ExitStatus", "ExitBySignal", "MaxWallTimeMins", "MaxWallTimeMins_RAW"),
        *(
            "GpusProvisioned",
            "RequestGPUs",
            "AllowedJobDuration",
            "AllowedExecuteDuration",
            "Events",
            "nEvents",
            "CorePower",
        ),
    )
)
"""Attributes that are read; of a long form nothing else is kept."""


def read_history_json(lines: Iterable[bytes], skips: Counter[str]) -> Iterator[Finished]:
    """Yield the jobs of `condor_history -json` or `-jsonl`: an ad begins and ends in the first column of a line."""
    for ad in _objects(lines, skips):
        yield from _sound(ad, skips)


def read_history_long(lines: Iterable[bytes], skips: Counter[str]) -> Iterator[Finished]:
    """Yield the jobs of `condor_history -long` or of a history file: `Name = value`, one ad after the other."""
    ad: dict[str, object] = {}
    for line in lines:
        match = _ASSIGNMENT.fullmatch(line)
        # A blank line ends an ad, in history files a banner does; a second ClusterId or ProcId begins one as well.
        if match is None:
            if ad:
                yield from _sound(ad, skips)
            ad = {}
            continue
        name = match[1].decode("ascii", "replace")
        if name in ad and name in {"ClusterId", "ProcId"}:
            yield from _sound(ad, skips)
            ad = {}
        if name in _WANTED:
            ad[name] = _value(match[2])
    if ad:
        yield from _sound(ad, skips)


def _objects(lines: Iterable[bytes], skips: Counter[str]) -> Iterator[Mapping[str, object]]:
    block: list[bytes] = []
    size = 0
    for line in lines:
        if line.startswith(b"[{"):
            line = line[1:]  # noqa: PLW2901 - the array's bracket stands before the first ad
        if not block and not line.startswith(b"{"):
            continue  # brackets and commas of the array
        if line.startswith(b"{") and block:
            skips[NOT_JSON] += 1  # the one before never ended
            block, size = [], 0
        size += len(line)
        if size > LONGEST_LINE:
            skips[TOO_LONG] += size - len(line) <= LONGEST_LINE
            block = [line] if line.startswith(b"{") else block[:1]
        else:
            block.append(line)
        if line.startswith(b"}") or (len(block) == 1 and line.rstrip(b" \r,]").endswith(b"}")):
            found = json_of(b"\n".join(block).strip().rstrip(b",]")) if size <= LONGEST_LINE else None
            if isinstance(found, dict):
                yield found
            elif size <= LONGEST_LINE:
                skips[NOT_JSON] += 1
            block, size = [], 0
    if block:
        skips[NOT_JSON] += 1


def _sound(ad: Mapping[str, object], skips: Counter[str]) -> Iterator[Finished]:
    status = ad.get("JobStatus")
    if status not in (_COMPLETED, _REMOVED):
        skips[UNFINISHED] += 1
        return
    if one := sound_one(_record(ad, status == _COMPLETED), skips):
        yield one


def _record(ad: Mapping[str, object], completed: bool) -> dict[str, object]:
    code = _first(ad, "ExitCode", "ExitStatus")
    good = completed and ad.get("ExitBySignal") is not True and not code
    start = _number(ad, "JobCurrentStartDate") or _number(ad, "JobStartDate")
    end = _number(ad, "CompletionDate") or _number(ad, "EnteredCurrentStatus")
    minutes = _first(ad, "MaxWallTimeMins_RAW", "MaxWallTimeMins")
    requested = _first(ad, "AllowedExecuteDuration", "AllowedJobDuration")
    if requested is None and minutes is not None:
        requested = 60 * minutes
    return {
        "task": _task(ad),
        "state": "finished" if good else "failed",
        "start": start,
        "end": end,
        "cores": _whole(_first(ad, "CpusProvisioned", "RequestCpus")),
        "events": _first(ad, "nEvents", "Events"),
        "core_power": _number(ad, "CorePower"),
        # Exactly 0 is what stands there when nobody looked before the job ended.
        "cpu_seconds": _sum(ad, "RemoteUserCpu", "RemoteSysCpu") or None,
        "memory_bytes": _memory(ad),
        "input_bytes": _number(ad, "BytesRecvd"),
        "output_bytes": _number(ad, "BytesSent"),
        "read_bytes": _blocks(ad, "Read"),
        "written_bytes": _blocks(ad, "Write"),
        "work_bytes": _scaled(_first(ad, "DiskUsage_RAW", "DiskUsage"), _KB),
        "requested_seconds": requested,
        "gpus": _first(ad, "GpusProvisioned", "RequestGPUs"),
    }


def _task(ad: Mapping[str, object]) -> str | None:
    name, owner, cluster = ad.get("JobBatchName"), ad.get("Owner"), ad.get("ClusterId")
    if isinstance(name, str) and name:
        return f"{owner}/{name}" if isinstance(owner, str) else name
    return f"{owner}/{cluster}" if isinstance(owner, str) and isinstance(cluster, int) else None


def _memory(ad: Mapping[str, object]) -> float | None:
    # 0 is what stands there when nobody looked before the job ended.
    kilobytes = _first(ad, "ProportionalSetSizeKb", "ResidentSetSize_RAW", "ResidentSetSize")
    if kilobytes is not None:
        return kilobytes * _KB or None
    return _scaled(_number(ad, "MemoryUsage"), _MB) or None


def _blocks(ad: Mapping[str, object], kind: str) -> float | None:
    exact = _number(ad, f"Block{kind}Bytes")
    return exact if exact is not None else _scaled(_number(ad, f"Block{kind}Kbytes"), _KB)


def _number(ad: Mapping[str, object], name: str) -> float | None:
    """Return a number that the ad holds; None for an expression, which only a ClassAd library could evaluate."""
    value = ad.get(name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _first(ad: Mapping[str, object], *names: str) -> float | None:
    return next((value for value in (_number(ad, name) for name in names) if value is not None), None)


def _sum(ad: Mapping[str, object], *names: str) -> float | None:
    values = [value for value in (_number(ad, name) for name in names) if value is not None]
    return sum(values) if values else None


def _scaled(value: float | None, by: int) -> float | None:
    return None if value is None else value * by


def _whole(value: float | None) -> object:
    return 1 if value is None else int(value) if value == value // 1 and abs(value) < 1e9 else value


def _value(text: bytes) -> object:
    """Return a literal of the long form; None for an expression."""
    if text.startswith(b'"') and text.endswith(b'"') and len(text) > 1:
        return text[1:-1].decode("utf-8", "replace").replace('\\"', '"')
    if text in {b"true", b"false"}:
        return text == b"true"
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None
