"""Room that comes back in pieces: its words are strict, and START lets nobody in who would take a piece of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import ActionRefused
from drainwise.htcondor.demand.matching import KEPT_MARK, without_kept_room
from drainwise.htcondor.demand.place_ads import read_places
from drainwise.htcondor.pool.knobs import MOST_ROOMS, RoomEntry, parse_rooms, room_entry, rooms_text, with_room
from drainwise.htcondor.setup.knobs import knobs
from drainwise.htcondor.setup.render import drop_in_path, render
from drainwise.pool.abilities import KeptRoom
from drainwise.pool.amounts import Amounts
from rendered_site import SITE

NOW = 1795260000
SLOT = "slot1@node1.pool.test"
ENTRY = RoomEntry(SLOT, NOW + 60, NOW + 7200, (8, 16384, 0, 16, 32768, 0))
WORD = f"{SLOT}={NOW + 60}:{NOW + 7200}:8:16384:0:16:32768:0"
ROOM = "ROOM-OF-THE-NODE"
"""Stands for the value of PILOT_RECLAIM_ROOM in a START that was resolved once."""

Start = Callable[..., object]


def test_a_word_names_slot_times_and_amounts() -> None:
    room = KeptRoom(SLOT, "node1", 2, NOW + 7200, Amounts(8, 16384), Amounts(16, 32768))
    assert rooms_text([room_entry(room, NOW)]) == f"1 {WORD}"
    assert rooms_text([]) == ""
    assert parse_rooms(f" garbage {WORD}  slot2@n=1:2 {SLOT}={NOW}\t") == (ENTRY,)


def test_it_is_sure_until_all_orders_can_be_there_and_no_longer_than_at_all() -> None:
    room = KeptRoom(SLOT, "node1", 20, NOW + 7200, Amounts(8), Amounts(16))
    assert room_entry(room, NOW).sure == NOW + 200
    assert room_entry(room, NOW + 7190).sure == NOW + 7200


@pytest.mark.parametrize(
    "slot",
    ["", "slot1@a b", "slot1@$(NUM_CPUS)", 'slot1@a"', "slot1@a\n", "\nslot1@a", "slot1@a=1", "slot1@a:1", "x" * 300],
)
def test_a_name_that_is_no_slots_is_never_written(slot: str) -> None:
    """HOSTILE 31, 32, 36, 44: blanks, quotes, macros, patterns and newlines would be more than a word."""
    with pytest.raises(ActionRefused):
        rooms_text([RoomEntry(slot, NOW, NOW, (1, 0, 0, 1, 0, 0))])


@pytest.mark.parametrize("numbers", [(), (1,), (1, 0, 0, 1, 0, -1), (1, 0, 0, 1, 0, 10**9), (1, 0, 0, 1, 0, 0, 0)])
def test_other_numbers_are_never_written(numbers: tuple[int, ...]) -> None:
    with pytest.raises(ActionRefused):
        rooms_text([RoomEntry(SLOT, NOW, NOW, numbers)])


@given(st.text(alphabet='0123456789= \t#@.-:ab"$()\u0661', max_size=120))
def test_whatever_stands_in_the_knob_another_word_can_be_written(text: str) -> None:
    present = parse_rooms(f"{text} {WORD}{text} {text}")
    assert ENTRY in parse_rooms(rooms_text(with_room(present, ENTRY, NOW)))


def test_a_slot_has_one_word_and_what_is_over_goes() -> None:
    other = RoomEntry("slot2@n", NOW, NOW + 10, (1, 0, 0, 1, 0, 0))
    before = RoomEntry(SLOT, NOW, NOW + 99, (1, 0, 0, 1, 0, 0))
    assert with_room([before, other], ENTRY, NOW) == (ENTRY, other)
    assert with_room([before, other], ENTRY, NOW + 10) == (ENTRY,)
    many = [RoomEntry(f"slot{number}@n", NOW, NOW + number, (1, 0, 0, 1, 0, 0)) for number in range(1, 99)]
    kept = with_room(many, ENTRY, NOW)
    assert len(kept) == MOST_ROOMS == 16
    assert {one.until for one in kept} == {ENTRY.until, *range(NOW + 98, NOW + 98 - MOST_ROOMS + 1, -1)}


# ---- START, in HTCondor's own libraries ----


@pytest.fixture(scope="module")
def written(answers: Callable[[str, Iterable[str]], dict[str, str]]) -> Callable[..., str]:
    """START as a node publishes it, with its own START before and a value of PILOT_RECLAIM_ROOM."""
    [text] = [file.text for file in render(SITE, "execute") if file.path == drop_in_path("execute")]
    lines = "\n".join(f"{knob.name} = {knob.text}" for knob in knobs(text))
    known: dict[str, str] = {}

    def write(room: str = "", before: str = "") -> str:
        key = f"{before} with room" if room else before
        if key not in known:
            own = f"START = {before}\n" if before else ""
            value = f"PILOT_RECLAIM_ROOM = 1 {ROOM}\n" if room else ""
            known[key] = answers(f"{own}{lines}\n{value}", ["START"])["start"]
        return known[key].replace(ROOM, room)

    return write


@pytest.fixture(scope="module")
def start(written: Callable[..., str]) -> Start:
    def evaluate(
        room: str,
        free: tuple[int, int, int | None] = (8, 16384, None),
        returning: tuple[list[int], list[int], list[int]] | None = ([8], [16384], [0]),
        asks: tuple[object, ...] = (4, 1000),
        name: str = SLOT,
    ) -> object:
        ad = classad2.ClassAd({"Name": name, "Cpus": free[0], "Memory": free[1]})
        if free[2] is not None:
            ad["GPUs"] = free[2]
        for what, values in zip(("Cpus", "Memory", "GPUs"), returning or ()):
            ad[f"ChildPilotReturning{what}"] = classad2.ExprTree("{" + ",".join(map(str, values)) + "}")
        job = classad2.ClassAd()
        for what, value in zip(("Cpus", "Memory", "GPUs"), asks):
            if value is not None:
                job[f"Request{what}"] = value
        return classad2.ExprTree(written(room)).eval(ad, job)

    return evaluate


def word(
    sure: int = -1, until: int = 3600, least: str = "8:8192:0", total: str = "16:16384:0", slot: str = SLOT
) -> str:
    now = int(time.time())
    return f"{slot}={now + sure}:{now + until}:{least}:{total}"


@pytest.mark.parametrize(
    ("asks", "starts"),
    [
        ((4, 1000), False),
        ((8, 8192), True),
        ((8, 8100), True),
        ((8, 4096), False),
        ((16, 16384), True),
        ((None, None), False),
        ((1.0, 1.0), False),
        (("many", 1000), classad2.Value.Error),
    ],
)
def test_while_an_ordered_pilot_is_there_only_jobs_as_large_start(
    asks: tuple[object, ...], starts: object, start: Start
) -> None:
    """8 cores have come back and 8 will; both belong to the room of two jobs of 8 cores."""
    assert start(word(), asks=asks) is starts


@pytest.mark.parametrize(
    ("free", "starts"), [((8, 16384, None), False), ((11, 16384, None), False), ((12, 9000, None), True)]
)
def test_a_small_job_starts_beside_the_room(free: tuple[int, int, int | None], starts: bool, start: Start) -> None:
    assert start(word(), free=free) is starts


def test_memory_and_gpus_are_kept_as_cores_are(start: Start) -> None:
    one_more = {"free": (64, 16384, 1), "returning": ([4], [8192], [1])}
    room = word(least="2:12288:2", total="2:12288:2")
    assert start(room, **one_more, asks=(1, 1024)) is True
    assert start(room, **one_more, asks=(1, 16384)) is False
    assert start(room, **one_more, asks=(1, 1024, 1)) is False
    assert start(room, **one_more, asks=(2, 12288, 2)) is True


@pytest.mark.parametrize(
    ("room", "more"),
    [
        ("", {}),
        ("garbage", {}),
        (word(slot="slot10@node1.pool.test"), {}),
        (word(slot="slot1@node1xpool.test"), {}),
        (word(until=-1), {}),
        (word(total="16:16384"), {}),
        (word(), {"returning": ([0, 0], [0, 0], [0, 0])}),
        (word(), {"returning": ([], [], [])}),
        (word(), {"returning": None}),
        (word(), {"name": "slot1_1@node1.pool.test", "returning": None}),
    ],
    ids=["none", "garbage", "longer", "similar", "over", "short", "no order", "all gone", "not told", "dynamic"],
)
def test_else_all_is_as_before(room: str, more: dict[str, object], start: Start) -> None:
    """When the last ordered pilot has left the room is whole: who comes first is the negotiator's decision."""
    assert start(room, **more) is True


