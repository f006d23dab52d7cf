"""Ads in bundles say the same as one attribute after the other, whatever a daemon or a user put into them."""

from __future__ import annotations

import math

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.ads.query import BUNDLE, Bundle, packed, plain, unpacked
from drainwise.htcondor.pool.collector import SLOT_ATTRIBUTES

AD = (
    "JobStart = 1795249000\nPilotWallLimit = MY.JobStart - 1795076200\nCpus = 4 + 4\nMemory = 1/0\n"
    'Name = strcat("slot", 1)\nState = { 1 }\nOffline = false\nRemoteOwner = nowhere\nActivity = undefined\n'
)
VALUES = {"JobStart": 1795249000, "PilotWallLimit": 172800, "Cpus": 8, "Name": "slot1", "Offline": False}


def through(*ads: classad2.ClassAd) -> list[dict[str, object]]:
    """The ads as they come out at the other end."""
    return [ad for bundle in packed(ads, SLOT_ATTRIBUTES) for ad in unpacked(bundle, SLOT_ATTRIBUTES)]


def known(ad: dict[str, object]) -> dict[str, object]:
    """Without what counts as not there: null, lists and ads."""
    return {name: value for name, value in ad.items() if isinstance(value, (str, int, float))}


def same(one: object, other: object) -> bool:
    """Whether two values are the same of the same type; JSON has 16 digits of a number."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-14) or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and one == other


def test_expressions_are_evaluated_and_what_they_do_not_give_is_left_out() -> None:
    """Undefined, errors and lists are not values."""
    ad = classad2.parseOne(AD)
    assert plain(ad, SLOT_ATTRIBUTES) == VALUES
    assert known(through(ad)[0]) == VALUES


def test_names_are_ours_and_nothing_else_is_there() -> None:
    """ClassAds do not tell `cpus` from `Cpus`; a daemon may add what nobody asked for."""
    assert through(classad2.parseOne('cpus = 8\nNAME = "a"\nMore = 1\n')) == [{"Cpus": 8, "Name": "a"}]


def test_all_ads_come_through_in_their_order() -> None:
    numbers = range(2 * BUNDLE + 3)
    ads = through(*(classad2.ClassAd({"Cpus": number, "Memory": classad2.ExprTree("Cpus + 1")}) for number in numbers))
    assert ads == [{"Cpus": number, "Memory": number + 1} for number in numbers]


characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")  # no ad can carry NUL
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(-1e300, 1e300) | st.sampled_from((math.inf, -math.inf, math.nan))
FORGED = '",\n  "Cpus": 64,\n  "SlotWeight": "\\/Expr(Cpus)\\/",\n'
scalars = st.booleans() | numbers | st.text(characters)


@given(st.dictionaries(st.sampled_from(SLOT_ATTRIBUTES), scalars, min_size=1))
def test_a_bundle_says_the_same_as_the_bindings(values: dict[str, object]) -> None:
    """HOSTILE 32, 36, 45: quotes, control characters and what looks like JSON or an expression are but text."""
    ad = classad2.ClassAd(values)
    [seen] = through(ad)
    told, direct = known(seen), plain(ad, SLOT_ATTRIBUTES)
    assert told.keys() == direct.keys()
    assert all(same(told[name], direct[name]) for name in direct), (told, direct)


@pytest.mark.parametrize("text", ["/Expr(1)/", "\\/Expr(Cpus)\\/", '": "\\/Expr(Cpus)\\/', '", "Cpus": 9, "x": "'])
def test_a_text_that_looks_like_an_expression_is_a_text(text: str) -> None:
    """HOSTILE 33: what a user may choose is never evaluated."""
    ad = classad2.ClassAd({"RemoteOwner": text, "Cpus": 4})
    assert through(ad) == [{"RemoteOwner": plain(ad, ["RemoteOwner"])["RemoteOwner"], "Cpus": 4}]


def test_a_text_that_is_no_utf8_is_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    """HOSTILE 32: one user's bytes must not hide the pool."""
    path = tmp_path_factory.mktemp("ads") / "ad"
    path.write_bytes(b'RemoteOwner = "\xff\xfe"\nCpus = 2\n')
    with path.open(encoding="latin-1") as stream:
        hostile = classad2.parseNext(stream, classad2.ParserType.Old)
    assert through(hostile, classad2.parseOne("Cpus = 3")) == [{"Cpus": 2}, {"Cpus": 3}]


@pytest.mark.parametrize("text", ["{", "[" * 100_000, ""])
def test_an_ad_that_cannot_be_read_hides_no_other(text: str) -> None:
    assert unpacked(Bundle(['{"Cpus": 1}', text, '{"Cpus": 2}'], {}), SLOT_ATTRIBUTES) == [{"Cpus": 1}, {"Cpus": 2}]


def test_expressions_inside_lists_and_ads_are_no_values() -> None:
    """HOSTILE 33: nothing of them is evaluated, and the attributes beside them stand."""
    odd = 'State = { Cpus, Cpus + 1, 1/0 }\nMachine = [ a = Cpus; b = { a } ]\nCpus = 2 * 4\nName = "n"\n'
    [ad] = through(classad2.parseOne(odd))
    assert known(ad) == {"Cpus": 8, "Name": "n"}
    deep = "Machine = [ Cpus = 64; b = [ Cpus = 3 ] ]\nState = { [ Cpus = 7 ] }\nSlotWeight = Cpus\nCpus = 8\n"
    assert known(through(classad2.parseOne(deep))[0]) == {"Cpus": 8, "SlotWeight": 8}


@given(
    scalars | st.none(),
    st.sampled_from(("Cpus", "cpus", "Memory", "SlotWeight")),
    st.text(characters) | st.just(FORGED),
)
def test_an_attribute_that_is_but_the_name_of_another_is_that_one(value: object, named: str, text: str) -> None:
    """As every node's `SlotWeight = Cpus`, which is not evaluated: whatever stands there, and whatever a text says."""
    ad = classad2.ClassAd({"Name": text, "SlotWeight": classad2.ExprTree(named)})
    if value is not None:
        ad["Cpus"] = value
    through_it, one_by_one = known(through(ad)[0]), plain(ad, SLOT_ATTRIBUTES)
    assert through_it.keys() == one_by_one.keys()
    assert all(same(through_it[name], one_by_one[name]) for name in one_by_one)
