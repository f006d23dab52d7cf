"""What is known about a host and a job before it becomes text: immutable, and None where it is not known.

A value of the wrong type or out of range becomes None as well, and is named in `refused`: one odd number in a job's
description must cost that one key, not all of them. Fields are called as the keys of `keys.py` and take type and
range from there.
"""

from __future__ import annotations

from drainwise.fact import Fact, set_field
from drainwise.features.keys import BY_NAME, DECIMAL, INTEGER, LARGEST, LARGEST_DECIMAL, PATH, Key

LONGEST_TEXT = 255
"""Characters of a job id or a path."""


def sound_text(text: str) -> bool:
    """Say whether this is a value a key file may hold: printable ASCII, no blanks, not empty, not too long."""
    return 0 < len(text) <= LONGEST_TEXT and text.isascii() and text.isprintable() and " " not in text


def is_sound(key: Key, value: object) -> bool:
    """Say whether `value` has the type and the range of `key`; booleans are not numbers here, nor is NaN."""
    if isinstance(value, bool):
        return False
    if key.kind == INTEGER:
        return isinstance(value, int) and key.minimum <= value <= LARGEST
    if key.kind == DECIMAL:
        return isinstance(value, (int, float)) and key.minimum <= value <= LARGEST_DECIMAL
    return isinstance(value, str) and sound_text(value) and (key.kind != PATH or value.startswith("/"))


def _shown(value: object) -> str:
    if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
        return "an integer of more than 63 bits"  # str() of a huge one is slow, and refused by newer Pythons
    return ascii(value[:40] if isinstance(value, (str, bytes)) else value)[:40]


class Facts(Fact):
    """Base of both: set once, at construction. `refused` names what was given but not sound, as `field=value`."""

    __slots__ = ("refused",)
    refused: tuple[str, ...]

    def __repr__(self) -> str:
        known = [f"{name}={getattr(self, name)!r}" for name in self.__slots__ if getattr(self, name) is not None]
        return f"{type(self).__name__}({', '.join(known)})"

    def _fill(self, given: dict[str, object]) -> None:
        refused = []
        for name, value in given.items():
            if value is not None and not is_sound(BY_NAME[name], value):
                refused.append(f"{name}={_shown(value)}"[:60])
                value = None  # noqa: PLW2901 - unsound and unknown are the same from here on
            set_field(self, name, value)
        set_field(self, "refused", tuple(refused))


class HostFacts(Facts):
    """The host: cores, score, notice.

    Parameters: `total_cpu`, `phys_cores`, `log_cores` in cores (`log_cores` is 0 when hyper-threading is off);
    `jobslots` in slots; `hs06`, `hs23` scores of the whole host (`hs23` only when the site measured HEPScore23);
    `shutdown_command` an absolute path, on virtual machines only; `grace_secs` in seconds.
    """

    __slots__ = ("grace_secs", "hs06", "hs23", "jobslots", "log_cores", "phys_cores", "shutdown_command", "total_cpu")
    total_cpu: int | None
    jobslots: int | None
    phys_cores: int | None
    log_cores: int | None
    hs06: float | None
    hs23: float | None
    shutdown_command: str | None
    grace_secs: int | None

    def __init__(
        self,
        *,
        total_cpu: int | None = None,
        jobslots: int | None = None,
        phys_cores: int | None = None,
        log_cores: int | None = None,
        hs06: float | None = None,
        hs23: float | None = None,
        shutdown_command: str | None = None,
        grace_secs: int | None = None,
    ) -> None:
        self._fill(
            {
                "total_cpu": total_cpu,
                "jobslots": jobslots,
                "phys_cores": phys_cores,
                "log_cores": log_cores,
                "hs06": hs06,
                "hs23": hs23,
                "shutdown_command": shutdown_command,
                "grace_secs": grace_secs,
            }
        )


class JobFacts(Facts):
    """The job: its share of the host and its limits.

    Parameters: `allocated_cpu` in cores; `jobstart_secs` in UNIX seconds; `job_id` as the batch system prints it;
    `wall_limit_secs` (not multiplied by cores) and `cpu_limit_secs` (over all cores) in real seconds;
    `cpufactor_lrms` (1 = reference machine); `max_rss_bytes`, `max_swap_bytes`, `scratch_limit_bytes` in bytes;
    `grace_secs_job` in seconds; `hs06_job` only where the site computes the share otherwise than by cores.
    """

    __slots__ = (
        "allocated_cpu",
        "cpu_limit_secs",
        "cpufactor_lrms",
        "grace_secs_job",
        "hs06_job",
        "job_id",
        "jobstart_secs",
        "max_rss_bytes",
        "max_swap_bytes",
        "scratch_limit_bytes",
        "wall_limit_secs",
    )
    allocated_cpu: int | None
    jobstart_secs: int | None
    job_id: str | None
    wall_limit_secs: int | None
    cpu_limit_secs: int | None
    cpufactor_lrms: float | None
    max_rss_bytes: int | None
    max_swap_bytes: int | None
    scratch_limit_bytes: int | None
    grace_secs_job: int | None
    hs06_job: float | None

    def __init__(
        self,
        *,
        allocated_cpu: int | None = None,
        jobstart_secs: int | None = None,
        job_id: str | None = None,
        wall_limit_secs: int | None = None,
        cpu_limit_secs: int | None = None,
        cpufactor_lrms: float | None = None,
        max_rss_bytes: int | None = None,
        max_swap_bytes: int | None = None,
        scratch_limit_bytes: int | None = None,
        grace_secs_job: int | None = None,
        hs06_job: float | None = None,
    ) -> None:
        self._fill(
            {
                "allocated_cpu": allocated_cpu,
                "jobstart_secs": jobstart_secs,
                "job_id": job_id,
                "wall_limit_secs": wall_limit_secs,
                "cpu_limit_secs": cpu_limit_secs,
                "cpufactor_lrms": cpufactor_lrms,
                "max_rss_bytes": max_rss_bytes,
                "max_swap_bytes": max_swap_bytes,
                "scratch_limit_bytes": scratch_limit_bytes,
                "grace_secs_job": grace_secs_job,
                "hs06_job": hs06_job,
            }
        )
