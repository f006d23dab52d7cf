"""Whether a slot that is asked to go waits for its deadline, told from what its startd has for its retirement."""

from __future__ import annotations

import pytest

from drainwise.htcondor.pool.knobs import why_at_once
from drainwise.htcondor.setup.render import drop_in_path, render
from drainwise.siteconfig import SiteConfig

PLAIN = "restart its startd if a drain was cancelled there, else install the drop-in, after what sets"


def test_a_node_with_the_drop_in_waits_for_the_deadline() -> None:
    """Spelled as HTCondor may print it again."""
    [text] = [file.text for file in render(SiteConfig(), "execute") if file.path == drop_in_path("execute")]
    [line] = [line for line in text.splitlines() if line.startswith("MAXJOBRETIREMENTTIME")]
    expression = line.partition("=")[2].strip()
    assert why_at_once(expression) == why_at_once(expression.upper()) == ""


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("0", PLAIN),  # a drain that was cancelled, or HTCondor's default
        ("3600", PLAIN),
        ("3600 * 24", "install the drop-in there, after what sets MAXJOBRETIREMENTTIME"),
        ("undefined", "install the drop-in there"),
        (None, "install the drop-in of drainwise there"),
    ],
)
def test_any_other_node_would_not_and_it_is_said_what_to_do(written: str | None, why: str) -> None:
    assert why in why_at_once(written)
    assert len(why_at_once("(" * 9000)) < 250, "whatever a node has there"
