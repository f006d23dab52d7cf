"""Ask daemons for ads by HTCondor's Python bindings, and carry many ads to the process that decides.

Only attributes that are used are asked for, in a process that ends after one question (`bounded_call.within`): the
bindings may hang. They are imported there, when they are first used: each question reads the configuration as it is
then, and a command that asks nothing does not need them.

Taking each attribute of each ad through the bindings costs most of a snapshot of a large pool. The bindings write a
whole ad as JSON in the time of a few attributes, and Python reads that while they write the next bundle.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from drainwise.common.bounded_call import each_within
from drainwise.facts.errors import PoolError, PoolUnreachable, UsageError
from drainwise.htcondor.ads.values import DAEMON_ADDRESS, Ad, shown

T = TypeVar("T")

COLLECTOR = "the collector (COLLECTOR_HOST of HTCondor's configuration)"
"""The name of the pool's collector in a message."""
BUNDLE = 500
"""Ads in a bundle: some hundred kB of text."""

_INSTALL = "pip install 'drainwise[htcondor]', in a virtual environment where the system's Python refuses that"
_EXPRESSION = '"\\/Expr('  # how the bindings mark an expression; a string of that text has no backslash in it
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)[,\n]")
_REFERENCE = re.compile(r'"\\/Expr\((\w+)\)\\/"')


def require_bindings() -> None:
    """Raise UsageError when the bindings here are missing or too old to be used, with what to install.

    Those of HTCondor 23, such as Debian 13's own package, lack what tells a refusal from any other fault.
    """
    try:
        module = importlib.import_module("htcondor2")
    except ModuleNotFoundError as fault:
        raise UsageError(
            f"HTCondor's Python bindings are not installed for {sys.executable} (no module {fault.name}): {_INSTALL};"
            " where packages installed drainwise: pip install --target /usr/local/lib/drainwise htcondor"
        ) from None
    if not hasattr(module, "HTCondorException"):
        version = str(module.version()).split()
        raise UsageError(
            f"HTCondor's Python bindings here are too old: version {version[1] if len(version) > 1 else 'unknown'}, in"
            f" {module.__path__[0]}; install those of PyPI, 24.0 or later, which speak to older daemons, too:"
            f" {_INSTALL}"
        )


class _Bindings:
    """A module of the bindings, which is imported when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        require_bindings()
        return getattr(importlib.import_module(self._name), attribute)


classad2: Any = _Bindings("classad2")
htcondor2: Any = _Bindings("htcondor2")


def located(ad: Ad) -> Any:
    """Return the ClassAd by which the bindings reach the daemon of this ad, as DAEMON_ADDRESS was queried of it."""
    return classad2.ClassAd({name: ad[name] for name in DAEMON_ADDRESS if ad.get(name) is not None})


def each_access_point(
    schedds: Mapping[str, Ad], question: Callable[[str, Any], T], seconds: float, at_once: int
) -> Generator[tuple[str, T | str], None, None]:
    """Yield the name of each access point with what it answers, or with why it does not; as it comes.

    schedds: their ads by name, as of `located`. question: asks one, given by its name and as the bindings have it, in a
    process of its own for so many seconds, as the bindings may hang. Whoever stops early closes it.
    """

    def ask(name: str) -> T:
        try:
            return question(name, htcondor2.Schedd(located(schedds[name])))
        except (htcondor2.HTCondorException, KeyError, TypeError, ValueError) as fault:
            raise PoolUnreachable(f"it does not answer: {fault}") from None

    names = sorted(schedds)
    with closing(each_within(seconds, (partial(ask, name) for name in names), "it", at_once)) as answers:
        for place, answer in answers:
            yield names[place], shown(str(answer)) if isinstance(answer, PoolError) else answer


def queried(who: Any, name: str, kind: object, constraint: str | None, attributes: Sequence[str]) -> Iterable[Any]:
    """Return the ClassAds of a kind that fulfil a constraint. Raises PoolUnreachable with the daemon's `name`."""
    query: Callable[..., Iterable[Any]] = who.query
    try:
        return query(kind, constraint, list(attributes))
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"{name} does not answer: {fault}") from None


def query(who: Any, name: str, kind: object, constraint: str | None, attributes: Sequence[str]) -> list[Ad]:
    """Return the ads as plain values. Raises as `queried`."""
    return [plain(ad, attributes) for ad in queried(who, name, kind, constraint, attributes)]


def quoted(text: str) -> str:
    """Write a text as a ClassAd string literal."""
    return str(classad2.quote(text))


