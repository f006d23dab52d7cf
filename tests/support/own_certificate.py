"""A certificate for loopback that nobody has signed but itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def own_certificate(directory: Path) -> tuple[str, str]:
    """Make it and its key below `directory`; both paths."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make a certificate")
    certificate, key = str(directory / "certificate.pem"), str(directory / "key.pem")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    named = ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, *named, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key
