"""Classes of places: equal where nothing that anybody asks differs, and never more than can be matched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.demand.matching import literals_in
from drainwise.htcondor.demand.place_ads import FEW, MOST_CLASSES, classes_of

NOTHING = literals_in([])


def test_places_that_differ_in_nothing_that_is_asked_are_one_class() -> None:
    rows = [{"arch": "X86_64", "rack": 1}, {"arch": "X86_64", "rack": 2}, {"arch": "ppc64le", "rack": 1}]
    found = classes_of(rows, ["arch"], NOTHING)
    assert found.of[0] == found.of[1] != found.of[2]
    assert found.examples == {found.of[0]: 0, found.of[2]: 2}


def test_true_is_not_one() -> None:
    assert len(set(classes_of([{"a": True}, {"a": 1}, {"a": 1.0}, {}], ["a"], NOTHING).of)) == 4


def test_the_label_of_a_class_is_the_same_in_each_snapshot() -> None:
    rows = [{"a": "x"}, {"a": "y"}]
    assert classes_of(rows, ["a"], NOTHING).of == classes_of(rows[::-1], ["a"], NOTHING).of[::-1]


def test_many_names_are_told_apart_only_where_somebody_names_them() -> None:
    rows = [{"machine": f"n{number}", "disk": 1000 + number} for number in range(5000)]
    found = classes_of(rows, ["machine", "disk"], literals_in(['Machine != "N7" && Disk >= 3000']))
    assert len(found.examples) == 4
    assert list(found.of).count(found.of[7]) == 1
    assert found.of[1999] != found.of[2001]
    assert not found.ignored


def test_an_attribute_with_too_many_values_is_ignored_and_named() -> None:
    rows = [{"machine": f"n{number}", "arch": number % 2} for number in range(1000)]
    found = classes_of(rows, ["machine", "arch"], NOTHING, searched={"machine"})
    assert found.ignored == {"machine"}
    assert len(found.examples) == 2


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2) | st.lists(st.integers())
tables = st.lists(st.dictionaries(st.sampled_from("abc"), values, max_size=3), max_size=FEW)


@given(tables)
def test_with_few_values_places_of_one_class_are_alike_in_all(rows: list[dict[str, object]]) -> None:
    found = classes_of(rows, "abc", NOTHING)
    assert len(found.of) == len(rows)
    for place, row in enumerate(rows):
        example = rows[found.examples[found.of[place]]]
        assert all(repr(row.get(name)) == repr(example.get(name)) for name in "abc")


@pytest.mark.daemons
@given(st.lists(st.tuples(values, values), min_size=FEW, max_size=400))
def test_there_are_never_more_classes_than_can_be_matched(pairs: list[tuple[object, object]]) -> None:
    rows = [{"a": one, "b": other, "c": place} for place, (one, other) in enumerate(pairs)]
    assert len(classes_of(rows, "abc", NOTHING, searched={"a", "b"}).examples) <= MOST_CLASSES
