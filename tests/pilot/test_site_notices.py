"""The site's three channels are heard, garbage is one line, and the last sound word holds."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from drainwise.pilot.channels import SERVER_PAUSE, SiteNoticeReader
from drainwise.pilot.decide.lease import Lease, SiteOrders
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn

from .work import T0

LEASE = Lease(8, T0, T0 + 86400)


class Site:
    """A startup directory with features, and the pilot that listens there."""

    def __init__(self, base: Path, job: str | None = None) -> None:
        self.start, self.job, self.machine = base / "start", base / "job", base / "machine"
        self.status = base / "status"
        for place in (self.start, self.job, self.machine, self.status):
            place.mkdir()
        environment = {
            "JOBFEATURES": job or str(self.job),
            "MACHINEFEATURES": str(self.machine),
            "JOBSTATUS": f"{self.status}/",
            "SLURM_JOB_ID": "17",
        }
        self.said: list[str] = []
        self.time = 0.0
        self.watch = SiteNoticeReader(str(self.start), environment, self.said.append, lambda: self.time)

    def orders(self, now: float = T0, terminated: float | None = None) -> SiteOrders:
        return self.watch.orders(terminated, LEASE, PilotSettings(), now)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_silence_is_no_order(site: Site) -> None:
    """Nothing there: the lease as it is, and no line."""
    orders = site.orders()
    assert (orders.leave, orders.draining, orders.deadline) == (False, False, LEASE.end)
    assert site.said == []


def test_each_channel_is_heard_and_withdrawn(site: Site) -> None:
    """An order comes and goes with its file."""
    for path, text in (
        (site.start / ".site.ad", f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {T0 + 600}\n"),
        (site.status / ".site.ad", f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {T0 + 600}\n"),
        (site.job / "shutdowntime_job", f"{T0 + 600}\n"),
        (site.machine / "shutdowntime", f"{T0 + 600}\n"),
    ):
        path.write_text(text)
        orders = site.orders()
        assert (orders.draining, orders.deadline) == (True, T0 + 600), path
        path.unlink()
        assert not site.orders().draining
    assert site.orders(terminated=T0).leave
    assert site.said == []


@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_site_ads_the_stricter_counts(site: Site, swapped: bool) -> None:
    """Leave when one asks for it, by the earlier deadline, whichever place says so; one alone is withdrawn alone."""
    first, second = (site.status, site.start) if swapped else (site.start, site.status)
    (first / ".site.ad").write_text(f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {T0 + 600}\n")
    (second / ".site.ad").write_text(f"VACATE_DESIRED = False\nPAYLOAD_DEADLINE = {T0 + 300}\n")
    orders = site.orders()
    assert (orders.leave, orders.deadline) == (True, T0 + 300)
    (second / ".site.ad").write_text("VACATE_DESIRED = False\n")
    assert site.orders().deadline == T0 + 600
    (first / ".site.ad").unlink()
    orders = site.orders()
    assert (orders.leave, orders.deadline) == (False, LEASE.end)
    assert site.said == []


def test_of_two_site_ads_the_larger_part_and_the_later_acknowledgement_count(site: Site) -> None:
    """A site that writes two places writes one after the other."""
    (site.start / ".site.ad").write_text(
        f"VACATE_DESIRED = False\nRETURN_CORES = 2\nRETURN_SEEN = {T0}\nUSABLE_CORES = 8\n"
    )
    (site.status / ".site.ad").write_text(
        f"VACATE_DESIRED = False\nRETURN_CORES = 3\nRETURN_SEEN = {T0 + 1}\nUSABLE_CORES = 6\n"
    )
    orders = site.orders()
    assert (orders.leave, orders.part, orders.answer) == (False, PartialReturn(3), Acknowledgement(T0 + 1, 6))
    (site.start / ".site.ad").write_text(f"VACATE_DESIRED = False\nRETURN_SEEN = {T0 + 1}\nUSABLE_CORES = 5\n")
    assert site.orders().answer == Acknowledgement(T0 + 1, 5)


def test_a_site_ad_for_another_job_is_none(site: Site) -> None:
    """Two pilots in one startup directory: what names the run of the other one does not count."""
    text = f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {T0 + 600}\n"
    (site.start / ".site.ad").write_text(f'{text}SITE_AD_RUN = "171@{T0}"\n')
    assert not site.orders().leave
    (site.start / ".site.ad").write_text(f'{text}SITE_AD_RUN = "17@{T0}"\n')
    assert site.orders().leave
    assert site.said == []


def test_garbage_in_one_site_ad_leaves_the_other_heard(site: Site) -> None:
    """HOSTILE 1, 24: a line that names the place, and the other's word."""
    (site.start / ".site.ad").symlink_to("/etc/passwd")
    (site.status / ".site.ad").write_text("VACATE_DESIRED = True\n")
    assert site.orders().leave and site.orders().leave
    (site.status / ".site.ad").write_bytes(b"\0" * 100)
    assert site.orders().leave, "the last sound word"
    assert [line.partition(": ")[0] for line in site.said] == [".site.ad", "$JOBSTATUS/.site.ad"]


