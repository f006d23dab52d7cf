"""Keep the history of earlier cycles: orders, nodes that took none, and how far each user's claims proved true.

These are facts that are passed in: a decision depends on nothing that it was not given. They bound what one cycle may
order: per cycle, per user and cycle, per user and hour, and not too soon after the last. A batch system that does not
answer, or refuses whoever gives orders, is no fault of the pilot: nobody gets an order in its place.

Claims order the pilots of one user and nothing else, so a wrong one harms nobody but its own user; it still wastes.
When a pilot has gone, what was promised is held against what was lost. The batch system alone knows one thing for
certain: not more can be lost than cores × run time. How far the truth turned out to lie between a promise and that,
over all pilots of the user, is the *doubt*; by so much of the way every claim of the user is moved. Promises that were
too low are then right on average, and a user whose claims are worth nothing is ranked by what the batch system knows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from drainwise.estimate.run_times import RunTimes
from drainwise.facts.scope_rules import OUT_OF_SCOPE
from drainwise.facts.units import clock, core_hours, duration
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.open_need.pilots_look import EndsSeen
