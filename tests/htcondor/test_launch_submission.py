"""What HTCondor is told about a job: nothing that a user writes leaves its line or is a macro of HTCondor's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise_launch.backend import Start
from drainwise_launch.choice.resources import Amount, Resources
from drainwise_launch.htcondor.submission import (
    MOST_MB,
    PRIORITY_ORIGIN,
    TAG,
    CondorLaunchSettings,
    condor_settings,
    description,
    is_sound,
    job_priority,
    literal,
    script_of,
    unfit,
)


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


def test_a_launcher_that_is_in_a_job_passes_nothing_of_that_on() -> None:
    outer = {"_CONDOR_SCRATCH_DIR": "/outer", "_CONDOR_JOB_AD": "/outer/.job.ad", "TMPDIR": "/outer", "TMP": "/outer"}
    job = Start("n", "T1", ("true",), "/", Resources(), "/out", {**outer, "HOME": "/home/a", "EMPTY": ""})
    assert "outer" not in script_of(job)
    assert "export HOME=/home/a\n" in script_of(job) and "export EMPTY=''\n" in script_of(job)


def test_macros_are_text() -> None:
    assert literal("/a/$(HOME)/$ENV(x)") == "/a/$(DOLLAR)(HOME)/$(DOLLAR)ENV(x)"


@given(st.text(max_size=60) | st.from_regex(r"[$@\\\\#=(\[A-Z)\] ]{1,12}", fullmatch=True))
def test_a_text_comes_out_as_it_went_in(text: str) -> None:
    """Through HTCondor's own reader of descriptions, twice as the bindings do it, beside the lines around it."""
    htcondor2 = pytest.importorskip("htcondor2")
    if unfit(Resources(others=(("rank", text),))):
        return
    words = {"requirements": "a", "rank": literal(text), "accounting_group": "b"}
    read = htcondor2.Submit(str(htcondor2.Submit(words)))
    assert {name: read.expand(name) for name in read} == {**words, "rank": text.strip()}


@pytest.mark.parametrize(
    "other",
    [
        *[("colour", "red"), ("a-b", 1), ("executable", "/x")],
        *[
            ("requirements", "x\nqueue 5"),
            ("requirements", "x\\ "),
            ("rank", "$$(Cpus)"),
            ("rank", "x" * 1001),
            ("rank", " "),
        ],
        # HTCondor leaves these out without a word, or takes them for others.
        *[("a", 1), ("_ssd", 1), ("gpu", 1), ("GPU", 1), ("gpus_memory", 1), ("Cpus", 8), ("memory", 8), ("CPU", 8)],
    ],
)
def test_what_htcondor_cannot_have(other: tuple[str, Amount]) -> None:
    assert other[0] in unfit(Resources(others=(other,)))


def test_names_that_differ_in_large_letters_alone_are_one() -> None:
    assert unfit(Resources(others=(("GPUs", 1), ("gpus", 2))))


def test_more_than_64_bits_of_bytes_is_refused() -> None:
    """HTCondor would take it for a negative number, which every slot has."""
    assert not unfit(Resources(mem=MOST_MB - 1, tmp=MOST_MB - 1))
    assert "mem" in unfit(Resources(mem=MOST_MB)) and "tmp" in unfit(Resources(tmp=MOST_MB))


def test_a_command_that_looks_like_a_number_is_one_still() -> None:
    words = told(Resources(others=(("rank", 5),)))
    assert words["rank"] == "5" and "request_rank" not in words


@pytest.mark.parametrize(
    ("directory", "sound"),
    [("/a b/$(x)'#,é", True), ("/a\n", False), ("/a\\", False), ("/a ", False), ("/$$(Name)", False), ('/a"', False)],
)
def test_paths(directory: str, sound: bool) -> None:
    assert is_sound(directory) == sound


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
    [
        *[("schedd", "a b"), ("schedd", ""), ("use_prio", 1), ("n_max_queued_jobs", 0), ("bin", "/usr/bin")],
        ("collector", "cm.site.org"),  # which of its access points?
    ],
)
def test_a_wrong_value_is_named(key: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"f: \[backends\.htcondor\] {key} = "):
        condor_settings({key: value}, "", "f")


@pytest.mark.parametrize(
    "options", ["executable=/x", "requirements", "rank=", "'", "requirements='a\nb'", "'rank=a\\'"]
)
def test_other_options_are_refused(options: str) -> None:
    with pytest.raises(UsageError, match="options for htcondor"):
        condor_settings({}, options, "f")


def test_files_of_a_job_are_carried() -> None:
    """It runs in the directory of the node, prints where HTCondor has it print, and its files come back to its own."""
    words = told(cwd="/w $(x)", stdout="/w/out", inputs=("a", "b"), outputs=("c",))
    assert (
        words.items()
        >= {
            "initialdir": "/w $(DOLLAR)(x)",
            "output": "/w/out",
            "transfer_input_files": "a, b",
            "transfer_output_files": "c",
        }.items()
    )
    script = script_of(Start("n", "T1", ("true",), "/w", Resources(), "/w/out", outputs=("c",)))
    assert "/w" not in script and "exec 2>&1\n" in script
    assert told()["transfer_output_files"] == '""' and "output" not in told()
