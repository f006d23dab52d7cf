"""Reading the site file: every fault is refused with its place and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from drainwise.errors import ConfigurationError
from drainwise.siteconfig.schema import SECTIONS, Key, SiteConfig, keys
from drainwise.siteconfig.units import format_duration
from drainwise.written_file import read_text

DEFAULT_SITE_FILE = "/etc/drainwise/site.ini"

_LONGEST_FILE = 1 << 20  # bytes; a site file has a page
_LONGEST_SHOWN = 80


def load(path: str) -> SiteConfig:
    """The site's settings from the INI file `path`; what the file leaves out has its default.

    Raises ConfigurationError for a file that cannot be read, is not UTF-8 or has a line, section, key or value that is
    not in the table of keys, and for values that contradict each other.
    """
    table = {(key.section, key.name): key for key in keys()}
    written = _written(
        path, read_text(path, _LONGEST_FILE, "a readable text file", "a site file of a page or two"), table
    )
    sections = {
        section: kind(
            **{
                name: _value(path, table[where, name], text)
                for (where, name), text in written.items()
                if where == section
            }
        )
        for section, kind in SECTIONS.items()
    }
    config = SiteConfig(file=path, **sections)
    _check_between_keys(config, written)
    return config


def _written(file: str, text: str, table: Mapping[tuple[str, str], Key]) -> dict[tuple[str, str], str]:
    """The values by section and key as they stand in the file, each once and each known to the table."""
    written: dict[tuple[str, str], str] = {}
    seen: set[str] = set()
    section = ""
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip(" \t\r")
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            section = _section(file, line, number, seen)
            seen.add(section)
            continue
        name, equals, value = line.partition("=")
        name, value = name.rstrip(" \t"), _without_comment(value)
        if not equals or not name or not section:
            wanted = "key = value" if section else "a [section] before the first key"
            raise ConfigurationError(file, section, "", line[:_LONGEST_SHOWN], f"{wanted} on line {number}")
        if (section, name) not in table:
            raise ConfigurationError(
                file, section, name[:_LONGEST_SHOWN], value[:_LONGEST_SHOWN], _known_keys(section, name, table)
            )
        if (section, name) in written:
            once = f"the key once (again on line {number})"
            raise ConfigurationError(file, section, name, value[:_LONGEST_SHOWN], once)
        written[section, name] = value
    return written


def _section(file: str, line: str, number: int, seen: set[str]) -> str:
    name = _without_comment(line)[1:-1]
    if not _without_comment(line).endswith("]") or name not in SECTIONS:
        near = difflib.get_close_matches(name, SECTIONS, n=1)
        meant = f"[{near[0]}]" if near else "a section of " + ", ".join(f"[{known}]" for known in SECTIONS)
        raise ConfigurationError(file, "", "", line[:_LONGEST_SHOWN], f"{meant} on line {number}")
    if name in seen:
        raise ConfigurationError(file, "", "", line[:_LONGEST_SHOWN], f"the section once (again on line {number})")
    return name


def _without_comment(text: str) -> str:
    """The text before a blank and `#` or `;`, without blanks around it."""
    for mark in (" #", " ;", "\t#", "\t;"):
        text = text.partition(mark)[0]
    return text.strip(" \t")


def _known_keys(section: str, name: str, table: Mapping[tuple[str, str], Key]) -> str:
    here = [known for where, known in table if where == section]
    near = difflib.get_close_matches(name, here, n=1)
    elsewhere = [where for where, known in table if known == name]
    if near:
        return f"a known key, perhaps {near[0]}"
    if elsewhere:
        return f"this key in section [{elsewhere[0]}]"
    return "one of the keys " + ", ".join(here)


def _value(file: str, key: Key, text: str) -> object:
    try:
        value: object = key.kind.parse(text)
    except ValueError:
        raise ConfigurationError(file, key.section, key.name, text[:_LONGEST_SHOWN], key.kind.expected) from None
    return value


def _check_between_keys(config: SiteConfig, written: Mapping[tuple[str, str], str]) -> None:
    """Refuse values that are right each by itself and contradict each other.

    A file that sets keys of one batch system only is not measured by the defaults of the other.
    """

    def require(sound: bool, section: str, name: str, seconds: int, expected: str) -> None:
        if not sound:
            text = written.get((section, name), format_duration(seconds))
            raise ConfigurationError(config.file, section, name, text, expected)

    reclaim, notice = config.reclaim, config.features.grace_job
    limit = format_duration(reclaim.max_grace)
    require(reclaim.grace <= reclaim.max_grace, "reclaim", "grace", reclaim.grace, f"at most max_grace, {limit}")
    below = f"less than grace, {format_duration(reclaim.grace)}"  # else nobody could be gone in time
    require(reclaim.margin < reclaim.grace, "reclaim", "margin", reclaim.margin, below)
    if notice is not None:
        least = f"at least [features] grace_job, {format_duration(notice)}"
        require(reclaim.grace >= notice, "reclaim", "grace", reclaim.grace, least)
        require(reclaim.horizon >= notice, "reclaim", "horizon", reclaim.horizon, least)
    agent = config.agent
    least = f"at least period, {format_duration(agent.period)}"
    require(agent.longest_pause >= agent.period, "agent", "longest_pause", agent.longest_pause, least)
    systems = {"htcondor": _check_htcondor, "slurm": _check_slurm}
    used = [system for system in systems if any(section == system for section, _ in written)]
    for system in used or systems:
        systems[system](config, require)


def _check_htcondor(config: SiteConfig, require: Callable[[bool, str, str, int, str], None]) -> None:
    condor, believed, grace = config.htcondor, config.pilot.heartbeat_limit, config.reclaim.grace
    told = f"less than [reclaim] grace, {format_duration(grace)}"
    vacate, margin = condor.max_vacate_time, config.reclaim.margin
    if vacate is not None:
        require(vacate < grace, "htcondor", "max_vacate_time", vacate, told)
        meant = f"at most [reclaim] margin, {format_duration(margin)}"  # else it would not get what it needs
        require(vacate <= margin, "htcondor", "max_vacate_time", vacate, meant)
    often = f"less than [pilot] heartbeat_limit, {format_duration(believed)}"
    require(condor.cron_period < believed, "htcondor", "cron_period", condor.cron_period, often)
    soon = f"at most update_interval, {format_duration(condor.update_interval)}"
    first = condor.initial_update_interval
    require(first <= condor.update_interval, "htcondor", "initial_update_interval", first, soon)
    require(condor.update_interval < grace, "htcondor", "update_interval", condor.update_interval, told)


def _check_slurm(config: SiteConfig, require: Callable[[bool, str, str, int, str], None]) -> None:
    slurm, believed, grace = config.slurm, config.pilot.heartbeat_limit, config.reclaim.grace
    often = f"less than [pilot] heartbeat_limit, {format_duration(believed)}"
    require(slurm.agent_period < believed, "slurm", "agent_period", slurm.agent_period, often)
    told = f"less than [reclaim] grace, {format_duration(grace)}"
    require(slurm.agent_period < grace, "slurm", "agent_period", slurm.agent_period, told)
    patience = f"less than prolog_time_limit, {format_duration(slurm.prolog_time_limit)}"
    require(slurm.limits_wait < slurm.prolog_time_limit, "slurm", "limits_wait", slurm.limits_wait, patience)
