"""HTCondor's own libraries without a daemon: what one answers for its knobs, and a pool that says nothing."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

Answers = Callable[[str, Iterable[str]], "dict[str, str]"]
Silent = Callable[[str], "subprocess.CompletedProcess[str]"]
_PLUGINS = str(Path(__file__).parents[2] / "plugins")

# What the library knows as a number it evaluates; a daemon tells it as it is written, which another name for it shows.
_ASK = """
import htcondor2, json, sys
values = {name: htcondor2.param.get(name) or '' for name in sys.argv[1:]}
written = {name: v if isinstance(v, str) else htcondor2.param.get('WRITTEN_' + name) for name, v in values.items()}
print(json.dumps(written))
"""


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Give the values of knobs, by lower-case name, under a configuration text; unset ones are left out.

    Each question is asked once.
    """

    @functools.cache
    def ask(configuration: str, names: tuple[str, ...]) -> dict[str, str]:
        file = tmp_path_factory.mktemp("condor") / "condor_config"
        written = "".join(f"WRITTEN_{name} = $({name})\n" for name in names)
        file.write_text(f"LOG = /var/log/condor\nEXECUTE = /var/lib/condor/execute\n{configuration}\n{written}")
        environment = {**os.environ, "CONDOR_CONFIG": str(file)}
        command = [sys.executable, "-B", "-c", _ASK, *names]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return {name.casefold(): str(value) for name, value in json.loads(ran.stdout).items() if value}

    return lambda configuration, names: dict(ask(configuration, tuple(names)))


@pytest.fixture
def in_a_silent_pool(tmp_path: Path) -> Iterator[Silent]:
    """Run a program of Python in a pool whose collector and schedd take every connection and never say a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (tmp_path / "address").write_text(f"<127.0.0.1:{port}>\n$CondorVersion: 25.14.1 2026-09-24 $\n")
        config = tmp_path / "condor_config"
        places = f"LOCAL_DIR = {tmp_path}\nSCHEDD_ADDRESS_FILE = {tmp_path}/address\n"
        config.write_text(f"COLLECTOR_HOST = 127.0.0.1:{port}\n{places}")
        ours = {"CONDOR_CONFIG": str(config), "PYTHONPATH": _PLUGINS, "PYTHONDONTWRITEBYTECODE": "1"}

        def run(program: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-c", program]
            return subprocess.run(command, env={**os.environ, **ours}, capture_output=True, text=True, check=False)

        yield run
