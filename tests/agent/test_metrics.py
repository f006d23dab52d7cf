"""The agent's metrics: what they count, that nobody can make them grow or lie, and that they get out whole."""

from __future__ import annotations

import dataclasses
import os
import re
import socket
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from drainwise.agent.cycle import AgentCycle, Cycle
from drainwise.agent.cycle_facts import Act, CycleOutcome, PoolView
from drainwise.agent.export.observers import metrics_observer
from drainwise.agent.metrics import MOST_ACCOUNTS, OTHERS, Metrics
from drainwise.facts.errors import ConfigurationError
from drainwise.journal.event import Outcome, State
from drainwise.journal.memory import Memory
from drainwise.pilotad.observation import Observation
from drainwise.reclaim.counted_demand import Paused
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import OUTCOMES
from drainwise.reclaim.plan import Order, Plan
from drainwise.siteconfig.schema import MetricsSection

from .memory_pool import NOW, SETTINGS, AlicesPool

POLICY = "least-waste"


def decided() -> Plan:
    """Two of three pilots of alice's are ordered."""
    plan = make_plan(AlicesPool(pilots=3, wanted=16).snapshot(NOW), NOW, SETTINGS)
    assert len(plan.orders) == 2
    return plan


def cycle(plan: Plan | None, outcome: CycleOutcome | None = None, fault: str = "", acting: bool = True) -> Cycle:
    return Cycle(NOW, 0.3, plan, outcome, fault, acting, 60.0)


