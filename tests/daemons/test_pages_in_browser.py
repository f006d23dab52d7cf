"""Every page in a real browser: in light and dark, from 360 to 1600 pixels, for those who cannot see, and printed."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import html
import http.server
import importlib.util
import itertools
import json
import random
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.agent.cycle import Cycle
from drainwise.agent.export.observers import observers_of
from drainwise.cli.main import main
from drainwise.journal.remembered import ReportedPart
from drainwise.journal.report import DAY, ENDS, OPEN, WITHDRAWN, ReportedOrder, report_on
from drainwise.journal.report_html import page as report_page
from drainwise.siteconfig import SiteConfig
from drainwise.siteconfig.schema import PageSection
from headless_browser import Browser, browser
from played_agent import BEGIN, Play

pytestmark = pytest.mark.in_turn("browser", "pages")
ROOT = Path(__file__).parents[2]
NASTY = "<script>document.title='taken'</script><img src=x onerror=alert(1)>" + "w" * 300
PAGES = ("index.html", "report.html", "simulation.html")
WIDTHS = (360, 800, 1600)
POINTS = 72  # per inch
MARGIN = 10 / 25.4 * POINTS


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base calls it
        """Log nothing."""


class Shown(Play):
    """A play whose agent writes its page."""

    def show(self, place: Path) -> None:
        """Write the page there."""
        site = SiteConfig(page=PageSection(directory=str(place), pilots=30))
        self._observers = observers_of(site, self.setup, "htcondor on cm.example.org", pytest.fail)

    def _observe(self, cycle: Cycle) -> None:
        for observe in self._observers:
            observe(cycle)


def agents_page(place: Path, work: Path) -> None:
    """Orders are given, one pilot is silent, others never leave; a user has a name of the worst kind."""
    play = Shown(work, pilots=300, wanted=64, minutes=12)
    play.show(place)
    play.pool.ends = None
    play.pool.versions = (("0.1.0", 280), ("", 20))
    run = next(iter(play.pool.pilots))
    names = dict.fromkeys(("user", "name"), NASTY)
    play.pool.pilots[run] = dataclasses.replace(play.pool.pilots[run], **names)  # type: ignore[arg-type]
    play.pool.add("quiet")
    last = list(play.pool.pilots)[-1]
    play.pool.pilots[last] = dataclasses.replace(play.pool.pilots[last], client="none")
    play.run()


def reports_page(place: Path) -> None:
    """A week of three users and one with the worst name, all ends among them."""
    chance = random.Random(1)

    def order(number: int) -> ReportedOrder:
        at, end = BEGIN - chance.randrange(7 * DAY), chance.choice(ENDS)
        user = NASTY if number == 0 else f"{chance.choice(('atlas', 'cms', 'lhcb'))}pilot@pool.example.org"
        ended = None if end in {OPEN, WITHDRAWN} else at + chance.randrange(60, 9000)
        realised = None if ended is None else chance.randrange(1, 30000)
        promised = chance.randrange(1, 20000)
        group = f"group_{user[:4]}"
        return ReportedOrder(
            f"r{number}",
            f"s{number}",
            group,
            user,
            8,
            at,
            at + 3600,
            end,
            True,
            promised,
            ended,
            realised,
            policy="paper",
        )

    parts = [ReportedPart("r1", "group_atla", "atlaspilot", BEGIN - 500, returned=3, core_seconds=4000, wasted=300)]
    report = report_on([order(number) for number in range(300)], BEGIN - 7 * DAY, BEGIN, parts=parts)
    (place / "report.html").write_text(report_page(report, BEGIN, "/var/lib/drainwise/agent.journal", "cm.example.org"))


def simulations_page(place: Path, work: Path) -> None:
    """A small study of real jobs, with all that can be varied."""
    log = work / "few.swf"
    with gzip.open(ROOT / "traces" / "lcg-cnaf.swf.gz", "rt") as whole:
        log.write_text("".join(itertools.islice(whole, 700)))
    policies = ["--policies", "least-waste,youngest-first,paper", "--processes", "1", "--vary"]
    small = ["--cores", "64", "--moments", "1", "--replications", "1", "--dominant", "0.99"]
    assert main(["simulate", str(log), *small, *policies, "--html", str(place / "simulation.html")]) == 0


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL below which a web server of the site's has them all."""
    place, work = tmp_path_factory.mktemp("www"), tmp_path_factory.mktemp("work")
    agents_page(place, work)
    reports_page(place)
    simulations_page(place, work)
    handler = functools.partial(Quiet, directory=str(place))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture(scope="module")
def axe() -> str:
    """The accessibility checker, to be run in a page."""
    found = importlib.util.find_spec("axe_core_python")
    assert found is not None and found.submodule_search_locations is not None
    return (Path(found.submodule_search_locations[0]) / "axe.min.js").read_text()


