"""What a daemon answers for its knobs: a drop-in resolved by HTCondor's own configuration library, without a daemon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable

import pytest

Answers = Callable[[str, Iterable[str]], "dict[str, str]"]

_ASK = "import htcondor2, json, sys; print(json.dumps({k: htcondor2.param.get(k) or '' for k in sys.argv[1:]}))"


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Give the values of knobs, by lower-case name, under a configuration text; unset ones are left out."""

    def ask(configuration: str, names: Iterable[str]) -> dict[str, str]:
        file = tmp_path_factory.mktemp("condor") / "condor_config"
        file.write_text("LOG = /var/log/condor\nEXECUTE = /var/lib/condor/execute\n" + configuration)
        environment = {**os.environ, "CONDOR_CONFIG": str(file)}
        command = [sys.executable, "-B", "-c", _ASK, *names]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return {name.casefold(): str(value) for name, value in json.loads(ran.stdout).items() if value}

    return ask