def told(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Every sample by its name and labels, read by Prometheus' own parser."""
    text = generate_latest(metrics.registry).decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def with_account(order: Order, account: str) -> Order:
    changed = dataclasses.replace(order.pilot, account=account)
    return dataclasses.replace(order, candidate=dataclasses.replace(order.candidate, pilot=changed))


def test_nodes_are_counted_by_version_and_one_that_has_gone_is_none() -> None:
    metrics = Metrics(POLICY)
    for versions in ((("", 1), ("0.1.0", 3)), (("0.1.0", 1), ("0.2.0", 3))):
        metrics.observe(dataclasses.replace(cycle(decided()), view=PoolView(versions=versions)))
    nodes = {name[1:]: value for name, value in told(metrics).items() if name[0] == "drainwise_nodes"}
    assert nodes == {("0.1.0",): 1, ("0.2.0",): 3}


def test_paused_demand_is_counted() -> None:
    metrics = Metrics(POLICY)
    paused = (Paused("b", 8.0, NOW, NOW + 900, 2, 16.0), Paused("c", 4.0, NOW, NOW + 900, 2, 8.0))
    metrics.observe(cycle(dataclasses.replace(decided(), paused=paused)))
    seen = told(metrics)
    assert (seen["drainwise_paused_accounts",], seen["drainwise_paused_demand_cores",]) == (2, 12)


def test_a_cycle_that_acts_is_counted() -> None:
    plan, metrics = decided(), Metrics(POLICY)
    first, second = plan.orders
    acts = (Act(first, Outcome.DONE, ""), Act(second, Outcome.FAILED, "no"), Act(second, Outcome.SKIPPED, "gone"))
    metrics.observe(cycle(plan, CycleOutcome(acts, followups=("a", "b"))))
    seen = told(metrics)
    assert seen["drainwise_cycles_total", "acted"] == 1
    assert seen["drainwise_cycle_duration_seconds_sum",] == 0.3
    assert seen["drainwise_last_decision_timestamp_seconds",] == NOW
    assert seen["drainwise_deficit_cores",] == 16
    assert (seen["drainwise_planned_cores",], seen["drainwise_planned_waste_core_seconds",]) == (16, plan.waste)
    assert [
        seen["drainwise_orders_total", outcome, "least-waste"]
        for outcome in (Outcome.DONE, Outcome.FAILED, Outcome.SKIPPED)
    ] == [1, 1, 1]
    assert seen["drainwise_ordered_cores_total", "a"] == 8
    assert seen["drainwise_ordered_waste_core_seconds_total", "a"] == first.waste
    assert seen["drainwise_followups_total",] == 2


def test_a_dry_run_orders_nobody() -> None:
    metrics = Metrics(POLICY)
    metrics.observe(cycle(decided(), acting=False))
    seen = told(metrics)
    assert (seen["drainwise_cycles_total", "dry_run"], seen["drainwise_acting",]) == (1, 0)
    assert not any(value for name, value in seen.items() if name[0] == "drainwise_orders_total")


def test_nodes_that_take_no_orders_are_counted() -> None:
    plan, metrics = dataclasses.replace(decided(), closed_nodes=3, notices=("3 nodes take no orders",)), Metrics(POLICY)
    metrics.observe(cycle(plan, acting=False))
    seen = told(metrics)
    assert (seen["drainwise_closed_nodes",], seen["drainwise_notices",]) == (3, 1)


def test_a_fault_leaves_the_last_decision_as_it_was() -> None:
    metrics = Metrics(POLICY)
    metrics.observe(cycle(decided(), CycleOutcome(())))
    metrics.observe(dataclasses.replace(cycle(None, fault="no answer"), started=NOW + 60, next_in=120.0))
    seen = told(metrics)
    assert seen["drainwise_cycles_total", "fault"] == 1
    assert seen["drainwise_last_cycle_timestamp_seconds",] == NOW + 60
    assert seen["drainwise_last_decision_timestamp_seconds",] == NOW
    assert (seen["drainwise_next_cycle_seconds",], seen["drainwise_deficit_cores",]) == (120, 16)


@pytest.mark.parametrize(
    "name", ['a"} 1\ndrainwise_up{x="', "a\n# TYPE evil counter", "", "x" * 65, "größe", "{}", "a\\", "a b"]
)
def test_an_account_of_any_name_breaks_nothing(name: str) -> None:
    """HOSTILE 42: what a user calls its account becomes no metric and no label of its own."""
    plan, metrics = decided(), Metrics(POLICY)
    metrics.observe(cycle(plan, CycleOutcome((Act(with_account(plan.orders[0], name), Outcome.DONE, ""),))))
    assert told(metrics)["drainwise_ordered_cores_total", OTHERS] == 8


def test_many_accounts_do_not_make_it_grow() -> None:
    """HOSTILE 42: the number of series is bounded, and no core is lost from the sum."""
    plan, metrics = decided(), Metrics(POLICY)
    orders = [with_account(plan.orders[0], f"user{number}@pool") for number in range(500)]
    metrics.observe(cycle(plan, CycleOutcome(tuple(Act(order, Outcome.DONE, "") for order in orders))))
    cores = {name: value for name, value in told(metrics).items() if name[0] == "drainwise_ordered_cores_total"}
    assert len(cores) == MOST_ACCOUNTS + 1
    assert sum(cores.values()) == 500 * 8


def test_names_follow_the_rules_of_prometheus() -> None:
    """drainwise_ before, base units behind, _total for what only grows and for nothing else."""
    metrics = Metrics(POLICY)
    metrics.observe(cycle(decided(), CycleOutcome(())))
    families = list(text_string_to_metric_families(generate_latest(metrics.registry).decode()))
    for family in families:
        if family.name.startswith("process_"):  # named as all programs name them
            continue
        assert re.fullmatch(r"drainwise_[a-z_]+", family.name)
        assert all(sample.name.endswith("_total") for sample in family.samples if family.type == "counter")
        assert family.documentation.endswith(".")
        assert not re.search(r"(minutes|hours|milli|percent|bytes|total)", family.name)


def seen_by_cycle(pool: AlicesPool, memory: Memory, now: int = NOW) -> Cycle:
    """A cycle of the agent itself, which keeps no journal."""
    pool.age = 0
    return AgentCycle(pool, SETTINGS, memory, None, lambda: now, acting=True).run()


def test_a_series_that_counts_is_there_before_its_first_event() -> None:
    """Else Prometheus sees no increase in an order that fails first of all, or in an account's first order."""
    metrics, pool = Metrics(POLICY), AlicesPool(pilots=3, wanted=0)
    at_once = told(metrics)
    assert at_once["drainwise_orders_total", Outcome.UNREACHABLE, POLICY] == 0
    assert at_once["drainwise_ended_pilots_total", "vacated"] == 0
    assert at_once["drainwise_realised_waste_core_seconds_total", OTHERS] == 0
    metrics.observe(seen_by_cycle(pool, Memory()))
    seen = told(metrics)
    for name in ("ordered_cores", "ordered_waste_core_seconds", "realised_waste_core_seconds"):
        assert seen[f"drainwise_{name}_total", "a"] == 0
    metrics.observe(cycle(dataclasses.replace(decided(), policy="other")))
    assert told(metrics)["drainwise_orders_total", Outcome.DENIED, "other"] == 0


def test_who_holds_what_and_how_far_it_is_known() -> None:
    """Pilots by standing, each account's cores, nodes of which nothing is known, orders that are late."""
    metrics, pool, memory = Metrics(POLICY), AlicesPool(pilots=3, wanted=16), Memory()
    quiet = dataclasses.replace(next(iter(pool.pilots.values())), run="ce#9.0#1@1", node="quiet", report=None)
    pool.pilots[quiet.run] = quiet
    metrics.observe(seen_by_cycle(pool, memory))
    seen = told(metrics)
    standings = {name[1]: value for name, value in seen.items() if name[0] == "drainwise_pilots"}
    assert {name: value for name, value in standings.items() if value} == {"fresh": 3, "silent": 1}
    assert seen["drainwise_pilot_cores", "silent"] == 8 and seen["drainwise_silent_nodes",] == 1
    assert seen["drainwise_account_wanted_cores", "b"] == 16
    assert (seen["drainwise_open_orders",], seen["drainwise_overdue_orders",]) == (0, 0)
    late = max(order.deadline for order in memory.open_orders().values()) + 1
    metrics.observe(seen_by_cycle(pool, memory, late))
    seen = told(metrics)
    assert seen["drainwise_open_orders",] == seen["drainwise_overdue_orders",] == len(memory.open_orders()) > 0


def test_the_key_that_leaves_cores_to_a_later_cycle_is_told() -> None:
    metrics, seen = Metrics(POLICY), AlicesPool(pilots=3, wanted=24).snapshot(NOW)
    of_user = dataclasses.replace(SETTINGS, max_cores_per_user=8)
    of_cycle = dataclasses.replace(SETTINGS, max_cores=8)
    for key, settings in (("max_cores_per_user", of_user), ("max_cores", of_cycle)):
        metrics.observe(cycle(make_plan(seen, NOW, settings)))
        limited = {name[1]: value for name, value in told(metrics).items() if name[0] == "drainwise_limited_cores"}
        assert {limit: cores for limit, cores in limited.items() if cores} == {f"{key}_per_cycle": 16}


@pytest.mark.parametrize(("idle_since", "nodes"), [(60, 0), (5000, 1)])
def test_a_node_that_tells_of_a_pilot_without_payloads_is_not_silent(idle_since: int, nodes: int) -> None:
    """It sees none, and says so; it is silent once it says so no more."""
    pool = AlicesPool(pilots=1, wanted=0)
    seen = Observation("plain", NOW - idle_since, 0, 0.0, 0, 7200)
    pool.pilots = {run: dataclasses.replace(one, report=None, seen=seen) for run, one in pool.pilots.items()}
    metrics = Metrics(POLICY)
    metrics.observe(seen_by_cycle(pool, Memory()))
    assert told(metrics)["drainwise_silent_nodes",] == nodes


def test_a_node_whose_reports_are_all_stale_is_silent() -> None:
    """Its part of drainwise has died, and what it published last stays."""
    pool, metrics = AlicesPool(pilots=2, wanted=0), Metrics(POLICY)
    metrics.observe(seen_by_cycle(pool, Memory(), NOW + 2 * SETTINGS.heartbeat_limit))
    assert told(metrics)["drainwise_silent_nodes",] == 1


def test_an_account_that_has_gone_has_no_series() -> None:
    metrics, pool = Metrics(POLICY), AlicesPool(pilots=1, wanted=16)
    first = seen_by_cycle(pool, Memory())
    assert first.view is not None
    metrics.observe(first)
    rest = tuple(one for one in first.view.accounts if one.name != "b")
    metrics.observe(dataclasses.replace(first, view=dataclasses.replace(first.view, accounts=rest)))
    assert not any(name[:2] == ("drainwise_account_wanted_cores", "b") for name in told(metrics))


def test_what_was_wasted_stands_beside_what_was_promised() -> None:
    """Of the pilots that have ended: how, how long after their order, at what cost."""
    metrics = Metrics(POLICY)
    ended: dict[str, object] = {"account": "a", "ordered": NOW, "ended": NOW + 400, "predicted": 100, "realised": 300}
    events = [{**ended, "vacated": vacated, "by_others": others} for vacated, others in ((0, 0), (1, 0), (1, 1))]
    events = [{**one, "vacated": bool(one["vacated"]), "by_others": bool(one["by_others"])} for one in events]
    events += [{**events[0], "billed": 12.0, "unit": "billing-h", "predicted": 0, "realised": 600}]
    metrics.observe(dataclasses.replace(cycle(None), view=PoolView(ended=tuple(events))))
    seen = told(metrics)
    ends = {name[1]: value for name, value in seen.items() if name[0] == "drainwise_ended_pilots_total"}
    assert ends == {"left": 2, "vacated": 1, "by_others": 1}
    assert seen["drainwise_billed_waste_total", "a", "billing-h", "realised"] == 2
    assert seen["drainwise_billed_waste_total", "a", "core-h", "realised"] == 0.25
    assert seen["drainwise_promised_waste_core_seconds_total", "a"] == 300
    assert seen["drainwise_realised_waste_core_seconds_total", "a"] == 1500
    assert (seen["drainwise_time_to_free_seconds_sum",], seen["drainwise_time_to_free_seconds_count",]) == (1600, 4)


def test_pilots_of_a_user_who_was_wrong_are_counted() -> None:
    """With what ended pilots of alice's lost, all that her others claim counts less; bob's account has none."""
    metrics, pool, memory = Metrics(POLICY), AlicesPool(pilots=3, wanted=16), Memory()
    for number in range(OUTCOMES):
        metrics.observe(seen_by_cycle(pool, memory))
        assert told(metrics)["drainwise_account_doubted_pilots", "a"] == 0
        wrong = {"predicted": 0, "realised": 9000, "possible": 10_000, "believed": True}
        ended = {"kind": "kill", "vacated": True, "ended": NOW - 9, "deadline": NOW, "time": NOW}
        memory.note({"event": "ended", "run": f"ce#{number}", "user": "alice", **ended, **wrong})
    metrics.observe(seen_by_cycle(pool, memory))
    seen = told(metrics)
    assert [seen["drainwise_account_doubted_pilots", account] for account in ("a", "b")] == [3, 0]


def test_the_agent_is_in_one_state() -> None:
    metrics = Metrics(POLICY)
    metrics.observe(dataclasses.replace(cycle(decided()), state=State.PAUSED))
    states = {name[1]: value for name, value in told(metrics).items() if name[0] == "drainwise_state"}
    assert states == {"ok": 0, "dry_run": 0, "paused_by_kill_switch": 1, "backing_off": 0}


# ---- the channels ----


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_site_that_wants_none_has_none() -> None:
    assert metrics_observer(MetricsSection(), "site.ini", POLICY, pytest.fail) is None


def test_over_http_on_loopback_alone() -> None:
    port = free_port()
    observe = metrics_observer(MetricsSection(port=port), "site.ini", POLICY, pytest.fail)
    assert observe is not None
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)
    observe(cycle(decided(), CycleOutcome(())))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        page = answer.read()
    assert b"drainwise_deficit_cores 16.0" in page and b"process_start_time_seconds " in page
    addresses = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() if " 0A " in line]
    assert [one for one in addresses if one.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


def test_a_port_that_is_taken_is_one_line_and_tried_again() -> None:
    lines: list[str] = []
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        observe = metrics_observer(MetricsSection(port=port), "site.ini", POLICY, lines.append)
        assert observe is not None
        for _ in range(3):
            observe(cycle(decided(), CycleOutcome(())))
        assert lines == [f"metrics, port {port} of 127.0.0.1: Address already in use"]
    observe(cycle(decided(), CycleOutcome(())))
    assert lines[1:] == [f"metrics, port {port} of 127.0.0.1: works again"]
    urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).close()


