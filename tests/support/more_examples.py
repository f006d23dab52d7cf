"""More examples, or fewer, than the others: for a property of which few find the place, or of which one takes long."""

from __future__ import annotations

from hypothesis import settings


def more_examples(times: float) -> settings:
    """Settings with `times` the examples of the profile that is used."""
    return settings(max_examples=round(times * settings().max_examples))
