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
import json, os, sys
for question in sys.stdin:
    os.environ['CONDOR_CONFIG'], names = json.loads(question)
    import htcondor2
    htcondor2.reload_config()
    found = {name: htcondor2.param.get(name) for name in names}
    values = {name: '' if value is None else value for name, value in found.items()}
    written = {name: v if isinstance(v, str) else htcondor2.param.get('WRITTEN_' + name) for name, v in values.items()}
    print(json.dumps(written), flush=True)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """Give the values of knobs, by lower-case name, under a configuration text; unset ones are left out.

    One process reads one configuration after the other; each question is asked once.
    """
    command = [sys.executable, "-B", "-c", _ASK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        questions, found = process.stdin, process.stdout
        assert questions is not None and found is not None

        @functools.cache
        def ask(configuration: str, names: tuple[str, ...]) -> dict[str, str]:
            file = tmp_path_factory.mktemp("condor") / "condor_config"
            written = "".join(f"WRITTEN_{name} = $({name})\n" for name in names)
            file.write_text(f"LOG = /var/log/condor\nEXECUTE = /var/lib/condor/execute\n{configuration}\n{written}")
            print(json.dumps([str(file), names]), file=questions, flush=True)
            return {name.casefold(): str(value) for name, value in json.loads(found.readline()).items() if value}

        yield lambda configuration, names: dict(ask(configuration, tuple(names)))


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
