"""Asking for one URL: where it is followed to, and that it always comes to an end."""

from __future__ import annotations

import email.message
import socket

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features import read_http
from drainwise.features.read import open_features
from drainwise.features.read_http import HttpAnswer, ask


def answers(mocker: MockerFixture, *targets: str) -> list[str]:
    """Have each question but the last answered by a redirection; the URLs that were asked for."""
    asked: list[str] = []

    def exchange(parts: object, *_: object) -> HttpAnswer:
        asked.append(parts.geturl())  # type: ignore[attr-defined]
        headers = email.message.Message()
        if len(asked) > len(targets):
            return HttpAnswer(200, headers, b"8")
        headers["Location"] = targets[len(asked) - 1]
        return HttpAnswer(302, headers, b"")

    mocker.patch.object(read_http, "_exchange", autospec=True, side_effect=exchange)
    return asked


@pytest.mark.parametrize("target", ["https://wn/b/hs06", "../b/hs06"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_redirection_to_no_less_than_it_was_is_followed(mocker: MockerFixture, scheme: str, target: str) -> None:
    asked = answers(mocker, target)
    assert ask(f"{scheme}://wn/a/hs06", {}, 1.0).body == b"8"
    assert asked == [f"{scheme}://wn/a/hs06", target if "://" in target else f"{scheme}://wn/b/hs06"]


@pytest.mark.parametrize("before", [[], ["https://other/hs06"]])
def test_nobody_is_led_out_of_https(mocker: MockerFixture, before: list[str]) -> None:
    """What is asked for may be a secret's place; also after a redirection that was followed."""
    asked = answers(mocker, *before, "http://wn/hs06")
    with pytest.raises(FeatureError, match="redirected from https to 'http://wn/hs06'; not followed"):
        ask("https://wn/hs06", {}, 1.0)
    assert asked == ["https://wn/hs06", *before]


def test_redirections_come_to_an_end(mocker: MockerFixture) -> None:
    asked = answers(mocker, *["http://wn/hs06"] * 99)
    with pytest.raises(FeatureError, match=f"more than {read_http.MOST_REDIRECTS} redirects"):
        ask("http://wn/hs06", {}, 1.0)
    assert len(asked) == read_http.MOST_REDIRECTS + 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_one_that_takes_the_connection_and_says_nothing_is_not_waited_for(scheme: str) -> None:
    """Neither for an answer nor for the handshake before it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/hs06"
        with pytest.raises(FeatureError, match=r"no answer within 0\.05 s"):
            ask(url, {}, 0.05)


@pytest.mark.parametrize(
    "location",
    [
        "http://",
        "http:///x",
        "http://host:99999/x",
        "http://host:0/x",
        "http://user:word@host/x",
        "http://host/x?y=1",
        "http://host/x#y",
        "http://host/a b",
        "http://host/\n",
        "http://hoüst/",
        "http://[::1/x",
    ],
)
def test_a_base_url_is_checked_when_it_is_opened(location: str) -> None:
    with pytest.raises(UsageError):
        open_features(location)
