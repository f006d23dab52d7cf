"""The table of keys: its own defaults and examples are right, and the sections are what it says."""

from __future__ import annotations

import dataclasses

import pytest

from drainwise.siteconfig import SiteConfig
from drainwise.siteconfig.kinds import Key
from drainwise.siteconfig.schema import SECTIONS, keys


@pytest.mark.parametrize("key", list(keys()), ids=lambda key: f"{key.section}.{key.name}")
def test_every_default_and_example_is_a_value_of_its_kind(key: Key) -> None:
    """What the documentation shows could stand in a site file."""
    key.kind.parse(key.default or key.example)


def test_a_key_without_a_default_has_an_example() -> None:
    """The example file has something to show for each key."""
    assert [key.name for key in keys() if not key.default and not key.example] == []


def test_the_sections_are_those_of_the_configuration() -> None:
    """The table and the typed whole have the same sections."""
    assert list(SECTIONS) == [field.name for field in dataclasses.fields(SiteConfig)][1:-4]


def test_the_defaults_of_the_table_are_the_defaults_of_the_sections() -> None:
    """A file that leaves a key out and a SiteConfig() made in code agree."""
    config = SiteConfig()
    for key in keys():
        value = getattr(getattr(config, key.section), key.name)
        assert value == (key.kind.parse(key.default) if key.default else None)
