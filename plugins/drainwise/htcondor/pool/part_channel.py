"""Ask a run for a part of its cores by a knob of its node: see `knob_channel`. The update hook tells the pilot.

To be imported and called in a process of its own (`bounded_call.within`), as the bindings may hang.
"""

from __future__ import annotations

from collections.abc import Iterator

from drainwise.facts.errors import ActionRefused, RunEnded
from drainwise.htcondor.ads.values import whole
from drainwise.htcondor.knobs.asked_parts import RETURN_KNOB, is_asked, with_part
from drainwise.htcondor.node import RETURN_ASKED, SECOND_SLOT
from drainwise.htcondor.pool.collector import startd_address, startd_slots
from drainwise.htcondor.pool.knob_channel import await_collector, change_knob, runs_at
from drainwise.pilotad.partial_return import PartialReturn


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
    await_collector(run, slot, machine, RETURN_ASKED, lambda value: is_asked(value, run, wish))