def test_a_planned_time_that_has_arrived_stands(site: Site) -> None:
    """The file of a shutdown goes when its time has come: that is no cancellation; a file that goes before is one."""
    (site.job / "shutdowntime_job").write_text(f"{T0 + 600}\n")
    assert site.orders().draining
    (site.job / "shutdowntime_job").unlink()
    assert site.orders(T0 + 601).draining
    (site.job / "shutdowntime_job").write_text(f"{T0 + 1200}\n")
    assert site.orders(T0 + 602).deadline == T0 + 1200
    (site.job / "shutdowntime_job").unlink()
    assert not site.orders(T0 + 603).draining


@pytest.mark.parametrize("garbage", [b"", b"rubbish", b"VACATE_DESIRED = Maybe\n", b"\0" * 100, b"x" * 10_000])
def test_garbage_is_one_line_and_changes_nothing(site: Site, garbage: bytes) -> None:
    """HOSTILE 20, 23, 24, 36: neither an order nor its end, however often it is looked at."""
    ad = site.start / ".site.ad"
    for sound, draining in ((None, False), (b"VACATE_DESIRED = True\n", True)):
        site.said.clear()
        if sound is not None:
            ad.write_bytes(sound)
            site.orders()
            site.said.clear()
        ad.write_bytes(garbage)
        assert [site.orders().draining for _ in range(3)] == [draining] * 3
        assert len(site.said) == 1 and site.said[0].startswith(".site.ad: not used: ")
    ad.unlink()
    assert not site.orders().draining
    assert site.said[-1] == ".site.ad: all right again"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)])
def test_what_is_no_file_makes_nobody_wait(site: Site, make: object) -> None:
    """HOSTILE 1, 5, 8: in all three channels."""
    assert callable(make)
    for path in (site.start / ".site.ad", site.job / "shutdowntime_job", site.machine / "shutdowntime"):
        make(path)
    assert not site.orders().draining and not site.orders().draining
    assert len(site.said) == 3


def test_a_garbage_variable_is_one_line(tmp_path: Path) -> None:
    """A features location that is none: said once, and the other channels are heard."""
    site = Site(tmp_path, job="ftp://nowhere")
    assert not site.orders().draining and not site.orders().draining
    assert len(site.said) == 1 and "$JOBFEATURES" in site.said[0]
    (site.machine / "shutdowntime").write_text(f"{T0 + 600}\n")
    assert site.orders().draining


def test_a_server_that_is_gone_is_not_asked_at_every_look(tmp_path: Path) -> None:
    """Each try may take 2 s; so one in 30 s, one line, and what was planned before holds."""
    connections = []
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connections.append(connection)
                connection.recv(4096)
                good = len(connections) == 1
                body = b"%d\n" % (T0 + 600)
                reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
                connection.sendall(reply if good else b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
                connection.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        site = Site(tmp_path, job=f"http://127.0.0.1:{server.getsockname()[1]}/job")
        assert site.orders().deadline == T0 + 600
        for _ in range(5):
            assert site.orders().deadline == T0 + 600
        assert len(connections) == 2 and len(site.said) == 1
        site.time += SERVER_PAUSE
        site.orders()
        assert len(connections) == 3 and len(site.said) == 1
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)
