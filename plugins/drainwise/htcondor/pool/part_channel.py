"""Ask a run for a part of its cores by a knob of its node: see `knob_channel`. The update hook tells the pilot.

To be imported and called in a process of its own (`bounded_call.within`), as the bindings may hang.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from drainwise.facts.errors import ActionRefused, PoolUnreachable, RunEnded
from drainwise.htcondor.ads.values import moment, text, whole
from drainwise.htcondor.knobs.asked_parts import RETURN_KNOB, is_asked, with_part
from drainwise.htcondor.knobs.orders import run_name
from drainwise.htcondor.node import RETURN_ASKED, SECOND_SLOT
from drainwise.htcondor.pool.collector import collector_slot, startd_address, startd_slots
from drainwise.htcondor.pool.knob_channel import change_knob, holds_within, runs_at
from drainwise.pilotad.partial_return import PartialReturn

_SHOWN_SECONDS = 5.0  # for the startd, and the collector, to show what was asked


def ask_for_part(run: str, wish: PartialReturn, slot: str, machine: str) -> Iterator[None]:
    """Have the node of `machine` ask this run for so many cores, if the run is still in its slot `slot`.

    Yields once, right before it is sent: who is not answered after that cannot know what became of it. Ends when the
    collector shows it, or after a few seconds: the next snapshot had better know. Raises ActionRefused when the node
    could not lend what comes back, or not one core would stay; RunEnded; PoolUnreachable when it does not answer.
    """
    with_part("", run, wish, ())
    address = startd_address(slot, machine)
    here = runs_at(address, ("Cpus",)).get(run)
    if here is None:
        raise RunEnded(f"{run} does not run on {machine} any more")
    cores = whole(here, "Cpus") or 0
    if wish.cores >= max(1, cores):
        raise ActionRefused(f"{run}: {wish.cores} of its {cores} cores: expected 0 to {max(0, cores - 1)}")
    if not any(ad.get(SECOND_SLOT) is True for ad in startd_slots(address, ("Name", SECOND_SLOT))):
        raise ActionRefused(
            f"{machine} has no second slot for cores that pilots return: its startd was not restarted since"
            " [htcondor] partial_return was rendered, or it is not rendered there"
        )
    yield
    change_knob(
        address,
        machine,
        RETURN_KNOB,
        lambda present, running: with_part(present, run, wish, running),
        lambda value: is_asked(value, run, wish),
        f"what {run} is asked to return",
    )
    _await_collector(run, wish, slot, machine)


def _await_collector(run: str, wish: PartialReturn, slot: str, machine: str) -> None:
    def shown() -> bool:
        ad = collector_slot(slot, machine, ("GlobalJobId", "JobStart", RETURN_ASKED))
        if ad is None or run_name(text(ad, "GlobalJobId"), moment(ad, "JobStart")) != run:
            return True
        return is_asked(text(ad, RETURN_ASKED) or "", run, wish)

    with suppress(PoolUnreachable):  # the wish stands, whatever the collector shows
        holds_within(_SHOWN_SECONDS, shown)
