"""The weights of scouts, under the names that PanDA's gdpconfig has for them; a wrong value is named.

gdpconfig has many more names than those that are used here, so one that is not is told and stops nothing. A name that
ends with the activity (`SCOUT_SHORT_EXECTIME_user`) counts before the same name without it. Source: JEDI's
documentation of the dynamic optimization of task parameters, and its table of gdpconfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from drainwise.common.typed_table import Kind, in_file, number, optional, read_value, truth, whole

LARGEST_SETTING = 1e15


@dataclass(frozen=True)
class Settings:
    """Thresholds in JEDI's units; a field is JEDI's name in small letters. None: the rule is off.

    Ranks are percentiles. scout_ramcount_margin: per cent. scout_ramcount_min: MB. scout_disk_io_cap: kB/s.
    scout_mem_leak_per_core: kB/s. scout_short_exectime: minutes. scout_num_short and scout_num_cpu_inefficient: tenths
    of the scouts. scout_thr_*, new_jobs_cutoff: expected new jobs. scout_low_cpu_efficiency, min_cpu_efficiency: per
    cent. scout_max_io_intensity_for_exhausted: kB/s. ram_thr_exausted: GB per core, 1000-based.
    scout_wrong_cputime_threshold: factor. The rest: jobs, attempts or a share of 1.
    """

    scout_cputime_rank: float = 95
    scout_ramcount_rank: float = 75
    scout_ramcount_margin: float = 10
    scout_ramcount_min: float | None = None
    scout_disk_io_cap: float | None = None
    scout_mem_leak_per_core: float | None = 10
    scout_short_exectime: float = 20
    scout_num_short: float = 5
    scout_thr_short: float | None = 1000
    scout_change_sr: bool = False
    scout_low_cpu_efficiency: float = 30
    scout_num_cpu_inefficient: float = 5
    scout_thr_cpu_inefficient: float | None = 1000
    scout_max_io_intensity_for_exhausted: float | None = None
    scout_wrong_cputime_threshold: float = 2
    ram_thr_exausted: float = 4
    cap_running_user_jobs: float | None = None
    task_max_attempt: float | None = 3
    min_cpu_efficiency: float | None = 30
    new_jobs_cutoff: float | None = 20
    scouts: int = 10
    first_jobs: int = 100
    max_failure_rate: float = 0.5
    max_broker_failures: float | None = 10
    max_external_failures: float | None = 5
    abuse_factor: float = 2
    outsized_factor: float = 10

    def __post_init__(self) -> None:
        for field in fields(self):
            read_value(field.name.upper(), getattr(self, field.name), _KINDS[field.name], in_file("settings"))


_PER_CENT = {"scout_cputime_rank", "scout_ramcount_rank", "scout_low_cpu_efficiency", "min_cpu_efficiency"}
_OPTIONAL = {field.name for field in fields(Settings) if "None" in str(field.type)}


def _kind(name: str) -> Kind[Any]:
    if name == "scout_change_sr":
        return truth()
    if name in {"scouts", "first_jobs"}:
        return whole(1, 1_000_000)
    amount = number(0, 100 if name in _PER_CENT else 1 if name == "max_failure_rate" else LARGEST_SETTING)
    return optional(amount) if name in _OPTIONAL else amount


_KINDS = {field.name: _kind(field.name) for field in fields(Settings)}


def settings_from(found: Mapping[str, object], file: str, activity: str = "") -> tuple[Settings, tuple[str, ...]]:
    """Return the settings that `found` has under JEDI's names, the others at their defaults; and the names not used.

    activity: such as `user` or `managed`; keys of other activities change nothing, nor do names that no rule knows.
    Raises ConfigurationError, which names file, key and value, for a value that is none.
    """
    known = {field.name.upper(): field.name for field in fields(Settings)}
    values: dict[str, Any] = {}
    unused: list[str] = []
    suffix = f"_{activity}" if activity else ""
    # Those with the activity come last, so that they hold.
    for key in sorted(found, key=lambda key: bool(suffix) and key.endswith(suffix)):
        name = known.get(key) or known.get(key[: -len(suffix)] if suffix and key.endswith(suffix) else "")
        if name is None:
            unused.append(key)
        else:
            values[name] = read_value(key, found[key], _KINDS[name], in_file(file))
    return Settings(**values), tuple(sorted(unused))
