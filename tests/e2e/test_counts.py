"""What each kind of request costs, counted: timings differ with the machine and what else runs on it, counts do not.

``MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_counts.py`` writes them into the table beside this file. A commit
that raises a figure says why.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median

import httpx
import pytest

from bench.search_kinds import KINDS, Kind
from muniment import app
from muniment.database import fair_queue, schema
from muniment.database.audit import SYSTEM, acting
from muniment.database.connections import Database, Half
from muniment.directory.entries import editing, entries, oauth_clients, resources
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.oauth import codes
from muniment.directory.oauth.codes import Authorization
from muniment.directory.sign_in import tickets
from muniment.directory.sign_in.passwords import new_secret
from muniment.ground import clock
from muniment.ground.clock import SECOND
from muniment.repository.store import repositories
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.server import logs
from tests.counting import Work, work
from tests.office import page_ticket
from tests.pages import Reader
from tests.scenes import Loop, Person, Site, World, between

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("counts.md")

_WITHIN = 0.03
_TIMES = 4
"""So often each kind is asked; the first time it warms up."""

_HALVES: tuple[Half, ...] = ("directory", "repository")
_DOCUMENTS, _LENGTH, _STEP = 60, 160, 23
"""So many documents, each so many words of the licence, which begin so many words after those of the one before."""

_GROUPS, _SEEN, _CLUBS, _ACLS = 8, 6, 40, 16
"""Groups there are, groups the reader is in, further groups of the member, and ACLs, each for one group to read."""

_SUBJECTS, _VOLUMES = 10, 16

_SERVICE = "counted-service"

_WORDS: Mapping[str, Sequence[str]] = {
    "search": ("license", "conditions", "notice", "copyright"),
    "search-phrase": ("derivative works", "source form", "legal entity", "object form"),
    "search-prefix": ("contr", "condi", "licen", "distr"),
    "search-wildcard": ("con or", "der ve", "cop ht", "mod ns"),
    "search-list": ("source", "form", "object", "entity"),
    "search-facets": ("contribution", "modifications", "terms", "licensor"),
    "search-sorts": ("including", "otherwise", "other", "limited"),
    "search-groups": ("legal", "provided", "purposes", "whether"),
    "question": (
        "you may reproduce and distribute copies of work",
        "direct or indirect to cause the direction management",
        "any form resulting from mechanical transformation translation",
        "grant of patent license subject to terms",
    ),
    "keywords": ("license terms", "source code", "patent claims", "object form"),
    "page": (
        "submitted for inclusion in the work by owner",
        "common control with that entity for the purposes",
        "tracking systems that are managed by or on behalf",
        "reasonable and customary use in describing the origin",
    ),
}
"""What is asked each time, so that none of it is remembered."""


class Requests:
    """What people ask the application of a small world."""

    def __init__(self, site: Site, reader: Person, member: Person) -> None:
        self._site, self._reader, self._member = site, reader, member
        self._page = Reader(site, reader)
        self._headers = site.bearer(reader) | {"Accept": "application/json"}
        self._fresh, self._others = (
            iter([site.issue(reader)["access_token"] for _ in range(_TIMES)]) for _ in range(2)
        )
        self._secret, self._codes = _add_service(site.world, reader)
        self._ids = iter(site.keywords("license", person=reader).ids)

    def kinds(self) -> Mapping[str, Callable[[int], httpx.Response]]:
        """Each asks as often as there are words of a kind; the number says how often it has been asked."""
        site, token = self._site, self._site.world.tokens[self._reader.id, self._site.world.scope]
        search, plain = site.search_address, KINDS[0]

        def suggestion(n: int) -> httpx.Response:
            return self._get(f"{search}/suggestions", q=_WORDS["search-prefix"][n])

        return {
            "tokeninfo": lambda _: site.tokeninfo(token),
            "tokeninfo, asked about this token for the first time": lambda _: site.tokeninfo(next(self._fresh)),
            "introspection": lambda _: self._by_service("introspect", token=token),
            "introspection, asked about this token for the first time": lambda _: self._by_service(
                "introspect", token=next(self._others)
            ),
            "client credentials": lambda _: self._by_service(
                "token", grant_type="client_credentials", scope=site.world.scope
            ),
            "token for a code": lambda _: self._by_service(
                "token", grant_type="authorization_code", code=next(self._codes)
            ),
            "metadata of an object": lambda _: self._get(f"{site.repository}/objects/{next(self._ids)}"),
            **{_named(kind): partial(self._posted, kind) for kind in KINDS},
            f"{plain.work}, the same once more": lambda _: self._posted(plain, 0),
            "search by keywords": lambda n: self._get(search, q=_WORDS["keywords"][n], **{"include-total": "true"}),
            "suggestion while somebody types": suggestion,
            "page with the empty box": lambda _: self._page.http.get("/search"),
            "page of hits": lambda n: self._page.http.get("/search", params={"q": _WORDS["page"][n]}),
            "page of hits, the same once more": lambda _: self._page.http.get("/search", params={"q": "license"}),
        }

    def _by_service(self, path: str, **form: str) -> httpx.Response:
        return self._site.http.post(f"{self._site.directory}/oauth2/{path}", data=form, auth=(_SERVICE, self._secret))

    def _get(self, address: str, **parameters: str) -> httpx.Response:
        return self._site.http.get(address, params=parameters, headers=self._headers)

    def _posted(self, kind: Kind, n: int) -> httpx.Response:
        sizes = between("r_full_content_size", "200", "100000")
        document = self._site.aql(kind.ours(_WORDS[kind.row][n].split()), sizes)
        document = document.replace("</search>", f"{kind.more}</search>")
        person = self._member if kind.row == "search-groups" else self._reader
        return self._site.post_search(document, {"include-total": "true", "words": kind.needed}, person=person)


def measured(folder: Path) -> dict[str, Work]:
    """Each kind of request, with the middle of what it takes after the first time."""
    folder.chmod(0o700)
    urls = [f"sqlite:///{folder}/{half}.db" for half in _HALVES]
    for half, url in zip(_HALVES, urls, strict=True):
        with closing(Database(url)) as database:
            schema.migrate(database, half)
    with closing(World(folder, urls[0], urls[1])) as world:
        logs.start(world.installation.settings)
        # What is done after some time, whatever is asked, would be counted with some requests.
        fair_queue._LOOK_SECONDS = 60
        app.record_counts = lambda *_: asyncio.Event().wait()  # type: ignore[assignment, attr-defined]
        people = _fill(world)
        with work() as counter, closing(Loop()) as loop, closing(Site(world, "neutral", loop)) as site:
            kinds = Requests(site, *people).kinds()
            return {name: _middle([counter.of(partial(ask, n)) for n in range(_TIMES)]) for name, ask in kinds.items()}


def _named(kind: Kind) -> str:
    return kind.work.replace("1,000", str(_SEEN + _CLUBS))


def _middle(answers: Sequence[tuple[httpx.Response, Work]]) -> Work:
    assert all(answer.status_code == 200 for answer, _ in answers)
    return Work(*(int(median(each)) for each in zip(*(cost for _, cost in answers[1:]), strict=True)))


def _add_service(world: World, reader: Person) -> tuple[str, Iterator[str]]:
    """A client with a made secret, whose default resource is the world's, and codes that the reader allowed it."""
    secret, kept = new_secret()
    with world.directory_db.begin() as cx:
        now, names = world.clock(), world.names
        client, user = (
            editing.add_client(cx, _SERVICE, now, password_hash=kept),
            entries.find_user(cx, names, reader.id),
        )
        oauth_clients.write(cx, client, ClientSettings(default_resource=world.resource_id), now)
        resources.add_to_role(cx, resources.by_id(cx, world.resource_id), client)
        ticket = tickets.parse(cx, names, page_ticket(cx, names, user.id, world.resource_id, now))
        allowed = Authorization(
            client_id=client.id,
            user_id=user.id,
            auth_time=now,
            resource_id=world.resource_id,
            scopes="openid",
            told="",
            redirect_address="",
            challenge=None,
            nonce=None,
            ticket=ticket,
            expires=now + codes.LONGEST_SECONDS * SECOND,
        )
        return secret, iter([codes.issue(cx, allowed) for _ in range(_TIMES)])


