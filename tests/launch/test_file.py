"""Launch files: every form, and what is wrong named by file, job and key."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from all_but_one import all_but_one
from drainwise.common.typed_table import toml_reader
from drainwise.facts.errors import UsageError
from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.resources import Resources
from drainwise_launch.choice.work import Work
from drainwise_launch.files.job_reader import JobReader
from drainwise_launch.files.launch_file import load_launch

TOML = """
backend = "slurm"
[backends.local]
cpu = 2
[rules.simulate]
resources = { mem = "2G", partition = "long" }
environment = { A = "1", B = "2" }
expected = 60
[[jobs]]
name = "sim 1; rm -rf /"
rule = "simulate"
command = ["{here}/simulate", "1"]
resources = { cpu = 2 }
environment = { B = "3" }
[[jobs]]
name = "merge"
command = "cat *.out > all"
after = "sim 1; rm -rf /"
backend = "local"
cwd = "sub"
wall_limit = 1.5
[requests]
night = ["merge"]
"""


def test_a_launch_in_toml(tmp_path: Path) -> None:
    """Rules give what their jobs do not say, resources and variables one by one."""
    if toml_reader() is None:
        pytest.skip("this Python reads no TOML")
    (tmp_path / "night.toml").write_text(TOML)
    found = load_launch(str(tmp_path / "night.toml"))
    assert found.works == [
        Work(
            "sim 1; rm -rf /",
            (f"{tmp_path}/simulate", "1"),
            (),
            Resources(2, 2048, 0, (("partition", "long"),)),
            "simulate",
            "slurm",
            str(tmp_path),
            (("A", "1"), ("B", "3")),
            60.0,
        ),
        Work(
            "merge",
            ("/bin/sh", "-c", "cat *.out > all"),
            ("sim 1; rm -rf /",),
            backend="local",
            cwd=f"{tmp_path}/sub",
            wall_limit=2,
        ),
    ]
    assert found.requests == {"night": ("merge",)} and found.backends == {"local": {"cpu": 2}}
    assert {work.backend for work in load_launch(str(tmp_path / "night.toml"), "sge").works} == {"sge"}


def test_the_same_in_json_as_a_list_and_as_lines(tmp_path: Path) -> None:
    rows = [{"name": "a", "command": ["true"]}, {"name": "b", "command": "true", "after": ["a"], "rule": "any"}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "b.json").write_text(json.dumps({"jobs": {row["name"]: {**row} for row in rows}}))
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    works = [load_launch(str(tmp_path / name)).works for name in ("a.json", "b.json", "c.jsonl")]
    assert works[0] == works[1] == works[2] and [work.after for work in works[0]] == [(), ("a",)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[", "JSON"),
        ("3", "expected a table"),
        ("{}", "jobs = 'nothing': expected a list of jobs"),
        ('{"job": []}', "job = .*expected one of backend, backends, rules, jobs, requests"),
        ('{"jobs": [], "jobs": []}', "the key once"),
        ("[3]", "job 1 = '3': expected a table with the keys of a job"),
        ('[{"command": "x"}]', r"\[job 1\] name = 'None'"),
        ('[{"name": "", "command": "x"}]', r"\[job 1\] name = \'\'"),
        ('[{"name": "a\\u001b[2J", "command": "x"}]', r"\[job 1\] name = 'a\\x1b"),
        ('[{"name": "a", "command": ""}]', r"\[job a\] command = ''"),
        ('[{"name": "a", "command": ["x", 3]}]', r"\[job a\] command.2 = '3'"),
        ('[{"name": "a", "command": ["x\\u0000"]}]', r"\[job a\] command"),
        ('[{"name": "a", "command": ["\\ud800"]}]', r"\[job a\] command"),
        ('[{"name": "a", "comand": "x"}]', r"comand = 'x': expected one of name, .*; did you mean command"),
        ('[{"name": "a", "command": "x", "resources": {"cpu": 0}}]', "resources: cpu = '0': expected a whole number"),
        ('[{"name": "a", "command": "x", "resources": 3}]', "resources = '3': expected a table"),
        ('[{"name": "a", "command": "x", "expected": -1}]', r"\[job a\] expected = '-1'"),
        ('[{"name": "a", "command": "x", "expected": NaN}]', "no such number"),
        ('[{"name": "a", "command": "x", "expected": true}]', r"\[job a\] expected = 'True'"),
        ('[{"name": "a", "command": "x", "wall_limit": 1e300}]', r"\[job a\] wall_limit"),
        ('[{"name": "a", "command": "x", "after": 3}]', r"\[job a\] after.* = '3'"),
        ('[{"name": "a", "command": "x", "after": [3]}]', r"\[job a\] after.* = '3'"),
        ('[{"name": "a", "command": "x", "environment": {"A=B": "1"}}]', r"\[job a\] environment.A=B = 'A=B'"),
        ('[{"name": "a", "command": "x", "environment": {"A": 1}}]', r"environment.A = '1'"),
        ('{"rules": {}, "jobs": [{"name": "a", "command": "x", "rule": "r"}]}', r"\[job a\] rule = 'r'"),
        ('{"rules": {"r": {"name": "x"}}, "jobs": []}', r"\[rules.r\] name"),
        ('{"backend": 3, "jobs": []}', "backend = '3'"),
        ('{"jobs": [{"name": "a", "command": "x"}], "requests": {"n": []}}', r"requests.n = .*a list of names"),
        ('{"backends": {"local": 3}, "jobs": [{"name": "a", "command": "x"}]}', "backends.local = '3'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_in_a_line(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "f.json").write_text(content)
    with pytest.raises(UsageError, match=said) as caught:
        load_launch(str(tmp_path / "f.json"))
    assert "f.json" in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_a_wrong_line_is_named_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('{"name": "a", "command": "x"}\n{"name": "b"')
    with pytest.raises(UsageError, match=r"f\.jsonl, line 2"):
        load_launch(str(tmp_path / "f.jsonl"))
    with pytest.raises(UsageError, match=r"no\.jsonl"):
        load_launch(str(tmp_path / "no.jsonl"))


def test_a_fifo_in_the_place_of_lines_holds_nobody(tmp_path: Path) -> None:
    """HOSTILE 5."""
    os.mkfifo(tmp_path / "f.jsonl")
    with pytest.raises(UsageError, match=r"f\.jsonl.*not a regular file"):
        load_launch(str(tmp_path / "f.jsonl"))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from(
    ["name", "rule", "command", "after", "resources", "expected", "cwd", "environment", "backend", "wall_limit", "x"]
)


sound = {"name": st.text("ab c;1", min_size=1, max_size=9), "command": st.just("x") | st.just(["x", "y"])}


@given(st.dictionaries(keys, values) | keys.flatmap(lambda key: all_but_one(sound, {key: values})))
def test_any_table_is_a_sound_job_or_is_refused(entry: dict[str, object]) -> None:
    try:
        work = JobReader("f.json", {}, "local", None, any_rule=True).job(entry, "job 1")
    except UsageError as refused:
        assert "\n" not in str(refused)
        return
    assert work.name.isprintable() and work.argv and work.cwd.startswith("/")
    Engine().add([work._replace(after=())])
