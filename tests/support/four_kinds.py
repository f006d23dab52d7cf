"""Pilots of four kinds that nobody changed, side by side: what a plan promises of each, and what a kill of it lost.

A glidein, PanDA's own pilot, one of JAliEn's kind and a plain script. Their payloads work little, since several pools
may share a machine of two cores, and write down what they have used: what they wrote last is what the kill lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from drainwise.pilotad.observation import observation_in
from glidein_job import Payloads, glidein_script
from pilot_clients import panda_script

CORES = 2
GLIDEIN_CORES, GLIDEIN_USED = 4, 3
ALL_CORES = GLIDEIN_CORES + 3 * CORES
LASTS = 7200
"""Seconds for which payloads would run."""
PROGRAM, PANDA = "/usr/share/payload.py", "/usr/share/panda-pilot"
WARM = 6
"""Payloads of the plain pilot that end before its others begin: the agent learns from five."""
LEAST = 8.0
"""CPU seconds that each pilot has used before it is killed."""

PAYLOAD = """\
#!/usr/bin/python3
import os, sys, time
name, rest = sys.argv[1], float(sys.argv[2])
begun = time.time()
while True:
    until = time.process_time() + 0.08
    while time.process_time() < until:
        pass
    with open(name + ".new", "w") as stream:
        stream.write(f"{begun} {time.time()} {time.process_time()}")
    os.replace(name + ".new", name)
    time.sleep(rest)
"""
"""Works, writes since when, until when and what it has used (UNIX s, CPU s), and rests. It ends by a signal alone."""


@dataclass(frozen=True)
class Kind:
    """One of the four: cores and script of its job, its standing, and where its ends come from.

    Of how long plain payloads run the agent also learns what to expect of the user's others.
    """

    cores: int
    script: str
    standing: str
    ends: str


def four_kinds(home: str) -> dict[str, Kind]:
    """Return the four by their names; home: of the user, in which the payloads write."""

    def work(name: str, rest: float) -> str:
        return f"python3 {PROGRAM} {home}/{name} {rest}"

    warm = "\n".join(f'{work(f"warm{number}", 2)} & warm="$warm $!"' for number in range(WARM))
    plain = f"""\
until [ -e {home}/go-on ]; do
warm=
{warm}
until [ -e {home}/go-on ] || [ -e {home}/next ]; do sleep 1; done
rm -f {home}/next
kill $warm
wait
done
{work("plain1", 0.25)} &
{work("plain2", 0.6)} &
wait
"""
    running = Payloads(1, GLIDEIN_USED, LASTS, LASTS // 60)
    return {
        "glidein": Kind(
            GLIDEIN_CORES,
            glidein_script(running, cores=GLIDEIN_CORES, work=work("glidein", 2)),
            "glidein",
            "published",
        ),
        "panda": Kind(CORES, panda_script(PANDA, f"{home}/life", LASTS, work("panda", 0.3)), "observed", "learned"),
        # The name of a process that a script is comes from the script's file.
        "alice": Kind(
            CORES,
            f"ln -s {PROGRAM} java\n./java {home}/alice 0.3 alien.site.JobWrapper &\nwait\n",
            "observed",
            "learned",
        ),
        "plain": Kind(CORES, plain, "observed", "learned"),
    }


_FILES = {"glidein": ("glidein",), "panda": ("panda",), "alice": ("alice",), "plain": ("plain1", "plain2")}


def lost(home: Path, kind: str) -> tuple[float, float]:
    """Return what a kill loses of a pilot by its payloads' own files, core-seconds, and in each second that it runs on.

    A glidein's payload has the cores that it asked for, whatever it does with them. (0, 0) before there is any.
    """
    sums = rate = 0.0
    for name in _FILES[kind]:
        if not (home / name).exists():
            return 0.0, 0.0
        begun, until, used = map(float, (home / name).read_text().split())
        used = GLIDEIN_USED * (until - begun) if kind == "glidein" else used
        sums, rate = sums + used, rate + used / max(1.0, until - begun)
    return sums, rate


def ended(home: Path, kind: str) -> float:
    """Return when its payloads wrote last, UNIX s."""
    return max(float((home / name).read_text().split()[1]) for name in _FILES[kind])


@dataclass(frozen=True)
class Stage:
    """A site on which all four run.

    home: of their user, as the test sees it. names: of each kind, what drainwise calls its pilot. command: runs
    drainwise with these words. agent: one that goes on, with its metrics in `metrics`. kill: ends all four at once,
    and waits until they have gone. interval: seconds between two looks of a node. seconds: how long anything may
    take. user: who runs them.
    """

    home: Path
    names: Mapping[str, str]
    command: Callable[..., str]
    agent: Callable[[], AbstractContextManager[None]]
    metrics: Path
    kill: Callable[[], None]
    wait_for: Callable[[Callable[[], object], float, str], object]
    interval: int
    seconds: float
    user: str

    def pilots(self, *words: str) -> dict[str, Any]:
        """What a command says of each kind's pilot."""
        said = json.loads(self.command(*words, "--json"))
        found = said.get("pilots") or [one for user in said["users"] for one in (*user["orders"], *user["spared"])]
        by_name = {one["name"]: {**one, "taken": said["taken"]} for one in found}
        return {kind: by_name[name] for kind, name in self.names.items() if name in by_name}


