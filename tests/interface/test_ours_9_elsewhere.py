"""ours 9, where the directory runs elsewhere: the repository shows its resource's secret, and reads whom it lets in."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog.testing

from muniment.directory.entries import resources
from muniment.integration import people_elsewhere
from muniment.repository.api.callers import over_http
from tests.interface.by_rest import Rest, header, ticket
from tests.scenes import Loop, Person, Served, Site, World

EVERY = {"items-per-page": "1000"}


class Apart:
    """A repository whose directory is another server's, and its file of secrets."""

    def __init__(self, both: Site, served: Served, loop: Loop, folder: Path) -> None:
        self.both, self.served, self.file = both, served, folder / "secrets"
        self.secret = both.world.secrets[both.world.resource_id]
        self.know(self.secret)
        elsewhere = (
            f"repository.tokeninfo_url={served.base}{both.oauth}/tokeninfo",
            f"repository.tokeninfo_ca_file={served.ca_file}",
            f"repository.resource_secrets_file={self.file}",
            "repository.default_partition=demo",
        )
        self.site = Site(both.world, both.kind, loop, "halves=repository", *elsewhere)

    def know(self, secret: str, resource_id: str = "") -> None:
        """Write the file."""
        self.file.write_text(f"# ours\n\n{resource_id or self.both.world.resource_id}\t{secret}\n", "utf-8")

    def get(
        self, path: str, params: Mapping[str, str] | None = None, person: Person | None = None, *, both: bool = False
    ) -> httpx.Response:
        """Ask the repository; with ``both``, the one that has its directory in its process."""
        site = self.both if both else self.site
        headers = self.both.bearer(person) | {"Accept": "application/json"}
        return site.http.get(f"{site.repository}/{path}".rstrip("/"), params=params, headers=headers)

    def code(self, path: str = "users") -> tuple[int, str]:
        answer = self.get(path)
        return answer.status_code, answer.json()["code"]


