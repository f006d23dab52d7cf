"""A plain pilot that nobody changed: a shell script that runs two payloads, which write what they have used so far."""

from __future__ import annotations

from pathlib import Path

PYTHON = (
    r"import sys,time\nwhile True:\n for _ in range(200000): pass\n"
    r" open(sys.argv[1],'w').write(str(time.process_time()))"
)
SHELL = 'while :; do i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; times > "$1"; done'


def plain_pilot(place: str, seconds: int, between: int = 0) -> str:
    """Return the script: both payloads run for `seconds`, the second begins `between` seconds after the first."""
    return f"""\
printf "{PYTHON}" > {place}/payload.py
echo '{SHELL}' > {place}/payload.sh
timeout {seconds} python3 {place}/payload.py {place}/python.cpu &
sleep {between}
timeout {seconds} sh {place}/payload.sh {place}/shell.cpu &
wait
sleep 600
"""


def used(place: Path) -> float:
    """Return the CPU seconds that both payloads have used, as they wrote last."""
    return float((place / "python.cpu").read_text() or 0) + _of_shell((place / "shell.cpu").read_text())


def _of_shell(times: str) -> float:
    """Return the shell's own user and system time out of what `times` prints: `0m1.230000s 0m0.010000s`."""
    parts = (one.rstrip("s").split("m") for one in times.partition("\n")[0].split())
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in parts)
