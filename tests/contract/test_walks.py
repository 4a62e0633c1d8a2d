"""The walks that ARCHITECTURE.md describes are the ways that requests take: each step is met, in this order."""

import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from muniment.database import schema
from muniment.database.connections import Database
from tests.scenes import Loop, Person, Site, World, fulltext

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "muniment"
_STEP = re.compile(r"^\d+\. `([\w/]+\.py)` `([\w.]+)`", re.MULTILINE)


def steps(heading: str) -> list[tuple[str, str]]:
    """Read the steps of a walk: file and function."""
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = [(step[1], step[2]) for step in _STEP.finditer(section)]
    assert len(found) > 7, heading
    return found


class Trace:
    """Every function of the product that was entered, in the order of first entries."""

    def __init__(self) -> None:
        self._entered: dict[tuple[str, str], None] = {}

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)):
            self._entered.setdefault((code.co_filename[len(str(SOURCE)) + 1 :], code.co_qualname))

    def of(self, work: Callable[[], object]) -> list[tuple[str, str]]:
        """Do the work, and give what it entered."""
        self._entered.clear()
        work()
        return list(self._entered)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Trace, Site]]:
    """A site whose threads are all traced."""
    trace = Trace()
    before = sys.getprofile()
    threading.setprofile(trace)
    sys.setprofile(trace)
    folder = tmp_path_factory.mktemp("walks")
    folder.chmod(0o700)
    urls = [f"sqlite:///{folder}/{half}.db" for half in ("directory", "repository")]
    for half, url in zip(("directory", "repository"), urls, strict=True):
        database = Database(url)
        schema.migrate(database, "directory" if half == "directory" else "repository")
        database.close()
    world = World(folder, urls[0], urls[1])
    loop = Loop()
    site = Site(world, "neutral", loop)
    yield trace, site
    site.close()
    loop.close()
    world.close()
    sys.setprofile(before)
    threading.setprofile(before)


def check(walk: list[tuple[str, str]], entered: list[tuple[str, str]]) -> None:
    """Check that each step was entered after the one before it."""
    missing = [step for step in walk if step not in entered]
    assert not missing
    places = [entered.index(step) for step in walk]
    assert places == sorted(places), [walk[at] for at in range(1, len(walk)) if places[at] < places[at - 1]]
    files = {file for file, _ in walk}
    print(f"{len(walk)} steps in {len(files)} files, of {len({file for file, _ in entered})} entered")


@pytest.mark.parametrize(
    "heading",
    ["Follow a token", "Follow a name and password", "Follow a question about a token", "Follow a search"],
)
def test_a_request_takes_these_steps(traced: tuple[Trace, Site], heading: str) -> None:
    trace, site = traced
    person = site.world.person()
    token = site.issue(person)["access_token"]
    ways: dict[str, Callable[[], object]] = {
        "Follow a token": lambda: site.ask_token(person),
        "Follow a name and password": lambda: site.http.get(site.repository, auth=(person.id, person.password)),
        "Follow a question about a token": lambda: site.tokeninfo(token),
        "Follow a search": lambda: site.search(fulltext("pump"), person=person),
    }
    check(steps(heading), trace.of(ways[heading]))


def test_an_upload_takes_these_steps_until_it_is_found(traced: tuple[Trace, Site]) -> None:
    trace, site = traced
    person, word = site.world.person(), site.world.word()
    check(steps("Follow an upload until it is found"), trace.of(lambda: find(site, person, word)))


def find(site: Site, person: Person, word: str) -> None:
    """Upload a file, let the agent pass it, and find it."""
    site.create("an upload", word.encode(), person=person)
    site.world.catch_up()
    assert site.keywords(word, person=person).ids
