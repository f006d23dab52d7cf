"""`.pilot.ad`, written: for pilots."""

from __future__ import annotations

from drainwise.features.local_file import replace_file
from drainwise.pilotad.attributes import ATTRIBUTES, CORE_SECONDS, CORES, FLAG, PILOT_AD, SCALE, scaled
from drainwise.pilotad.job_directory import JobDirectory, not_written
from drainwise.pilotad.report import PilotReport


def pilot_ad_text(report: PilotReport, cores: int) -> bytes:
    """The file's content for a lease of `cores` ≥ 1: a line for each known value; unknown ones are left out."""
    lines = []
    for row in ATTRIBUTES:
        value = getattr(report, row.field)
        if value is not None:
            lines.append(f"{row.ad_name} = {_text(row.kind, value, cores)}\n")
    return "".join(lines).encode("ascii")


def write_pilot_ad(directory: int | str, report: PilotReport, cores: int) -> None:
    """Put `.pilot.ad` into `directory` (a descriptor or a path), whole at every moment; its mtime is the heartbeat.

    cores: of the lease. Raises FeatureError; the old file is still there then.
    """
    content = pilot_ad_text(report, cores)
    with JobDirectory(directory) as dir_fd:
        try:
            replace_file(PILOT_AD, content, dir_fd)
        except OSError as error:
            raise not_written(PILOT_AD, error) from error


def _text(kind: str, value: float, cores: int) -> str:
    if kind == FLAG:
        return "True" if value else "False"
    if kind == CORES:
        return str(max(0, min(SCALE, scaled(value, cores))))
    return str(scaled(value, cores) if kind == CORE_SECONDS else value)
