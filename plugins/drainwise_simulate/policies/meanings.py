"""The policies of a comparison in words, for help and documents; the standard library suffices."""

from __future__ import annotations

from drainwise.reclaim.prices import POLICIES as AGENT
from drainwise.reclaim.settings import OPEN_NEED

CLAIRVOYANT = "clairvoyant"
AGAIN = "least-waste-again"
"""`least-waste` decided again at each step, as an agent does; alone with pilots that can return a part that matters."""
SITE_LEAST_WASTE = "site-least-waste"
"""`least-waste` with what a site has that sets nothing beside it; `least-waste` itself may choose freely here."""
SITE_DEFAULT = "site-default"
"""What a site has that sets nothing: `open-need` in the same bounds."""
SLURM = "slurm-preemption"
"""In a log of sacct alone."""
MEANINGS = {
    **{name: one.meaning for name, one in AGENT.items() if name != OPEN_NEED},
    SITE_LEAST_WASTE: "least-waste with the defaults of a site beside it: time to drain, and a margin of 15 minutes",
    "oldest-first": "the longest run time first, killed",
    "nebraska": "the youngest payload first, killed",
    "random": "drawn by lot, killed",
    "condor-graceful": "least expected badput of a graceful drain, as in HTCondor; drained for the whole horizon",
    "youngest-drained": "the shortest run time first, drained for the whole horizon",
    "drain-all": "drawn by lot, drained for the whole horizon",
    "lsf": "the shortest run time first, killed, but for those whose lease ends within the horizon: LSF's",
    "kueue": "the latest first until the need is covered, then those not needed are given back, killed: Kueue's",
    CLAIRVOYANT: "the exact choice of pilots and deadlines by who knows all true ends: the best one-shot choice",
    OPEN_NEED: "decides again at each step: ends now whom it is cheap to end, lets others go on, withdraws",
    SITE_DEFAULT: "what a site has that sets nothing: open-need, with time to drain and a margin of 15 minutes",
    AGAIN: "least-waste, decided again at each step until the horizon is over, as an agent does",
    "wait-then-kill": "waits for the whole horizon, then kills the cheapest for what did not end by itself",
    "yarn": "the youngest first, a fifth of what is missing in each round of 15 s, then killed: YARN's",
    "clairvoyant-waiting": "knows all that every pilot will run, and drains each from the best step to the best end",
}
"""What each policy does, for help and documents."""
SLURM_MEANS = "the youngest first of those whose quality of service may be preempted, killed: Slurm's own"
