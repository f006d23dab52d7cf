"""What sbatch is told: all attributes of open-lmake's documentation, in each component of a heterogeneous job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_launch.backend import tag_of
from drainwise_launch.choice.resources import Amount, Resources, parse_resources
from drainwise_launch.slurm.submission import components, job_name, sbatch_arguments, unfit

tags = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)


def asked(*others: tuple[str, Amount], options: dict[str, str] | None = None) -> list[dict[str, str]]:
    return components(Resources(2, 100, 0, others), {"matlab"}, options or {})


def test_the_standard_amounts() -> None:
    assert components(Resources(2, 100, 7), set(), {}) == [{"cpus-per-task": "2", "mem": "100M", "tmp": "7M"}]


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("account", "account"),
        ("excludes", "exclude"),
        ("features", "constraint"),
        ("gres", "gres"),
        ("licence", "licenses"),
        ("licenses", "licenses"),
        ("nodes", "nodelist"),
        ("partition", "partition"),
        ("qos", "qos"),
        ("reserv", "reservation"),
        ("reservation", "reservation"),
        ("wckey", "wckey"),
    ],
)
def test_each_attribute_is_passed_as_it_is(name: str, option: str) -> None:
    assert asked((name, "a&b:1"))[0][option] == "a&b:1"
    assert asked((f"{name}0", "a&b:1")) == asked((name, "a&b:1"))  # no index is index 0


def test_others_are_licenses_where_slurm_declares_them_and_else_generic_resources() -> None:
    assert asked(("gres", "gpu:1"), ("matlab", 2), ("ssd", 3), ("licenses", "x:1"))[0] == {
        "cpus-per-task": "2",
        "mem": "100M",
        "gres": "gpu:1,ssd:3",
        "licenses": "matlab:2,x:1",
    }


def test_an_index_names_a_component() -> None:
    first, second, third = asked(("gres1", "gpu:1"), ("cpu1", 4), ("mem1", 10), ("partition2", "long"))
    assert first == {"cpus-per-task": "2", "mem": "100M"}
    assert second == {"gres": "gpu:1", "cpus-per-task": "4", "mem": "10M"}
    assert third == {"partition": "long"}
    arguments = sbatch_arguments([first, second, third], "n", 17, 61)
    assert {"--nice=17", "--time=2", "--no-requeue"} < set(arguments[: arguments.index("--ntasks=1")])
    assert arguments.count(":") == 2
    assert arguments[arguments.index(":") :][:5] == [
        *(":", "--ntasks=1", "--gres=gpu:1", "--cpus-per-task=4", "--mem=10M"),
    ]


def test_sizes_of_a_component_are_told_in_megabytes() -> None:
    """What a person writes into a launch file, as sbatch hears it."""
    written = {"mem": "1G", "mem1": "500M", "tmp1": "2G", "mem2": 30}
    assert components(parse_resources(written, "job a"), set(), {}) == [
        {"cpus-per-task": "1", "mem": "1024M"},
        {"mem": "500M", "tmp": "2048M"},
        {"mem": "30M"},
    ]


def test_options_of_the_command_line_take_the_place_of_the_job_s() -> None:
    (part,) = asked(("partition", "a"), options={"partition": "b", "mem": "5", "qos": "q"})
    assert part == {"cpus-per-task": "2", "mem": "5M", "partition": "b", "qos": "q"}


def test_nice_and_wall_limit() -> None:
    arguments = sbatch_arguments([{}], "n", 17, 61)
    assert "--nice=17" in arguments and "--time=2" in arguments and "--no-requeue" in arguments
    assert not [word for word in sbatch_arguments([{}], "n", None, 0) if word.startswith(("--nice", "--time"))]


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (("partition", "a b"), "no blanks"),
        (("gres", "x\n--wrap=id"), "no blanks"),
        (("gres2", "x"), "nothing has the index 1"),
        (("gres999", "x"), "at most 128"),
        (("cpu1", "many"), "whole number"),
        *(((name, "tool:1"), "first component") for name in ("licence1", "licences1", "licenses1")),
    ],
)
def test_what_slurm_can_never_have(other: tuple[str, Amount], what: str) -> None:
    assert what in unfit(Resources(others=(other,)))


@given(st.text(max_size=300), st.text(max_size=300), tags)
def test_any_name_is_one_word_and_has_its_tag(key: str, name: str, tag: str) -> None:
    assert job_name("night:", "a b|c", "T1") == "night:a_b_c.T1"
    made = job_name(key, name, tag)
    assert tag_of(made) == tag
    assert len(made) <= 200 and made.isascii() and made.isprintable() and not set(made) & set(" |'\"\\$`")
