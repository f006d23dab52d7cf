"""A real HTCondor collector with the slot ads of a large pool: real ads of one node, told again under other names.

The ads are whole, as a startd with drainwise publishes them: some 200 attributes, deadline and lease as expressions.
All pilots came through a CE.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from condor_pool import CondorPool
from condor_pool.access import PoolAccess
from scenario import condor_site

PILOTS_PER_NODE = 7
"""Slots with a pilot on each node; beside them it has its partitionable slot, of which nothing is left."""

_CORES = 8
_USERS = 20
_QUOTAS = """\
GROUP_NAMES = group_alice, group_bob
GROUP_QUOTA_group_alice = 100000
GROUP_QUOTA_group_bob = 20000
GROUP_ACCEPT_SURPLUS = True
"""
_WAITING = 100
_REST = "NEGOTIATOR_INTERVAL = 900\n"
"""The negotiator would look at all those slots again and again, and take half a core from what is measured."""

# Runs with HTCondor's bindings in the pool's network: argv are the file of the two ads, and how many nodes.
_ADVERTISE = """
import random, sys, classad2, htcondor2
pilot, rest = list(classad2.parseAds(open(sys.argv[1])))
dice, collector, start = random.Random(1), htcondor2.Collector(), pilot["JobStart"]
own = {name: str(pilot.lookup(name)) for name in pilot}
def told(ad, **other):
    changed = classad2.ClassAd(str(ad))
    for name, value in other.items():
        changed[name] = value
    return changed
for first in range(0, int(sys.argv[2]), 100):
    ads = []
    for node in range(first, min(first + 100, int(sys.argv[2]))):
        machine, address = f"wn{node:05d}.pool.test", f"<10.{node >> 8}.{node & 255}.1:9618>"
        place = dict(Machine=machine, MyAddress=address, StartdIpAddr=address)
        children = list(range(1, int(sys.argv[3]) + 1))
        ads.append(told(
            rest, Name=f"slot1@{machine}", Cpus=0, **place, ChildDSlotId=children, NumDynamicSlots=len(children),
            PilotUpdateInterval=86400))  # they are told once
        for slot in range(1, int(sys.argv[3]) + 1):
            user, ran = f"alice{dice.randrange(int(sys.argv[4]))}@pool.test", dice.randrange(600, 80000)
            job = f"ce{dice.randrange(9)}.pool.test#{node * 8 + slot}.0#{start - ran - 60}"
            group = f"group_alice.{user}"
            ads.append(told(
                pilot, Name=f"slot1_{slot}@{machine}", SlotID=1, DSlotId=slot, **place, GlobalJobId=job,
                JobId=f"{node * 8 + slot}.0", JobStart=start - ran, RemoteUser=user, RemoteOwner=user,
                AccountingGroup=group, x509UserProxyVOName="cms",
                x509UserProxyFirstFQAN="/cms/Role=pilot/Capability=NULL",
                x509userproxysubject=f"/DC=ch/DC=cern/OU=Organic Units/OU=Users/CN={user}",
                RoutedFromJobId=f"{node * 8 + slot}.0", GlideinFactory="OSGGOC",
                GlideinEntryName=f"CMSHTPC_T2_Entry_{dice.randrange(50)}", PilotUsedCpu=float(dice.randrange(1, 9)),
                PilotLastJobStart=start - dice.randrange(ran), PilotFirstExpJobEnd=start + dice.randrange(9000),
                PilotLastExpJobEnd=start + dice.randrange(9000, 30000), PilotLastMaxJobEnd=start + 40000,
                PilotAddUncomTime=float(dice.randrange(9000)), PilotAddFinalExpWaste=float(dice.randrange(9000)),
                PilotHeartbeat=start))
    collector.advertise(ads, "UPDATE_STARTD_AD", True)
"""


@contextmanager
def large_pool(release: str, slots: int) -> Iterator[tuple[CondorPool, str]]:
    """A pool of a Debian release whose collector knows `slots` slots, and the path of its site file.

    Seven of eight slots run pilots of twenty users, whose group holds more than its quota; another group waits.
    """
    with CondorPool(nodes=1, cpus=_CORES, release=release) as pool:
        site_file = condor_site.install(pool)
        pool.configure("central", "41-quotas.conf", _QUOTAS)
        pool.reconfigure("central")
        condor_site.submit_pilots(pool, {"long": "8x3000"})
        pool.wait_for(lambda: condor_site.all_pilots_report(pool, 1), 90, "a pilot that reports")
        pool.submit(condor_site.SUBMIT_DEMAND.format(cores=_CORES, count=_WAITING, seconds=60), user="bob")
        template = pool.run(["condor_status", "-long", "-constraint", 'State == "Claimed"']).stdout
        template += pool.run(["condor_status", "-long", "-constraint", "PartitionableSlot =?= true"]).stdout
        path = f"{pool.root}/srv/slots.ads"
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(template)
        _advertise(pool, path, slots // (PILOTS_PER_NODE + 1))
        pool.wait_for(lambda: known(pool) >= slots, 60, f"{slots} slots in the collector")
        pool.configure("central", "42-rest.conf", _REST)
        pool.reconfigure("central")
        yield pool, site_file


def _advertise(pool: PoolAccess, path: str, nodes: int) -> None:
    arguments = [path, str(nodes), str(PILOTS_PER_NODE), str(_USERS)]
    pool.run_outside([sys.executable, "-c", _ADVERTISE, *arguments], identity="condor@pool.test", timeout=300.0)


def known(pool: PoolAccess) -> int:
    """How many slots the collector knows."""
    return len(pool.run(["condor_status", "-af", "Name"]).stdout.splitlines())