def _fill(world: World) -> tuple[Person, Person]:
    groups, clubs = [[f"{name}-{n}" for n in range(most)] for name, most in (("group", _GROUPS), ("club", _CLUBS))]
    for name in groups + clubs:
        world.group(name)
    reader = world.person(*groups[:_SEEN], name="reader")
    member = world.person(*groups[:_SEEN], *clubs, name="member")
    words, administrator = (
        (ROOT / "LICENSE").read_text("utf-8").split(),
        Principals("admin", frozenset(), administrator=True),
    )
    store, now = FileStore(world.installation.content), world.clock()
    with world.repository_db.begin() as cx:
        held = repositories.find(cx, world.repository)
        for n in range(_ACLS):
            acls.add(
                cx,
                held.id,
                f"acl-{n}",
                administrator,
                {f"{groups[n % _GROUPS]}@{world.partition}": Permission.READ},
                now,
            )
        view = RepositoryView.read(cx, held, administrator)
        for n in range(_DOCUMENTS):
            begin = n * _STEP % (len(words) - _LENGTH)
            given = {"object_name": f"passage-{n}.txt", "a_content_type": "text/plain", "acl_name": f"acl-{n % _ACLS}"}
            given |= {"subject": f"subject-{n % _SUBJECTS}", "title": f"volume-{n % _VOLUMES}"}
            text = " ".join(words[begin : begin + _LENGTH])
            creation.create(cx, view, "document", given, None, store.put([text.encode()]), now)
    world.catch_up()
    return reader, member


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="The table counts the calls of Python 3.11's own library.")
def test_each_kind_of_request_takes_what_the_table_says() -> None:
    # In a process of its own nothing is remembered from other tests.
    counting = [sys.executable, "-m", __name__]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    counted = subprocess.run(counting, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        TABLE.write_text(counted, "utf-8")
    now, before = _read(counted), _read(TABLE.read_text("utf-8"))
    assert list(now) == list(before), _HOW
    changed = {
        f"{name}, {what}": f"{new}, not {old}"
        for name, row in now.items()
        for what, new, old in zip(Work._fields, row, before[name], strict=True)
        if abs(new - old) > _WITHIN * old
    }
    assert not changed, _HOW


def _written(rows: Mapping[str, Work]) -> str:
    lines = [f"| {name} | {' | '.join(map(str, work))} |\n" for name, work in rows.items()]
    return "".join([*_HEAD, *lines])


def _read(text: str) -> dict[str, Work]:
    rows = [line.strip("| \n").split(" | ") for line in text.removeprefix("".join(_HEAD)).splitlines()]
    return {name: Work(*map(int, figures)) for name, *figures in rows}


_HEAD = (
    "# What a request takes, counted\n\n",
    "| Request | Python calls | Calls of the engine | Statements | Rows |\n",
    "|---|---:|---:|---:|---:|\n",
)
_HOW = "run MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_counts.py, and say in the commit why a figure has risen"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, acting(SYSTEM, clock.now):
        print(_written(measured(Path(scratch))), end="")
