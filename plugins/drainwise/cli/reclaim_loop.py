"""`drainwise reclaim --loop`: the agent as a service, below systemd, condor_master or a terminal."""

from __future__ import annotations

import argparse
import os
from functools import partial

from drainwise.agent.cycle import Nowhere
from drainwise.agent.loop import Loop
from drainwise.agent.metrics_road import metrics_observer
from drainwise.agent.notify import Notifier
from drainwise.agent.signals import Signals
from drainwise.cli.agent_place import journal_at, journal_path, lock_of, memory_of, named_journal, setup_of, to_log
from drainwise.cli.pool_options import site_of
from drainwise.htcondor.pool import HTCondorPool


def run_loop(args: argparse.Namespace) -> int:
    """Run until TERM or INT. Raises UsageError for a wrong setup, PoolError when another agent acts."""
    setup = setup_of(args)  # a wrong site file ends it before a file is made
    acting = setup.acting
    if isinstance(setup.pool, HTCondorPool):
        setup.pool.require_bindings()
    path = journal_path(args) if acting else named_journal(args)
    site = site_of(args)
    observer = metrics_observer(site.metrics, site.file, to_log)
    observers = () if observer is None else (observer,)
    lock = lock_of(args)
    if acting:
        lock.make_place()
    journal = Nowhere() if path is None else journal_at(path, args)
    signals, notifier = Signals(), Notifier(os.environ)
    signals.install()
    try:
        remember = partial(memory_of, path, must_read=True)
        loop = Loop(lambda: setup_of(args), lock, remember, journal, signals, notifier, to_log, observers)
        loop.run(args.standby)
    finally:
        lock.release()
        notifier.close()
        signals.close()
    return 0