def test_before_the_other_orders_are_there_it_is_kept_in_any_case(start: Start) -> None:
    for returning in (([], [], []), ([0], [0], [0])):
        assert start(word(sure=60), returning=returning) is False
        assert start(word(sure=60), returning=returning, asks=(8, 8192)) is True
        assert start(word(sure=60), returning=returning, free=(20, 32768, None)) is True


def test_of_several_slots_each_has_its_own(start: Start) -> None:
    room = f"{word(slot='slot2@node1.pool.test', least='1:0:0', total='1:0:0')} {word()} {word(slot='slot3@x')}"
    assert start(room) is False
    assert start(room, name="slot2@node1.pool.test") is True


@pytest.mark.parametrize(("before", "known"), [("", True), ("True", True), ("False", False), ("Cpus > 9", False)])
def test_the_sites_own_start_stays(before: str, known: bool, written: Callable[..., str]) -> None:
    ad = classad2.ClassAd({"Name": SLOT, "Cpus": 8, "Memory": 9, "Start": classad2.ExprTree(written("", before))})
    assert ad.eval("Start") is known


# ---- what the agent takes START for ----


@pytest.mark.parametrize("own", ["", "False", 'TARGET.Owner =!= "bob" && Cpus > 2', "A || B"])
@pytest.mark.parametrize("after", ["{}", "{} && TARGET.X", "{} && (TARGET.X || A)"])
def test_room_that_is_kept_makes_no_class_of_its_own(own: str, after: str, written: Callable[..., str]) -> None:
    """As the collector has it: written by ClassAds, with the site's own line after the drop-in, too."""
    usual, *others = (str(classad2.ExprTree(after.format(written(room, own)))) for room in ("", WORD, f"{WORD} {WORD}"))
    assert usual not in others
    assert {without_kept_room(text) for text in (usual, *others)} == {usual}