RULES = "{resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}"
VIOLATIONS = f"axe.run(document, {RULES}).then(found => found.violations.map(one => [one.id, one.nodes[0].html]))"


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_in_anybodys_way(name: str, pages: str, seen: Browser, axe: str) -> None:
    """No violation of WCAG 2.1 AA in light and dark; no width in which the page itself scrolls sideways."""
    for dark in (False, True):
        for width in WIDTHS:
            seen.open(pages + name, width, dark)
            within = seen.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            assert within, f"{name} is wider than {width} pixels"
            assert seen.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] < 128") == dark
            if width == WIDTHS[0]:  # where most has to scroll
                seen.value(f"{axe}; 0")
                assert seen.value(VIOLATIONS) == [], f"{name}, {width} pixels, dark: {dark}"


@pytest.mark.parametrize("name", PAGES)
def test_it_fetches_nothing_and_runs_no_script_of_a_users(name: str, pages: str, seen: Browser) -> None:
    seen.open(pages + name)
    assert [url for url in seen.asked if not url.endswith("/favicon.ico")] == [pages + name]
    assert [line for line in seen.logged if "favicon" not in line and "404" not in line] == []
    assert seen.value("document.title").startswith("drainwise")
    assert seen.value("document.documentElement.lang") == "en"
    assert seen.value("document.querySelectorAll('main').length") == 1
    assert seen.value("[...document.querySelectorAll('th')].every(one => one.scope)")
    assert seen.value("[...document.querySelectorAll('svg')].every(one => one.getAttribute('aria-label'))")
    blocked = "fetch('/status.json').then(() => 'fetched', () => 'refused')"
    assert seen.value(blocked) == "refused", "its policy lets nobody fetch anything"


@pytest.mark.parametrize("name", PAGES)
def test_printed_it_has_all_columns_and_no_drawing_is_split(
    name: str, pages: str, seen: Browser, tmp_path: Path
) -> None:
    seen.open(pages + name, 1600)
    headings = set(seen.value("[...document.querySelectorAll('thead th')].map(one => one.textContent)"))
    cells = seen.value("[...document.querySelectorAll('tbody tr')].map(row => row.lastElementChild.textContent)")
    drawn = "figure => [figure.querySelector('figcaption'), [...figure.querySelectorAll('svg > text')].at(-2)]"
    drawings = seen.value(f"[...document.querySelectorAll('figure')].map({drawn}.map(one => one.textContent))")
    seen.print(tmp_path / "page.pdf")
    boxes = boxes_in(tmp_path / "page.pdf")
    places = [found.split('"') for found in re.findall(r"<(?:page|word)[^>]*>", boxes)]
    width = float(places[0][1])
    assert max(float(one[5]) for one in places if "xMax=" in one[4]) <= width - MARGIN + 2
    words = Counter(" ".join(sheets_of(boxes)).split())
    for text in (*headings, *cells):
        assert all(words[word] for word in without_breaks(text)), text
    for height in (8.27, 7.0, 5.5) if drawings else ():
        seen.print(tmp_path / "other.pdf", height)
        sheets = sheets_of(boxes_in(tmp_path / "other.pdf"))
        for title, axis in drawings:
            assert [one for one in sheets if title in one and axis in one], f"{title} is split at {height} inches"


def boxes_in(printed: Path) -> str:
    """Each word of a PDF with its place."""
    command = ["pdftotext", "-bbox", str(printed), "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def sheets_of(boxes: str) -> list[str]:
    """The words of each page."""
    return [" ".join(html.unescape(re.sub("<[^>]*>", " ", one)).split()) for one in boxes.split("</page>")]


def without_breaks(text: str) -> list[str]:
    """The words of a text that no line of a narrow column ends within."""
    return [word for word in text.split() if "-" not in word and "/" not in word and len(word) < 16]


def test_the_checker_finds_what_is_wrong(seen: Browser, axe: str, tmp_path: Path) -> None:
    """So the tests above can fail."""
    bad = tmp_path / "bad.html"
    paragraph = "<p style='color:#ccc;background:#fff'>words to be read</p>"
    bad.write_text(f"<html><body>{paragraph}<img src='data:,'></body></html>")
    seen.open(f"file://{bad}")
    seen.value(f"{axe}; 0")
    found = {one[0] for one in seen.value(VIOLATIONS)}
    assert {"color-contrast", "html-has-lang", "image-alt"} <= found


def test_the_json_beside_the_page_is_sound(pages: str, seen: Browser) -> None:
    seen.open(f"{pages}status.json")
    found = json.loads(seen.value("document.body.textContent"))
    assert found["pilots"]["count"] == 301 and len(found["pilots"]["shown"]) == 30
