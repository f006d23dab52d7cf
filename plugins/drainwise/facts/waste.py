"""The three waste metrics of a pilot, written once: for numbers, for numpy arrays and as ClassAd expressions.

Every formula below uses only `+ - *`, `at_least` and `at_most`, so the same lines serve a number, an array of pilots
(the reclaim agent, the simulator) and a `Symbol`, which spells the calculation as the text of a ClassAd expression (the
live attributes).
The bounds are SPEC §2's: what a pilot states is a user's claim, so it is clamped by what the batch system knows itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Quantity = Any  # int, float, numpy array or Symbol; a formula gives back the widest of what it was given


class Symbol:
    """A piece of a ClassAd expression that can be calculated with like a number; `str()` gives its text."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: object) -> Symbol:
        return Symbol(f"({self} + {other})")

    def __sub__(self, other: object) -> Symbol:
        return Symbol(f"({self} - {other})")

    def __mul__(self, other: object) -> Symbol:
        return Symbol(f"{self} * {other}")


def at_least(value: Quantity, floor: Quantity) -> Quantity:
    """Return the larger of two quantities, element by element for arrays."""
    if isinstance(value, Symbol) or isinstance(floor, Symbol):
        return Symbol(f"max({{{value}, {floor}}})")
    if hasattr(value, "clip"):  # an array: a third of the time that choosing by comparisons takes
        return value.clip(floor)
    if hasattr(floor, "clip"):
        return floor.clip(value)
    return value if value >= floor else floor


def at_most(value: Quantity, ceiling: Quantity) -> Quantity:
    """Return the smaller of two quantities, element by element for arrays."""
    if isinstance(value, Symbol) or isinstance(ceiling, Symbol):
        return Symbol(f"min({{{value}, {ceiling}}})")
    if hasattr(value, "clip"):
        return value.clip(None, ceiling)
    if hasattr(ceiling, "clip"):
        return ceiling.clip(None, value)
    return value if value <= ceiling else ceiling


def remaining(last_job_end: Quantity, now: Quantity) -> Quantity:
    """Return the seconds until the pilot can be gone by itself: g − t (paper eq. 3; draft use case 9).

    `last_job_end` (g) is LAST_EXP_JOB_END, in good faith, or LAST_MAX_JOB_END, guaranteed; UNIX s, as `now`.
    """
    return last_job_end - now


def draining_waste(
    allocated: Quantity, used: Quantity, first_exp_job_end: Quantity, add_final_exp_waste: Quantity, now: Quantity
) -> Quantity:
    """Return the core-seconds that idle when the pilot starts draining now (paper eq. 4; draft use case 10).

    `allocated` and `used` are cores, `first_exp_job_end` (h) and `now` UNIX seconds, `add_final_exp_waste` core-seconds
    of the whole lease (the paper's i × cores).
    """
    return (allocated - used) * (first_exp_job_end - now) + add_final_exp_waste


def kill_waste(add_uncom_time: Quantity, used: Quantity, last_job_start: Quantity, now: Quantity) -> Quantity:
    """Return the core-seconds of running payloads lost when the pilot is killed now (paper eq. 5; draft use case 11).

    `add_uncom_time` is in core-seconds of the whole lease (the paper's f × cores), `used` in cores, the times in UNIX
    seconds.
    """
    return add_uncom_time + used * (now - last_job_start)


def bounded_remaining(last_job_end: Quantity, now: Quantity, lease_end: Quantity | None = None) -> Quantity:
    """Return `remaining`, never negative and never past the end of the lease."""
    if lease_end is not None:
        last_job_end = at_most(last_job_end, lease_end)
    return at_least(remaining(last_job_end, now), 0)


def bounded_draining_waste(
    allocated: Quantity,
    used: Quantity,
    first_exp_job_end: Quantity,
    add_final_exp_waste: Quantity,
    now: Quantity,
    lease_end: Quantity | None = None,
) -> Quantity:
    """Return `draining_waste` with an overrun ending now, and at most all cores idle to the end of the lease."""
    used = at_most(at_least(used, 0), allocated)
    waste = draining_waste(allocated, used, at_least(first_exp_job_end, now), at_least(add_final_exp_waste, 0), now)
    return waste if lease_end is None else at_least(at_most(waste, allocated * (lease_end - now)), 0)