def assert_kills_lose_what_the_plan_promises(stage: Stage) -> None:
    """The agent learns how long plain payloads run; all four have figures; the plan ranks them as the kills then do."""
    kinds = four_kinds("")

    def payloads() -> int:
        seen = json.loads(stage.command("snapshot"))["pilots"]
        [plain] = [one for one in seen if one["name"] == stage.names["plain"]]
        told = observation_in(plain.get("seen"))
        return 0 if told is None else told.payloads

    stage.wait_for(lambda: payloads() == WARM, stage.seconds, "the plain pilot's first payloads")
    with stage.agent():
        stage.wait_for(stage.metrics.exists, stage.seconds, "a cycle of the agent")

        def learned() -> bool:
            """Under load a node's look may come too late for an end to be learned from: then others begin and end."""
            if stage.pilots("status")["panda"]["ends"] == "learned":
                return True
            if payloads() == WARM and time.monotonic() > turns[-1] + 4 * stage.interval:
                (stage.home / "next").touch()
                turns.append(time.monotonic())
            return False

        turns = [0.0]

        stage.wait_for(learned, 2 * stage.seconds, "what the plain pilot's payloads taught")
        (stage.home / "go-on").touch()
        # Until its node has looked again it shows those that have ended.
        stage.wait_for(lambda: payloads() == len(_FILES["plain"]), stage.seconds, "the plain pilot's other payloads")

        def figures() -> bool:
            found = stage.pilots("status")
            ends = {kind: (one["standing"], one["ends"]) for kind, one in found.items()}
            return ends == {kind: (one.standing, one.ends) for kind, one in kinds.items()}

        stage.wait_for(figures, 2 * stage.seconds, "figures of all four, those of plain payloads learned")
    stage.wait_for(lambda: min(lost(stage.home, kind)[0] for kind in kinds) > LEAST, stage.seconds, "some work")
    wanted = {stage.names[kind] for kind, one in kinds.items() if one.ends == "learned"}

    def said() -> bool:
        lines = stage.command("status").splitlines()
        return {line.split()[0] for line in lines if "ends learned" in line} == wanted

    stage.wait_for(said, stage.seconds, "the same in the table")
    plan = ("plan", "--cores", str(ALL_CORES), "--user", stage.user, "--horizon", "2m")
    promised = stage.pilots(*plan)
    assert promised.keys() == kinds.keys(), stage.command(*plan)
    stage.kill()
    found = {kind: lost(stage.home, kind) for kind in kinds}
    for kind, (really, _) in found.items():
        one = promised[kind]
        print(f"{kind}: client {one['client']}, {one['standing']}: kill waste {one['kill_waste']}, lost {really:.1f}")
    for kind, (really, rate) in found.items():
        # Who is not killed at the very moment of the plan works on until then; figures are whole core-seconds.
        used_since = rate * max(0.0, ended(stage.home, kind) - promised[kind]["taken"])
        told = promised[kind]["kill_waste"] + used_since
        assert told == pytest.approx(really, rel=0.1, abs=rate * stage.interval + 1), kind
    ranked = sorted(kinds, key=lambda kind: promised[kind]["kill_waste"])
    for less, more in zip(ranked, ranked[1:]):
        assert found[less][0] <= found[more][0] + found[more][1] * stage.interval + 1, (less, more)