def test_while_nothing_is_kept_start_is_short(written: Callable[..., str]) -> None:
    """Each slot shows it, and the negotiator evaluates it for each job."""
    assert written("", "Cpus > 2") == "(Cpus > 2) && (True)"


def test_a_start_that_cannot_be_parted_stays_as_it_is(written: Callable[..., str]) -> None:
    for more in ("({}) || TARGET.X", "{} || TARGET.X"):
        text = str(classad2.ExprTree(more.format(written(WORD))))
        assert without_kept_room(text) == text
    for text in ("true", f"{KEPT_MARK} > 1", f'"{KEPT_MARK}'):
        assert without_kept_room(text) == text


def test_places_are_alike_with_and_without_kept_room(written: Callable[..., str]) -> None:
    def ad(room: str, own: str = "") -> classad2.ClassAd:
        found = classad2.ClassAd({"Name": SLOT, "Machine": "node1", "State": "Unclaimed", "TotalSlotCpus": 8})
        found["Start"] = classad2.ExprTree(written(room, own))
        return found

    for own in ("", "TARGET.X > 1"):
        usual, other = (one.row["start"] for one in read_places([ad("", own), ad(WORD, own)], ()))
        assert usual == other
    assert read_places([ad("", "False"), ad(WORD, "False")], ()) == [], "it takes no jobs"