@pytest.fixture(scope="module")
def apart(world: World, loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    with (
        closing(Site(world, "neutral", loop, "repository.default_partition=demo")) as both,
        closing(Served(both)) as served,
    ):
        made = Apart(both, served, loop, tmp_path_factory.mktemp("apart"))
        with closing(made.site):
            yield made


@pytest.fixture(autouse=True)
def _right_secret(apart: Apart) -> Iterator[None]:
    yield
    apart.know(apart.secret)


@pytest.mark.parametrize(
    ("path", "params", "status"),
    [
        ("users", EVERY, 200),
        ("users", {"items-per-page": "2", "page": "2", "include-total": "true"}, 200),
        (
            "users",
            {"sort": "user_name desc", "filter": "user_name='reader@demo' or not(starts-with(user_name,'p'))"},
            200,
        ),
        ("users", {"filter": "user_name='nobody'", "include-total": "true"}, 200),
        ("groups", EVERY, 200),
        ("groups", {"user-name": "{writer}", "recursive": "true"}, 200),
        ("groups/everyone/groups", {}, 200),
        ("groups/writers@demo/users", EVERY, 200),
        ("groups/nobody@demo/users", {}, 404),
        ("users/{writer}", {}, 200),
        ("users/{outsider}", {}, 404),
        ("groups/writers", {}, 200),
        ("groups/everyone/groups/writers", {}, 200),
        ("currentuser", {}, 200),
        ("users", {"filter": "nonsense='a'"}, 400),
        ("users", {"sort": "nonsense"}, 400),
        ("users", {"filter": "r_modify_date='a'"}, 400),
        ("", {"dql": "select user_name, user_address from user where user_name like 'w%' order by 1"}, 200),
        ("", {"dql": "select group_name from group where group_name in ('writers', 'everyone')"}, 200),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else str(value),
)
def test_both_ways_answer_alike(apart: Apart, path: str, params: dict[str, str], status: int) -> None:
    world = apart.both.world
    spell = {"writer": world.writer.id, "outsider": world.outsider.id}
    asked = {name: text.format(**spell) for name, text in params.items()}
    here, elsewhere = (apart.get(path.format(**spell), asked, both=together) for together in (True, False))
    assert here.status_code == elsewhere.status_code == status, elsewhere.text
    assert _plain(elsewhere.json()) == _plain(here.json())


def test_a_long_page_takes_several_questions(apart: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people_elsewhere, "MOST_ASKED", 2)
    for page in ("1", "2"):
        params = {"items-per-page": "5", "page": page, "sort": "user_login_name"}
        here, elsewhere = (apart.get("users", params, both=together).json() for together in (True, False))
        assert [entry["title"] for entry in elsewhere["entries"]] == [entry["title"] for entry in here["entries"]]


def test_who_is_let_in_or_out_counts_at_once(apart: Apart) -> None:
    world = apart.both.world
    person = world.person(member=False)
    assert apart.get(f"users/{person.id}").status_code == 404
    world.admit(person, world.resource_id)
    assert apart.get(f"users/{person.id}").json()["properties"]["user_name"] == person.id
    with world.directory_db.begin() as cx:
        resources.remove_from_role(cx, resources.by_id(cx, world.resource_id), world.entry(person))
    assert apart.get(f"users/{person.id}").status_code == 404


def test_an_administrator_reads_what_others_may_do_with_an_object(apart: Apart) -> None:
    site, world = apart.both, apart.both.world
    made = site.create("private", b"text")
    for accessor, permission in ((world.reader.id, "None"), ("everyone@demo", "None"), (world.writer.id, "Delete")):
        shown = apart.get(f"objects/{made}/permissions", {"accessor": accessor}, world.writer)
        assert (shown.status_code, shown.json()["basic-permission"]) == (200, permission), shown.text
    assert apart.get(f"objects/{made}/permissions", {"accessor": world.outsider.id}, world.writer).status_code == 404


def test_nobody_is_changed_from_there(apart: Apart) -> None:
    administrator = apart.both.world.admin(apart.both.directory_names)
    apart.both.world.admit(administrator, apart.both.world.resource_id)
    headers = apart.both.bearer(administrator)
    body = {"properties": {"user_name": "new@demo"}}
    answer = apart.site.http.post(f"{apart.site.repository}/users", json=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "E_NOT_OFFERED_YET")


def test_without_a_secret_nobody_is_shown(apart: Apart) -> None:
    for content in ("", "# nothing\n", f"{apart.both.world.resource_id}\n", "nonsense and more\n"):
        apart.file.write_text(content, "utf-8")
        assert apart.code() == (400, "E_NOT_OFFERED_YET"), content


def test_a_secret_with_blanks_is_read(apart: Apart) -> None:
    secret = "  two words, and a blank  "
    with apart.both.world.directory_db.begin() as cx:
        names, now = apart.both.directory_names, apart.both.world.clock()
        made = resources.add(cx, names, apart.both.world.word(), now, secret=secret.strip())
    apart.know(secret, made.id.upper())
    read = over_http._secret_of(str(apart.file), made.id)
    assert read == secret.strip()


def test_a_new_secret_counts_without_a_restart(apart: Apart) -> None:
    apart.know("a wrong one")
    with structlog.testing.capture_logs() as logs:
        answer = apart.get("users")
    assert (answer.status_code, answer.json()["code"]) == (503, "E_DIRECTORY_UNAVAILABLE")
    assert answer.headers["retry-after"] == "1"
    (line,) = [each for each in logs if each["event"] == "the directory does not tell whom a resource lets in"]
    assert (line["status"], line["resource"]) == (401, apart.both.world.resource_id)
    assert "a wrong one" not in str(logs)
    apart.know(apart.secret)
    assert apart.get("users").status_code == 200


def test_a_file_that_cannot_be_read_is_said_to_be(apart: Apart) -> None:
    apart.file.unlink()
    with structlog.testing.capture_logs() as logs:
        assert apart.code() == (503, "E_DIRECTORY_UNAVAILABLE")
    assert "secrets of resources unreadable" in [each["event"] for each in logs]
    apart.file.write_bytes(b"\xff\xfe")
    assert apart.code() == (503, "E_DIRECTORY_UNAVAILABLE")


# The directory's own address


def asked(rest: Rest, secret: str | None, question: Any, resource_id: str = "", **more: Any) -> httpx.Response:
    """Ask as a resource does, without any other credential."""
    body = {"question": question} | ({} if secret is None else {"secureSecret": secret})
    address = f"/resources/{resource_id or rest.site.world.resource_id}/people"
    return rest("POST", address, body, **({"headers": {}} | more))


@pytest.fixture(params=["rest", "v1"])
def rest(site: Site, request: pytest.FixtureRequest) -> Rest:
    return Rest(site, request.param)


FIND = {"type": "find", "kind": "user"}


def test_a_resource_learns_whom_it_lets_in_and_nothing_else(rest: Rest) -> None:
    world = rest.site.world
    secret = world.secrets[world.resource_id]
    shown = asked(rest, secret, FIND | {"id": world.writer.id}).json()["answer"]["person"]
    assert shown == {
        "kind": "user",
        "id": world.writer.id,
        "identity": world.entry(world.writer).uuid,
        "short_name": world.writer.name,
        "description": "",
        "modified": world.entry(world.writer).modified,
        "state": None,
        "second_name": world.writer.name,
        "address": "",
    }
    for person_id in (world.outsider.id, "nobody@demo", "nonsense"):
        for question in (FIND, {"type": "describe"}):
            refused = asked(rest, secret, question | {"id": person_id})
            assert refused.status_code == 200
            assert refused.json()["answer"]["refused"] == "UnknownPerson"
    names, place = list[str](), None
    while True:
        part = {"type": "page", "kind": "user", "limit": people_elsewhere.MOST_ASKED}
        listed = asked(rest, secret, part if place is None else part | {"after": place})
        people = listed.json()["answer"].get("people", [])
        names += [person["id"] for person, _ in people]
        if len(people) < people_elsewhere.MOST_ASKED:
            break
        place = people[-1][1]
    assert world.writer.id in names
    assert world.outsider.id not in names
    assert listed.headers["cache-control"] == "no-store"


def test_without_its_secret_nobody_learns_anything(rest: Rest) -> None:
    """No other credential opens the address, and one refusal tells nothing about resources."""
    site, world = rest.site, rest.site.world
    administrator = world.admin(site.directory_names)
    tickets = {
        who: {header(site): ticket(site, person, resource_id, seconds=seconds)}
        for who, person, resource_id, seconds in (
            ("a user", world.reader, "", 600),
            ("an administrator", administrator, "", 600),
            ("an ended ticket", administrator, "", -1),
            ("a ticket of the resource", world.writer, world.resource_id, 600),
        )
    }
    shown = ({}, site.bearer(), *tickets.values())
    with world.directory_db.begin() as cx:
        other = resources.add(
            cx, site.directory_names, world.word(), world.clock(), secret="secret of another resource"
        )
    wrong = (None, "", "a wrong one", "secret of another resource", world.secrets[world.resource_id][:-1])
    answers = [asked(rest, secret, FIND | {"id": world.writer.id}, headers=each) for secret in wrong for each in shown]
    answers += [
        asked(rest, world.secrets[world.resource_id], FIND, resource_id)
        for resource_id in (other.id, world.idle_resource_id, "nothing", "00000000-0000-4000-8000-00000000dead")
    ]
    assert {(answer.status_code, answer.text) for answer in answers} == {(401, answers[0].text)}
    assert isinstance(answers[0].json(), dict)


def test_a_resource_that_was_deactivated_learns_nothing_more(rest: Rest) -> None:
    world, secret = rest.site.world, "a secret of its own"
    with world.directory_db.begin() as cx:
        made = resources.add(cx, rest.site.directory_names, world.word(), world.clock(), secret=secret)
    question = {"type": "count", "kind": "group"}
    assert asked(rest, secret, question, made.id).json() == {"answer": {}}
    rest.done("POST", f"/resources/{made.id}/deactivate", {"secureSecret": secret}, headers={})
    assert asked(rest, secret, question, made.id).status_code == 401


def _nested(depth: int) -> dict[str, Any]:
    tree: dict[str, Any] = {"type": "HasNoValue", "name": "description", "place": 0}
    for _ in range(depth):
        tree = {"type": "Not", "part": tree}
    return tree


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"type": "nonsense"},
        {"type": "find", "kind": "client", "id": "a"},
        {"type": "page", "kind": "user", "limit": people_elsewhere.MOST_ASKED + 1},
        {"type": "page", "kind": "user", "limit": 0},
        {"type": "page", "kind": "user", "limit": 1, "offset": -1},
        {"type": "page", "kind": "user", "limit": 1, "offset": 1 << 64},
        {"type": "page", "kind": "user", "limit": 1, "after": [1]},
        {"type": "page", "kind": "user", "limit": 1, "after": ["a", {}, 1]},
        {"type": "page", "kind": "user", "limit": 1, "after": ["=="]},
        {"type": "page", "kind": "user", "limit": 1, "after": ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="]},
        {"type": "find", "kind": "user", "id": "a\x00b@demo"},
        {"type": "count", "kind": "user", "selection": {"filter": {"type": "Comparison"}}},
        {"type": "count", "kind": "user", "selection": {"filter": _nested(200)}},
    ],
    ids=lambda question: json.dumps(question)[:80],
)
def test_a_question_that_cannot_be_read_is_refused(site: Site, question: Any) -> None:
    answer = asked(Rest(site), site.world.secrets[site.world.resource_id], question)
    assert answer.status_code == 400, answer.text
    assert answer.json()["status"] == 400


def _plain(document: Any) -> Any:
    """Leave out what differs from answer to answer: the time, and sealed cursors."""
    if isinstance(document, dict):
        return {
            key: _plain(value)
            for key, value in document.items()
            if key not in {"updated", "published", "id"} and not (key == "href" and "cursor=" in str(value))
        }
    return [_plain(each) for each in document] if isinstance(document, list) else document
