"""A batch system is found by its name, be it built in or of an installed package; no command knows it otherwise."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.cli import check, config
from drainwise.cli.command_line.options import add_options, build
from drainwise.cli.pool_options import POOL, system_of
from drainwise.common.plugin_entries import PluginEntries
from drainwise.facts.errors import UsageError
from drainwise.htcondor.system import HTCondor
from drainwise.slurm.system import Slurm
from drainwise.systems import System, find
from drainwise_launch.backends import openers
from made_up_package import put_package

CODE = """\
from drainwise.systems import System

class Toy(System):
    name = "toy"

    def missing(self, site):
        return ""

    def open_pool(self, site, directory):
        return directory
"""

Install = Callable[[str], "list[str]"]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a package with the system `toy` on sys.path; the list takes the warnings."""

    def put(code: str) -> list[str]:
        put_package(tmp_path, "toy", f"[{find.GROUP}]\ntoy = toy_code:Toy\n", code)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "toy_code", raising=False)
        said: list[str] = []
        monkeypatch.setattr(find, "_installed", PluginEntries(find.GROUP, find._accept, find.TAKEN, said.append))
        return said

    return put


def chosen(*words: str) -> tuple[str, list[str]]:
    """The system that a command line gets, and what is said of it."""
    parser = argparse.ArgumentParser()
    add_options(parser, POOL)
    said: list[str] = []
    return system_of(parser.parse_args(words), said.append).name, said


def test_an_installed_system_is_asked_for_by_its_name(install: Install) -> None:
    install(CODE)
    assert chosen("--pool", "toy") == ("toy", [])


def test_an_unknown_name_lists_the_names_there_are(install: Install) -> None:
    """Also one that is known and has no pool."""
    install(CODE)
    for name in ("pbs", "sge"):
        with pytest.raises(UsageError, match=f"^--pool {name}: expected one of htcondor, slurm, toy, local$"):
            chosen("--pool", name)


def test_one_that_is_configured_here_comes_before_the_local_one_and_after_the_built_in_ones(
    install: Install, mocker: MockerFixture
) -> None:
    said = install(CODE)
    mocker.patch.object(HTCondor, "missing", autospec=True, return_value="no HTCondor here")
    slurm = mocker.patch.object(Slurm, "missing", autospec=True, return_value="no Slurm here")
    assert chosen() == ("toy", [])
    slurm.return_value = ""
    assert chosen() == ("slurm", [])
    assert not said


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("import nothing_like_this", "ModuleNotFoundError: No module named 'nothing_like_this'"),
        ("Toy = 7", "TypeError: expected a drainwise.systems.System, found int"),
        (CODE.replace('"toy"', '"teddy"'), "TypeError: calls itself 'teddy'"),
    ],
)
def test_a_broken_one_is_left_out_and_the_others_serve(
    install: Install, mocker: MockerFixture, code: str, fault: str
) -> None:
    said = install(code)
    mocker.patch.object(HTCondor, "missing", autospec=True, return_value="no HTCondor here")
    mocker.patch.object(Slurm, "missing", autospec=True, return_value="no Slurm here")
    assert chosen()[0] == "local"
    assert said == [f"'toy' (drainwise.systems) of package toy 1.0 is left out: {fault}"]
    with pytest.raises(UsageError, match=r"expected one of htcondor, slurm, local$"):
        chosen("--pool", "toy")
    assert len(said) == 1


def test_one_that_fails_when_it_is_asked_hinders_no_other(
    install: Install, mocker: MockerFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--pool auto` goes on; `drainwise check` and `config` serve the built-in systems."""
    mocker.patch.object(HTCondor, "missing", autospec=True, return_value="no HTCondor here")
    mocker.patch.object(Slurm, "missing", autospec=True, return_value="no Slurm here")
    options = """
    def add_check_options(self, parser):
        parser.add_argument("--site")
    def add_render_options(self, parser):
        raise OSError("gone")
    findings = render = System.missing
"""
    install(CODE.replace('return ""', "return 1 / 0") + options)
    assert chosen()[0] == "local"
    assert "toy: ZeroDivisionError: division by zero" in capsys.readouterr().err
    for module in (check, config):
        parser = argparse.ArgumentParser()
        name = module.__name__.rpartition(".")[2]
        build(parser.add_subparsers(), name, module.COMMAND)
        assert parser.parse_args([name, "slurm", *(["--role", "node"] if module is config else [])])
        assert capsys.readouterr().err.startswith("drainwise: toy: ")


def test_a_name_that_a_command_has_for_something_else_is_no_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("auto", "example", "keys")
    put_package(tmp_path, "toys", f"[{find.GROUP}]\n" + "".join(f"{name} = toys_code:Toy\n" for name in names), "")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(find, "_installed", type(find._installed)(find.GROUP, find._accept, find.TAKEN))
    assert not list(find._each_installed())
    why = "(drainwise.systems) of package toys 1.0 is left out: drainwise has one of this name itself"
    assert sorted(capsys.readouterr().err.splitlines()) == [f"drainwise: '{name}' {why}" for name in names]


def test_no_other_package_is_looked_at_when_a_built_in_one_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command starts as fast with plug-ins as without."""
    monkeypatch.setattr(find, "_installed", None)
    assert chosen("--pool", "slurm") == ("slurm", [])


def test_a_system_offers_what_it_overrides() -> None:
    assert [one.name for one in find.offering(System.findings)] == ["htcondor", "slurm"]
    assert list(openers()) == ["htcondor", "slurm", "sge", "local-batch", "local"]
    assert not System().offers(System.timings)