def test_as_a_file_for_node_exporter(tmp_path: Path) -> None:
    """Written whole after each cycle; a directory that is gone costs one line and no cycle."""
    lines: list[str] = []
    file = tmp_path / "collector" / "drainwise.prom"
    observe = metrics_observer(MetricsSection(textfile=str(file)), "site.ini", POLICY, lines.append)
    assert observe is not None
    observe(cycle(decided(), CycleOutcome(())))
    observe(cycle(decided(), CycleOutcome(())))
    assert lines == [f"metrics, {file}: No such file or directory"]
    file.parent.mkdir()
    observe(cycle(decided(), CycleOutcome(())))
    assert lines[1:] == [f"metrics, {file}: works again"]
    assert 'drainwise_cycles_total{result="acted"} 3.0\n' in file.read_text()
    assert "process_" not in file.read_text(), "node_exporter has its own"
    assert os.listdir(file.parent) == ["drainwise.prom"]


def test_without_prometheus_client_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"\[metrics\] port = '9877': expected prometheus_client"):
        metrics_observer(MetricsSection(port=9877), "site.ini", POLICY, pytest.fail)


def test_the_documentation_names_every_metric_and_its_kind() -> None:
    """And no other."""
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    documented = set(re.findall(r"(?m)^\| `(\w+)` \| (\w+) \|", page))
    metrics = Metrics(POLICY)
    metrics.observe(cycle(decided(), CycleOutcome(())))
    families = text_string_to_metric_families(generate_latest(metrics.registry).decode())
    kinds = {(family.name + ("_total" if family.type == "counter" else ""), family.type) for family in families}
    ours = {(name, kind) for name, kind in kinds if not name.startswith("process_")}
    assert documented == {(name, kind) for name, kind in ours if not name.endswith(("_created", "_created_total"))}
