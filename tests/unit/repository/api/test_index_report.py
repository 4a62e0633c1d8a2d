"""The report of the index's checks over HTTP: an administrator reads it and asks for a check; nobody else does."""

from collections.abc import Iterator

import lxml.etree
import pytest

from muniment.ground.clock import SECOND, timestamp
from muniment.repository.search.agent import reports
from muniment.repository.search.agent.checking import Course, Difference, Report
from muniment.repository.search.agent.reports import KeptReport
from tests.clock import NOON
from tests.shelf import Shelf
from tests.unit.repository.api.test_objects import SPACE, Site

AGENT = "f" * 32
FOUND = Report(
    NOON + SECOND,
    NOON + 9 * SECOND,
    objects=9,
    documents=8,
    ranges=3,
    missing=1,
    stale=1,
    noted=2,
    repaired=1,
    differences=(Difference("0" * 16, "missing", (), True), Difference("1" * 16, "stale", ("acl", "title"))),
)


@pytest.fixture
def site(shelf: Shelf) -> Iterator[Site]:
    made = Site(shelf)
    yield made
    made.half.transactions._threads.shutdown()


def keep(site: Site, kept: KeptReport) -> None:
    with site.shelf.database.begin() as cx:
        reports.keep_report(cx, site.shelf.repository.id, AGENT, kept)


def test_a_check_is_asked_for_and_its_report_read(site: Site) -> None:
    empty = site("GET", "/index-report", who="root")
    assert empty.status_code == 200
    assert (empty.json()["wanted"], empty.json()["agents"]) == (None, [])
    asked = site("POST", "/index-report?repair=true", who="root")
    assert asked.status_code == 202
    assert asked.json()["wanted"] == timestamp(site.half.clock())
    with site.shelf.database.read() as cx:
        (wanted,) = reports.wanted_checks(cx).values()
    assert (wanted.wanted, wanted.repairs) == (site.half.clock(), True)
    keep(site, KeptReport(None, Course(FOUND)))
    begun = site("GET", "/index-report", who="root").json()
    assert begun["wanted"] is None
    assert begun["agents"][0]["under-way"]["objects"] == 9
    keep(site, KeptReport(FOUND))
    (said,) = site("GET", "/index-report", who="root").json()["agents"]
    assert (said["agent"], said["under-way"]) == (AGENT, None)
    assert said["report"] == {
        "sound": False,
        "began": timestamp(FOUND.began),
        "ended": timestamp(NOON + 9 * SECOND),
        "ranges": 3,
        "objects": 9,
        "documents": 8,
        "missing": 1,
        "extra": 0,
        "stale": 1,
        "doubled": 0,
        "waiting": 0,
        "unindexed": 0,
        "noted": 2,
        "repaired": 1,
        "differences": [
            {"id": "0" * 16, "fault": "missing", "parts": [], "repaired": True},
            {"id": "1" * 16, "fault": "stale", "parts": ["acl", "title"], "repaired": False},
        ],
    }
    site("POST", "/index-report", who="root")
    with site.shelf.database.read() as cx:
        assert [check.repairs for check in reports.wanted_checks(cx).values()] == [False]


def test_the_report_is_written_as_xml_too(site: Site) -> None:
    keep(site, KeptReport(FOUND))
    answer = site("GET", "/index-report.xml", who="root")
    root = lxml.etree.fromstring(answer.content)
    differences = root.findall(f"{SPACE}agents/{SPACE}index-agent/{SPACE}report/{SPACE}differences/{SPACE}difference")
    assert [each.findtext(f"{SPACE}id") for each in differences] == ["0" * 16, "1" * 16]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(("who", "status"), [("marta", 403), ("boris", 403), ("", 401)])
def test_nobody_but_an_administrator_sees_it(site: Site, method: str, who: str, status: int) -> None:
    keep(site, KeptReport(FOUND))
    answer = site(method, "/index-report", who=who)
    assert answer.status_code == status
    assert "0000000000000000" not in answer.text
    with site.shelf.database.read() as cx:
        assert reports.wanted_checks(cx) == {}


def test_a_repository_leads_to_its_report(site: Site) -> None:
    links = site("GET", "", who="root").json()["links"]
    assert {
        "rel": "urn:muniment:linkrel/index-report",
        "href": f"https://muniment.test{site.repository_path}/index-report",
    } in links
