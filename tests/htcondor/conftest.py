"""What a daemon answers for its knobs: a drop-in resolved by HTCondor's own configuration library, without a daemon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable

import pytest

Answers = Callable[[str, Iterable[str]], "dict[str, str]"]

# What the library knows as a number it evaluates; a daemon tells it as it is written, which another name for it shows.
_ASK = """
import htcondor2, json, sys
values = {name: htcondor2.param.get(name) or '' for name in sys.argv[1:]}
written = {name: v if isinstance(v, str) else htcondor2.param.get('WRITTEN_' + name) for name, v in values.items()}
print(json.dumps(written))
"""


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Give the values of knobs, by lower-case name, under a configuration text; unset ones are left out."""

    def ask(configuration: str, names: Iterable[str]) -> dict[str, str]:
        file = tmp_path_factory.mktemp("condor") / "condor_config"
        names = list(names)
        written = "".join(f"WRITTEN_{name} = $({name})\n" for name in names)
        file.write_text(f"LOG = /var/log/condor\nEXECUTE = /var/lib/condor/execute\n{configuration}\n{written}")
        environment = {**os.environ, "CONDOR_CONFIG": str(file)}
        command = [sys.executable, "-B", "-c", _ASK, *names]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return {name.casefold(): str(value) for name, value in json.loads(ran.stdout).items() if value}

    return ask
