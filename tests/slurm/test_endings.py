"""How runs have ended, out of lines that the accounting of real clusters printed."""

from __future__ import annotations

import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.pool.facts import Ending
from drainwise.slurm.jobs.values import cpu_seconds
from drainwise.slurm.pool.endings import endings_in

# Of 24.11.5: by itself, with its steps; failed; at its deadline; requeued, and waiting again; cancelled; running.
SAID = """\
5|1795281111|1795281118|COMPLETED|00:00.674|1001|alice
5.batch|1795281111|1795281118|COMPLETED|00:00.012||
5.extern|1795281111|1795281118|COMPLETED|00:00.001||
5.0|1795281111|1795281117|COMPLETED|00:00.659||
6|1795281111|1795281111|FAILED|00:00.005|1001|alice
9|1795281111|1795281140|TIMEOUT|00:00:00|1001|alice
9.batch|1795281111|1795281140|CANCELLED|00:00.004||
10|1795281112|1795281122|REQUEUED|00:00.813|1001|alice
10|Unknown|Unknown|PENDING|00:00:00|1001|alice
11|1795281112|1795281122|CANCELLED by 0|00:00.005|1001|alice
12|1795281112|1795281122|CANCELLED by 1001|00:00.005|1001|alice
14|1795281112|1795281122|CANCELLED by 0|00:00.005|0|alice
15|1795281112|1795281122|CANCELLED by 1001|00:00.005|0|alice
16|1795281112|1795281122|CANCELLED by 0|00:00.005|0|root
17|1795281112|1795281122|CANCELLED|00:00.005|1001|alice
13|1795281112|1795281122|NODE_FAIL|00:00.005|1001|alice
7_1|1795281111|Unknown|RUNNING|00:00:00|1001|alice
7_2|1795281111|1795281190|OUT_OF_MEMORY|1-02:03:04|1001|alice
"""


def test_each_run_that_ended_has_its_state_and_its_cpu_time() -> None:
    assert endings_in(SAID) == {
        "5@1795281111": Ending("5@1795281111", 1795281118, False, 0.674),
        "6@1795281111": Ending("6@1795281111", 1795281111, False, 0.005),
        "9@1795281111": Ending("9@1795281111", 1795281140, True, None),
        "10@1795281112": Ending("10@1795281112", 1795281122, True, 0.813),
        "11@1795281112": Ending("11@1795281112", 1795281122, True, 0.005, by_others=True),
        "12@1795281112": Ending("12@1795281112", 1795281122, True, 0.005),
        "14@1795281112": Ending("14@1795281112", 1795281122, True, 0.005, by_others=True),
        "15@1795281112": Ending("15@1795281112", 1795281122, True, 0.005),
        "16@1795281112": Ending("16@1795281112", 1795281122, True, 0.005),
        "17@1795281112": Ending("17@1795281112", 1795281122, True, 0.005),
        "13@1795281112": Ending("13@1795281112", 1795281122, True, 0.005, by_others=True),
        "7_2@1795281111": Ending("7_2@1795281111", 1795281190, True, 93784.0),
    }


@pytest.mark.parametrize("line", ["x", "5|1|2|COMPLETED|0|6", "5|1|2|COMPLETED|0|6|7|8"])
def test_a_line_that_is_no_job_is_an_incomplete_answer(line: str) -> None:
    with pytest.raises(PoolUnreachable):
        endings_in(SAID + line)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00.584", 0.584),
        ("12:34.5", 754.5),
        ("02:03:04", 7384.0),
        ("3-00:00:01", 259201.0),
        ("00:00:00", None),
        ("", None),
        ("x", None),
        ("-1:00", None),
        ("nan:inf", None),
    ],
)
def test_cpu_time_in_seconds(text: str, seconds: float | None) -> None:
    """0 is what stands there when nobody measured it."""
    assert cpu_seconds(text) == seconds
