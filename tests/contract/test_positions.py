"""A position of the change log goes out sealed: nobody can compare two, and administrators alone get the plain one.

Every address that tells one is asked, on both databases.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote

import httpx
import pytest

from muniment.directory.entries import entries, memberships
from muniment.repository import keys
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import Position
from tests.scenes import Loop, Person, Site, World

pytestmark = pytest.mark.campaign_on("postgresql")

HEADER = "Muniment-Position"
PLAIN = {HEADER: "plain"}
SEALED = re.compile("[A-Za-z0-9_-]{59}")
"""A nonce of 12 bytes, a tag of 16 and 16 bytes of position, in base64."""


class Asker:
    """Asks one site as one person."""

    def __init__(self, site: Site, person: Person) -> None:
        self.site, self.person = site, person

    def __call__(self, method: str, path: str, *, plain: bool = False, **what: object) -> httpx.Response:
        headers = self.site.bearer(self.person) | {"Accept": "application/json"} | (PLAIN if plain else {})
        return self.site.http.request(method, self.site.repository + path, headers=headers, **what)  # type: ignore[arg-type]

    def create(self, **how: bool) -> httpx.Response:
        """Make an object."""
        return self("POST", "/objects", json={"properties": {"object_name": "placed"}}, **how)

    def wait(self, position: str) -> httpx.Response:
        """Search once the index has reached the position."""
        return self("GET", f"/search?items-per-page=1&wait-for={quote(position)}")


WRITES: dict[str, Callable[[Asker, str, bool], httpx.Response]] = {
    "create": lambda ask, _id, plain: ask.create(plain=plain),
    "change": lambda ask, one, plain: ask("POST", f"/objects/{one}", plain=plain, json={"properties": {"title": "t"}}),
    "replace": lambda ask, one, plain: ask("POST", f"/objects/{one}/contents", plain=plain, content=b"words"),
    "assign": lambda ask, one, plain: ask(
        "PUT", f"/objects/{one}/permission-set", plain=plain, json={"acl-name": "public"}
    ),
    "delete": lambda ask, one, plain: ask("DELETE", f"/objects/{one}", plain=plain),
}


@pytest.fixture(scope="module")
def site(world: World, loop: Loop) -> Iterator[Site]:
    served = Site(world, "neutral", loop)
    yield served
    served.close()


@pytest.fixture
def writer(site: Site, world: World) -> Asker:
    return Asker(site, world.writer)


@pytest.fixture
def administrator(site: Site, world: World) -> Asker:
    made = world.person()
    with world.directory_db.begin() as cx:
        group = entries.find_group(cx, world.names, f"administrators@{world.names.administration_partition}")
        memberships.add_member(cx, group, world.entry(made))
    return Asker(site, made)


def object_id(answer: httpx.Response) -> str:
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["properties"]["r_object_id"]
    return found


def latest(world: World) -> Position:
    with world.repository_db.read() as cx:
        return changes.latest(cx, repositories.find(cx, world.repository).id)


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_two_answers_to_the_same_search_tell_its_position_differently(writer: Asker) -> None:
    told = {writer("GET", "/search").headers[HEADER] for _ in range(20)}
    assert len(told) == 20
    assert all(SEALED.fullmatch(each) for each in told)


@pytest.mark.parametrize("write", WRITES)
def test_every_write_tells_a_sealed_position_that_a_search_waits_for(writer: Asker, world: World, write: str) -> None:
    answer = WRITES[write](writer, object_id(writer.create()), False)
    assert answer.is_success, answer.text
    assert SEALED.fullmatch(answer.headers[HEADER])
    world.catch_up()
    assert writer.wait(answer.headers[HEADER]).status_code == 200
    assert Asker(writer.site, world.reader).wait(answer.headers[HEADER]).status_code == 200, "it is handed on"


def test_nothing_in_the_texts_tells_which_of_two_writes_came_first(writer: Asker) -> None:
    told = [writer.create().headers[HEADER] for _ in range(40)]
    assert len({len(each) for each in told}) == 1
    assert told not in (sorted(told), sorted(told, reverse=True))
    for place in range(59):  # no letter stands still or goes on as a counter does
        column = [each[place] for each in told]
        assert len(set(column)) > 1
        assert sum(one < other for one, other in itertools.pairwise(column)) < 35


@pytest.mark.parametrize("write", WRITES)
def test_a_plain_position_is_refused_to_whoever_does_not_administer_and_nothing_is_written(
    writer: Asker, world: World, write: str
) -> None:
    one = object_id(writer.create())
    before = latest(world)
    assert refused(WRITES[write](writer, one, True)) == (403, "E_NOT_PERMITTED")
    assert latest(world) == before
    assert writer("GET", f"/objects/{one}").status_code == 200


def test_a_search_is_refused_the_plain_position_and_takes_none_of_whoever_does_not_administer(
    writer: Asker, world: World
) -> None:
    assert refused(writer("GET", "/search", plain=True)) == (403, "E_NOT_PERMITTED")
    for plain in (str(latest(world)), "0.0", "0.99999999"):
        assert refused(writer.wait(plain)) == (403, "E_NOT_PERMITTED")


@pytest.mark.parametrize("write", WRITES)
def test_an_administrator_gets_and_sends_the_plain_position(administrator: Asker, world: World, write: str) -> None:
    answer = WRITES[write](administrator, object_id(administrator.create()), True)
    assert answer.is_success, answer.text
    assert answer.headers[HEADER] == str(latest(world))
    world.catch_up()
    assert administrator.wait(answer.headers[HEADER]).status_code == 200
    searched = administrator("GET", "/search", plain=True)
    assert searched.headers[HEADER] == str(latest(world))
    assert SEALED.fullmatch(administrator("GET", "/search").headers[HEADER]), "unless they ask, it is sealed"


def test_a_right_to_administer_that_ended_shows_no_plain_position_any_more(administrator: Asker, world: World) -> None:
    assert administrator("GET", "/search", plain=True).status_code == 200
    with world.directory_db.begin() as cx:
        group = entries.find_group(cx, world.names, f"administrators@{world.names.administration_partition}")
        memberships.remove_members(cx, group, [world.entry(administrator.person)])
    assert refused(administrator("GET", "/search", plain=True)) == (403, "E_NOT_PERMITTED")
    assert refused(administrator.wait("0.0")) == (403, "E_NOT_PERMITTED")


def test_a_position_that_is_changed_cut_off_foreign_or_of_another_purpose_is_refused_by_name(
    writer: Asker, administrator: Asker, world: World
) -> None:
    told = writer.create().headers[HEADER]
    other = "A" if told[30] != "A" else "B"
    with world.repository_db.read() as cx:
        seal, own = keys.seal(cx), repositories.find(cx, world.repository).id
    packed = bytes(16)
    assert administrator.wait(seal.seal(packed, "position", str(own))).status_code == 200, "so it would be right"
    wrong = (
        told[:30] + other + told[31:],
        told[:-4],
        told + "AAAA",
        told[1:],
        seal.seal(packed, "position", str(own + 1)),
        seal.seal(packed, "cursor", str(own)),
        seal.seal(packed[1:], "position", str(own)),
        keys.Seal(bytes(32)).seal(packed, "position", str(own)),
        "x",
        "1.",
        "-1.2",
        "\N{ARABIC-INDIC DIGIT ONE}.2",
        "1.2\n",
        "9" * 30 + ".1",
        "A" * 5000,
    )
    for ask in (writer, administrator):
        for each in wrong:
            answer = ask.wait(each)
            assert refused(answer) == (400, "E_MALFORMED_REQUEST"), each
            assert "'wait-for'" in answer.json()["message"]


def test_the_header_of_a_request_is_plain_or_refused(writer: Asker, administrator: Asker) -> None:
    for ask in (writer, administrator):
        for value in ("Plain", "sealed", "", "1.2"):
            headers = ask.site.bearer(ask.person) | {HEADER: value, "Accept": "application/json"}
            answer = ask.site.http.get(ask.site.search_address, headers=headers)
            assert refused(answer) == (400, "E_MALFORMED_REQUEST")
            assert HEADER in answer.json()["message"]


def test_what_one_process_sealed_another_opens_also_after_a_restart(world: World, loop: Loop) -> None:
    first, second = Site(world, "neutral", loop), Site(world, "neutral", loop)
    told = Asker(first, world.writer).create().headers[HEADER]
    first.close()
    world.catch_up()
    assert Asker(second, world.writer).wait(told).status_code == 200
    second.close()
    again = Site(world, "neutral", loop)
    assert Asker(again, world.writer).wait(told).status_code == 200
    again.close()


def test_a_strangers_page_about_health_shows_no_position(site: Site, world: World) -> None:
    ready = site.http.get("/health/ready").json()
    assert set(ready["indexes"][world.repository]) == {"seconds_behind", "late"}
