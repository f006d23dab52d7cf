"""The job report of CMSSW (FrameworkJobReport.xml) as what a program reports to a validation.

Source: the metrics that McM's validation takes from the same file.
"""

from __future__ import annotations

import math
from xml.etree import ElementTree

_WRITTEN_MEGABYTES = ("Timing-tstoragefile-write-totalMegabytes", "Timing-file-write-totalMegabytes")
_MEGABYTE = 1 << 20  # as the storage statistics count them


def report_in_xml(content: bytes) -> dict[str, object]:
    """`written` and `output_bytes`, and `events` and `event_seconds` where the report states them.

    Raises ValueError for what is no such report. A document type is refused: entities could grow without bound.
    """
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
