"""The choice among buckets is the choice among all, as long as a bucket's jobs are alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.common.waiting import Waiting

Entry = tuple[int, int]
entries = st.lists(st.tuples(st.integers(0, 5), st.integers(-5, 5)), max_size=40)


@given(entries, st.integers(0, 12))
def test_taking_until_nothing_fits_is_what_sorting_and_walking_finds(rows: list[Entry], free: int) -> None:
    """Buckets by size; each step takes the first of those that fit, as a plain sort of all would."""
    waiting: Waiting[int, int] = Waiting()
    waiting.fill((size, rank, place, place) for place, (size, rank) in enumerate(rows))
    taken, left = [], free
    while (found := waiting.choose(lambda size, _, left=left: size <= left)) is not None:  # type: ignore[misc]
        left -= found[0]
        taken.append(waiting.take(found[0]))
    expected, left = [], free
    for place, (size, _) in sorted(enumerate(rows), key=lambda one: (one[1][1], one[0])):
        if size <= left:
            left -= size
            expected.append(place)
    assert taken == expected


@given(st.lists(st.tuples(st.sampled_from("atd"), st.integers(0, 3), st.integers(0, 9)), max_size=60))
def test_whatever_is_added_taken_and_gone_the_first_that_holds_is_chosen(acts: list[tuple[str, int, int]]) -> None:
    """Against a plain list: adding, taking the first, and entries that stop holding without anybody telling."""
    gone: set[int] = set()
    waiting: Waiting[int, int] = Waiting(lambda rank, item: item not in gone)
    plain: list[tuple[int, int, int]] = []
    for number, (act, bucket, rank) in enumerate(acts):
        if act == "a":
            waiting.add(bucket, rank, number, number)
            plain.append((rank, number, bucket))
        elif act == "d" and plain:
            gone.add(plain.pop(rank % len(plain))[1])
        else:
            found = waiting.choose(lambda bucket, item: True)
            assert (None if found is None else found[1]) == (min(plain)[1] if plain else None)
            if found is not None:
                assert waiting.take(found[0]) == found[1]
                plain.remove(min(plain))
    assert sorted(item for _, _, _, item in waiting.heads()) == sorted(
        min(one for one in plain if one[2] == bucket)[1] for bucket in {one[2] for one in plain}
    )


def test_only_the_first_of_each_bucket_is_looked_at() -> None:
    waiting: Waiting[int, int] = Waiting()
    waiting.fill((place % 50, place, place, place) for place in range(10_000))
    asked: list[int] = []

    def refuse(_: int, item: int) -> bool:
        asked.append(item)
        return False

    assert waiting.choose(refuse) is None
    assert sorted(asked) == list(range(50))
