"""CMSSW's own job report serves as a program's report."""

from __future__ import annotations

import pytest

from drainwise_tasks.validate.runner import report_in_xml

REPORT = """<FrameworkJobReport>
<InputFile><EventsRead>400</EventsRead></InputFile>
<File><PFN>file:out.root</PFN><TotalEvents>100</TotalEvents></File>
<PerformanceReport>
  <PerformanceSummary Metric="StorageStatistics">
    <Metric Name="Timing-tstoragefile-write-totalMegabytes" Value="12.5"/>
    <Metric Name="Timing-file-write-totalMegabytes" Value="99"/>
  </PerformanceSummary>
  <PerformanceSummary Metric="ApplicationMemory"><Metric Name="PeakValueRss" Value="1843.2"/></PerformanceSummary>
  <PerformanceSummary Metric="Timing"><Metric Name="EventThroughput" Value="0.8"/></PerformanceSummary>
  <PerformanceSummary Metric="ProcessingSummary"><Metric Name="NumberEvents" Value="400"/></PerformanceSummary>
</PerformanceReport>
</FrameworkJobReport>
"""


def test_what_mcm_takes_from_it() -> None:
    """Events that ran and were written, bytes, and the seconds that the throughput stands for."""
    expected = {"written": 100, "output_bytes": 13107200, "events": 400, "event_seconds": 500.0}
    assert report_in_xml(REPORT.encode()) == expected


def test_an_older_report() -> None:
    """Without throughput and number of events; with the older name of what was written."""
    text = REPORT.replace("EventThroughput", "X").replace("NumberEvents", "Y").replace("tstoragefile", "z")
    assert report_in_xml(text.encode()) == {"written": 100, "output_bytes": 99 << 20}
    without_throughput = report_in_xml(REPORT.replace("EventThroughput", "X").encode())
    assert without_throughput["events"] == 400 and "event_seconds" not in without_throughput


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("TotalEvents", "Other", "has no TotalEvents"),
        ("totalMegabytes", "other", "has no Timing-tstoragefile-write-totalMegabytes"),
        ("</FrameworkJobReport>", "", "no sound XML"),
        ('Value="12.5"', 'Value="nan"', "totalMegabytes = 'nan': expected a number"),
        ('Value="12.5"', 'Value="-1"', "totalMegabytes = '-1'"),
        (">100<", ">many<", "TotalEvents = 'many'"),
        ('Value="400"', 'Value="1e400"', "NumberEvents = '1e400'"),
        ("<FrameworkJobReport>", '<!DOCTYPE x [<!ENTITY a "a">]><FrameworkJobReport>', "declares a document type"),
        ("<FrameworkJobReport>", '<?xml version="1.0" encoding="none"?><FrameworkJobReport>', "no sound XML"),
    ],
)
def test_what_is_no_job_report(old: str, new: str, expected: str) -> None:
    """A missing or absurd figure is named; entities are never expanded."""
    with pytest.raises(ValueError, match=expected):
        report_in_xml(REPORT.replace(old, new).encode())
