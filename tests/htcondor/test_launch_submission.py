"""What HTCondor is told about a job: nothing that a user writes leaves its line or is a macro of HTCondor's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.errors import ConfigurationError, UsageError
from drainwise.htcondor.launch_settings import CondorLaunchSettings, condor_settings
from drainwise.htcondor.launch_submission import PRIORITY_ORIGIN, TAG, description, job_priority, literal, unfit
from drainwise.launch.backend import Start
from drainwise.launch.resources import Amount, Resources


def told(resources: Resources = Resources(), **rest: object) -> dict[str, str]:  # noqa: B008 - it is frozen
    given = {"name": "n", "tag": "T1", "argv": ("true",), "cwd": "/", "stdout": "/out", **rest}
    job = Start(resources=resources, **given)  # type: ignore[arg-type]
    return description(job, "key", "/p/s", "/p/log", "/p", True, {"accounting_group": "g"})


def test_amounts() -> None:
    words = told(Resources(2, 100, 7, (("gpus", 1), ("requirements", "x > 1"))), wall_limit=90)
    expected = {
        "request_cpus": "2",
        "request_memory": "100MB",
        "request_disk": "7MB",
        "request_gpus": "1",
        "requirements": "x > 1",
        "allowed_job_duration": "90",
        "accounting_group": "g",
        f"My.{TAG}": '"T1"',
    }
    assert words.items() >= expected.items()


def test_what_is_zero_is_not_asked_for() -> None:
    assert not {"request_memory", "request_disk", "allowed_job_duration"} & set(told())


def test_arguments_environment_and_output_are_in_no_ad() -> None:
    secret = "s3cret"
    words = told(argv=("p", secret), environment={"TOKEN": secret}, stdout=f"/{secret}", cwd=f"/{secret}")
    assert secret not in str(words)


@given(st.text(max_size=300))
def test_a_name_stays_on_its_line(name: str) -> None:
    words = told(name=name)
    assert all("\n" not in value and "\r" not in value for value in words.values())
    assert '"' not in words["description"] and "$" not in words["description"]


def test_macros_are_text() -> None:
    assert literal("/a/$(HOME)/$$(x)") == "/a/$(DOLLAR)(HOME)/$(DOLLAR)$(DOLLAR)(x)"


@pytest.mark.parametrize(
    "other", [("colour", "red"), ("a-b", 1), ("requirements", "x\nqueue 5"), ("rank", "x" * 1001), ("executable", "/x")]
)
def test_what_htcondor_cannot_have(other: tuple[str, Amount]) -> None:
    assert other[0] in unfit(Resources(others=(other,)))


def test_the_sooner_the_higher_the_priority() -> None:
    assert job_priority(PRIORITY_ORIGIN) == 0
    assert job_priority(PRIORITY_ORIGIN + 5) > job_priority(PRIORITY_ORIGIN + 6)
    assert abs(job_priority(4e9)) < 1 << 31


def test_settings() -> None:
    assert condor_settings({}, "", "f") == CondorLaunchSettings() and CondorLaunchSettings().n_max_queued_jobs == 10
    table: dict[str, object] = {"schedd": "ap1.site.org", "use_prio": False, "check_seconds": 5, "n_max_queued_jobs": 3}
    assert vars(condor_settings(table, "", "f")).items() >= table.items()
    words = condor_settings({}, "accounting_group=g.a 'requirements = x > 1'", "f").options
    assert words == {"accounting_group": "g.a", "requirements": "x > 1"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("schedd", "a b"), ("schedd", ""), ("use_prio", 1), ("n_max_queued_jobs", 0), ("bin", "/usr/bin")],
)
def test_a_wrong_value_is_named(key: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"f: \[backends\.htcondor\] {key} = "):
        condor_settings({key: value}, "", "f")


@pytest.mark.parametrize("options", ["executable=/x", "requirements", "rank=", "'", "requirements='a\nb'"])
def test_other_options_are_refused(options: str) -> None:
    with pytest.raises(UsageError, match="options for htcondor"):
        condor_settings({}, options, "f")
