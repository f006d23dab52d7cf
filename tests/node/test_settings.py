"""The node's settings: what the site wrote, or an error that names the place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import ConfigurationError
from drainwise.features import SHUTDOWN_FILE
from drainwise.node.settings import NodeSettings, load, parse


def test_what_the_site_wrote() -> None:
    """Comments, blanks and blank lines are nothing; a whole rating stays whole."""
    found = parse(
        "# site\n\n hs06=240.5\nhs23 = 391\n wall_limit_secs = 86400 \nshutdown_file = /srv/x y\n", "node.conf"
    )
    assert (found.decimal("hs06"), found.decimal("hs23"), found.whole("wall_limit_secs")) == (240.5, 391, 86400)
    assert isinstance(found.decimal("hs23"), int)
    assert found.shutdown_file == "/srv/x y"
    assert (found.whole("jobslots"), found.decimal("cpufactor_lrms"), found.text("shutdown_command")) == (None,) * 3


def test_the_url_of_features_has_the_node_s_name() -> None:
    """For `%h`; without a URL there is none."""
    found = parse("features_url = https://%h:8443/\n", "f").features_url
    assert found == f"https://{os.uname().nodename}:8443/"
    assert NodeSettings().features_url is None


def test_defaults() -> None:
    """Without a file an hour and the usual place count."""
    assert NodeSettings().heartbeat_limit == 4200
    assert NodeSettings().shutdown_file == SHUTDOWN_FILE
    assert parse("heartbeat_limit_secs = 0\n", "f").heartbeat_limit == 0


@pytest.mark.parametrize(
    ("line", "key", "expected"),
    [
        ("wall_limit_secs = 1d", "wall_limit_secs", "whole number"),
        ("wall_limit_secs = -1", "wall_limit_secs", "whole number"),
        ("wall_limit_secs = \u0661", "wall_limit_secs", "whole number"),
        ("wall_limit_secs = " + "9" * 19, "wall_limit_secs", "whole number"),
        ("hs06 = 1e3", "hs06", "decimal"),
        ("hs06 = 1.2.3", "hs06", "decimal"),
        ("hs06 = .5", "hs06", "decimal"),
        ("hs06 =", "hs06", "decimal"),
        ("shutdown_command = poweroff", "shutdown_command", "absolute path"),
        ("features_url = host:8443", "features_url", "URL"),
        ("features_url = https://host/ x", "features_url", "URL"),
        ("features_url = https://host/$x", "features_url", "URL"),
        ("hs6 = 1", "hs6", "key that this version knows"),
        ("just words", "just words", "key = value"),
    ],
)
def test_a_wrong_line_is_named(line: str, key: str, expected: str) -> None:
    """File, key, value and what was expected."""
    with pytest.raises(ConfigurationError, match=expected) as caught:
        parse(f"hs23 = 1\n{line}\n", "/etc/drainwise/node.conf")
    assert caught.value.file == "/etc/drainwise/node.conf"
    assert caught.value.key == key


lines = st.sampled_from(["", "# x", "hs06 = 240.5", "hs23 = 0", "shutdown_file = /x", "heartbeat_limit = 60"])


@given(
    st.text(max_size=200)
    | st.lists(lines, unique=True).map("\n".join)
    | st.builds("{}{}".format, lines, st.text(max_size=2))
)
def test_any_text_is_settings_or_an_error(text: str) -> None:
    """Nothing else comes out, and what comes out can be used."""
    try:
        found = parse(text, "f")
    except ConfigurationError as error:
        assert len(str(error)) < 600
        return
    assert found.heartbeat_limit >= 0
    assert found.shutdown_file.startswith("/")
    assert all(found.decimal(key) is None or found.decimal(key) >= 0 for key in ("hs06", "hs23"))  # type: ignore[operator]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Missing, a directory, a FIFO that nobody writes to: an error at once, never a wait."""
    with pytest.raises(FileNotFoundError):
        load(str(tmp_path / "missing"))
    with pytest.raises(IsADirectoryError):
        load(str(tmp_path))
    os.mkfifo(tmp_path / "fifo")
    assert load(str(tmp_path / "fifo")).heartbeat_limit == 4200


def test_other_characters_than_ascii(tmp_path: Path) -> None:
    """They are fine in comments and nowhere else."""
    (tmp_path / "a").write_bytes(b"# caf\xc3\xa9\nhs06 = 1\n")
    assert load(str(tmp_path / "a")).decimal("hs06") == 1
    (tmp_path / "b").write_bytes(b"shutdown_file = /caf\xc3\xa9\n")
    with pytest.raises(ConfigurationError, match="absolute path"):
        load(str(tmp_path / "b"))