def bounded_kill_waste(
    allocated: Quantity,
    add_uncom_time: Quantity,
    used: Quantity,
    last_job_start: Quantity,
    job_start: Quantity,
    now: Quantity,
) -> Quantity:
    """Return `kill_waste`, never more than all cores busy since the pilot's start, and never negative."""
    used = at_most(at_least(used, 0), allocated)
    waste = kill_waste(at_least(add_uncom_time, 0), used, at_most(last_job_start, now), now)
    return at_least(at_most(waste, uncommitted_run(allocated, job_start, now)), 0)


def uncommitted_run(allocated: Quantity, job_start: Quantity, now: Quantity) -> Quantity:
    """Return the core-seconds since the pilot's start: its kill waste as far as the batch system itself knows."""
    return allocated * (now - job_start)


def classad_expressions(heartbeat_limit: int) -> dict[str, str]:
    """Write the metrics as live ClassAd expressions over the attributes that the node publishes on a slot.

    They are evaluated by whoever reads the ad, at the reader's time. A report whose heartbeat is older than
    `heartbeat_limit` seconds lost its protection: remaining and draining waste are then unknown (UNDEFINED) and the
    kill waste is what the batch system itself knows. So it is with the report of another run: where a claim is used
    again, the startd's own expressions (the lists of its partitionable slot) keep what was published of the run before.
    PilotLeaseEnd may be undefined: ClassAd's min() passes over it.
    """
    now, cores, job_start = Symbol("time()"), Symbol("Cpus"), Symbol("JobStart")
    used, last_start, uncommitted = Symbol("PilotUsedCpu"), Symbol("PilotLastJobStart"), Symbol("PilotAddUncomTime")
    first_end, last_end, last_max = (Symbol(f"Pilot{name}JobEnd") for name in ("FirstExp", "LastExp", "LastMax"))
    final, lease_end = Symbol("PilotAddFinalExpWaste"), Symbol("PilotLeaseEnd")

    def when_known(metric: Symbol, needs: tuple[Symbol, ...], otherwise: object) -> str:
        # max() and min() pass over UNDEFINED, so an unknown operand must be asked for: unknown is not zero.
        unknown = " + ".join(map(str, needs))
        own = 'PilotReportedBy =?= strcat(GlobalJobId, "@", JobStart)'
        fresh = f"{own} && (time() - PilotHeartbeat <= {heartbeat_limit}) =?= true"
        return f"ifThenElse({fresh} && !isUndefined({unknown}), {metric}, {otherwise})"

    drain = bounded_draining_waste(cores, used, first_end, final, now, lease_end)
    kill = bounded_kill_waste(cores, uncommitted, used, last_start, job_start, now)
    return {
        "PilotRemaining": when_known(bounded_remaining(last_end, now, lease_end), (last_end,), "undefined"),
        "PilotRemainingMax": when_known(bounded_remaining(last_max, now, lease_end), (last_max,), "undefined"),
        "PilotDrainingWaste": when_known(drain, (used, first_end, final), "undefined"),
        "PilotKillWaste": when_known(kill, (uncommitted, used, last_start), uncommitted_run(cores, job_start, now)),
    }


def drain_price_expression(grace: int, margin: int) -> str:
    """Write as a ClassAd expression what draining a slot loses (core-seconds), over what its node publishes on it.

    A drain gives the job `grace` seconds. A believed pilot that has left by then, with `margin` seconds to spare, loses
    its draining waste, whatever it claims no more than all its cores until it has left. One that has not is killed
    then: that loses its kill waste of now, and all cores until then, which stay idle or work for nothing. Where no
    report is believed the slot counts cores x run time, as the batch system itself knows it; without a job it counts 0.
    Every attribute is the slot's own: a job lends it none.
    """
    cores, job_start = Symbol("MY.Cpus"), Symbol("MY.JobStart")
    drain, left, kill = Symbol("MY.PilotDrainingWaste"), Symbol("MY.PilotRemaining"), Symbol("MY.PilotKillWaste")
    known = " && ".join(f"(isInteger({one}) || isReal({one}))" for one in (drain, left, kill))
    # max() passes over UNDEFINED: no job, no run time.
    run = at_least(uncommitted_run(cores, job_start, Symbol("time()")), 0)
    idle = at_most(drain, cores * left)
    return f"ifThenElse({known}, ifThenElse({left} <= {grace - margin}, {idle}, {kill + cores * grace}), {run})"