@dataclass(frozen=True)
class Bundle:
    """The JSON text of some ads, and what their expressions gave (None: nothing), by the ad's place."""

    texts: Sequence[str]
    values: dict[int, Ad]


def plain(ad: Any, attributes: Iterable[str]) -> dict[str, object]:
    """Return the evaluated values of a ClassAd that are text, numbers or flags; undefined and errors are left out.

    An expression is evaluated within the ad, so the attributes that it names must have been asked for as well. A text
    that is no UTF-8 is none.
    """
    values: dict[str, object] = {}
    for name in attributes:
        try:
            value = ad.get(name)
            if value is not None and not isinstance(value, (str, int, float)):
                value = ad.eval(name)
        except UnicodeDecodeError:
            continue
        if _is_value(value):
            values[name] = value
    return values


def literals(ad: Any, attributes: Iterable[str]) -> dict[str, object]:
    """Return the texts and numbers among the values of a ClassAd, and evaluate nothing.

    For values of users: an expression of theirs may take for ever. A text that is no UTF-8 is none.
    """
    try:
        text = ad.printJson()
        values: dict[str, object] = json.loads(text, strict=False)
        values.update(dict.fromkeys(expressions_in(text)))
    except (ValueError, RecursionError):  # a UnicodeDecodeError is one
        values = {}
        for name in attributes:
            with suppress(UnicodeDecodeError):
                values[name] = ad.get(name)
    return {name: value for name in attributes if _is_value(value := values.get(name))}


def _is_value(value: object) -> bool:
    return isinstance(value, (str, float, bool)) or type(value) is int  # Undefined and Error are kinds of int


def packed(ads: Iterable[Any], attributes: Sequence[str]) -> Iterator[Bundle]:
    """Pack the `attributes` of ClassAds into bundles."""
    texts: list[str] = []
    values: dict[int, Ad] = {}
    for ad in ads:
        try:
            text = ad.printJson()
        except UnicodeDecodeError:
            text = json.dumps(plain(ad, attributes))
        if _EXPRESSION in text:
            text = _REFERENCE.sub(_number_in(text), text)
        if _EXPRESSION in text:
            values[len(texts)] = {name: _given(ad, name) for name in expressions_in(text)}
        texts.append(text)
        if len(texts) == BUNDLE:
            yield Bundle(texts, values)
            texts, values = [], {}
    yield Bundle(texts, values)


def _number_in(text: str) -> Callable[[re.Match[str]], str]:
    """Return the value of an expression that is but the name of a number in the same ad, such as `SlotWeight`.

    Evaluating that through the bindings takes four times as long as writing the whole ad. The quotes within a string
    are escaped, so nothing that a string says can be taken for a number of the ad.
    """

    def number(reference: re.Match[str]) -> str:
        begin = text.find(mark := f'\n  "{reference[1]}": ')
        found = _NUMBER.match(text, begin + len(mark)) if begin >= 0 else None
        return found[1] if found else reference[0]

    return number


def _given(ad: Any, name: str) -> object:
    """Return the value of an expression, if it has one."""
    try:
        value = ad.eval(name)
    except (KeyError, UnicodeDecodeError):
        return None
    return value if _is_value(value) else None


def expressions_in(text: str) -> list[str]:
    """Find the attributes of an ad that are expressions in its JSON text."""
    return [before.rsplit('"', 2)[1] for before in text.split(_EXPRESSION)[:-1]]


def unpacked(bundle: Bundle, attributes: Sequence[str]) -> list[dict[str, object]]:
    """Unpack the values of the ads of a bundle, under the names `attributes` as they are written there.

    An ad whose text is not sound is not there, as if its daemon were silent.
    """
    try:
        ads = json.loads(f"[{','.join(bundle.texts)}]", strict=False)
    except (ValueError, RecursionError):
        ads = [_one(text) for text in bundle.texts]
    for place, values in bundle.values.items():
        ads[place].update(values)
    known = frozenset(attributes)
    return [ad if ad.keys() <= known else _named(ad, attributes) for ad in ads if ad]


def _one(text: str) -> dict[str, object]:
    try:
        ad = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}
    return ad if isinstance(ad, dict) else {}


def _named(ad: dict[str, object], attributes: Sequence[str]) -> dict[str, object]:
    """Rename the ad's values to our names: ClassAd names compare without case. Leave out what daemons add."""
    names = {name.lower(): name for name in attributes}
    return {names[name.lower()]: value for name, value in ad.items() if name.lower() in names}
