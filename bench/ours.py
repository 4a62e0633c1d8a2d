"""Our own server: fill its data folders through the nouns in big transactions, and serve them as an operator would."""

import json
import secrets
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from bench.checkout import Checkout, as_it_was
from bench.load import Request, bearer
from bench.processes import Program, free_port, started
from muniment.database.audit import SYSTEM, acting
from muniment.directory.entries import editing, entries, memberships, resources
from muniment.directory.sign_in.passwords import hash_new
from muniment.ground import clock
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.repository.search.agent import agent
from muniment.repository.store import repositories
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import objects, table
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals

PARTITION, CLIENT, PERSON, MEMBER = "people", "bench-client", "ana", "ben"
GROUPS, SEEN, ACLS = 8, 6, 40
"""Groups there are, groups ana is in, and ACLs, each readable by one group: she may read three documents of four."""

READABLE = [f"acl-{number}" for number in range(ACLS) if number % GROUPS < SEEN]
"""The ACLs that the caller of every search may read by."""

SUBJECTS = 10
"""The subjects there are; the document of ACL n is about subject n mod 10, in the volume n."""

SIZES = (200, 100_000)
"""The sizes in bytes between which every search asks its documents to be."""

CABINET = "Passages"

_MANY = 5_000


@dataclass(frozen=True)
class Data:
    """A data folder with people, a client, groups and ACLs; ``secret`` is ana's and the administrator's password.

    ``checkout`` is the commit that made it and serves it, None if that is this one.
    """

    folder: Path
    secret: str
    resource_id: str
    overrides: tuple[str, ...] = ()
    checkout: Checkout | None = None

    def opened(self) -> DataFolder:
        """Open it as a command does."""
        return DataFolder(self.folder, None, self.overrides)


@acting(SYSTEM, clock.now)
def prepare(folder: Path, *overrides: str) -> Data:
    """Make a data folder: ana in six of eight groups one inside another, a client, forty ACLs.

    The overrides (``key=value``) are settings in force whenever it is opened.
    """
    data_folder = DataFolder(folder, None, overrides)
    secret = secrets.token_urlsafe(12)
    begun = initialise.run(data_folder, secret)
    names = data_folder.settings.directory.names
    now = data_folder.now
    hashed = hash_new(secret, data_folder.settings.directory)
    with data_folder.database("directory") as database, database.begin() as cx:
        people = editing.add_partition(cx, names, PARTITION, now, description="Everybody who works here.")
        person = editing.add_user(cx, people, PERSON, now, password_hash=hashed, description="Keeps the registers.")
        for number in range(GROUPS):
            group = editing.add_group(cx, people, f"group-{number}", now)
            if number < SEEN:
                memberships.add_member(cx, group, person)
        editing.add_client(cx, CLIENT, now, description="The client under measure.")
        guard = resources.by_id(cx, begun.resource_id)
        resources.add_to_role(cx, guard, people)
    with data_folder.database("repository") as database, database.begin() as cx:
        held = repositories.find(cx, initialise.REPOSITORY)
        administrator = _administrator()
        for number in range(ACLS):
            reader = f"group-{number % GROUPS}@{PARTITION}"
            acls.add(cx, held.id, f"acl-{number}", administrator, {reader: Permission.READ}, now)
    return Data(folder, secret, begun.resource_id, overrides)


def prepare_at(checkout: Checkout, folder: Path, *overrides: str) -> Data:
    """Let another commit make a data folder as this one makes it."""
    made = checkout.call(__name__, "prepare", folder, *overrides)
    return Data(folder, made["secret"], made["resource_id"], overrides, checkout)


@as_it_was
@acting(SYSTEM, clock.now)
def join_many(data: Data, groups: int) -> None:
    """Add the user ben, who is in so many groups. The groups of ana are among them, so ben reads what ana reads."""
    data_folder = data.opened()
    names, now = data_folder.settings.directory.names, data_folder.now
    hashed = hash_new(data.secret, data_folder.settings.directory)
    with data_folder.database("directory") as database, database.begin() as cx:
        people = entries.find_partition(cx, names, PARTITION)
        person = editing.add_user(cx, people, MEMBER, now, password_hash=hashed, description="Is in every club.")
        for number in range(SEEN):
            memberships.add_member(cx, entries.find_group(cx, names, f"group-{number}@{PARTITION}"), person)
        for number in range(groups - SEEN):
            memberships.add_member(cx, editing.add_group(cx, people, f"club-{number}", now), person)


@as_it_was
@acting(SYSTEM, clock.now)
def fill(data: Data, texts: Iterable[str]) -> None:
    """Keep the texts as documents whose files have been read, and make the index of them.

    They lie in one cabinet. The first document of each ACL is made as a caller makes one. The others are copies of its
    rows with another number, name, size and text, many in one transaction. Their bytes are not in the content store,
    which no search and no list reads. The ACL of document n is ``acl-(n mod 40)``, its name ``passage-n.txt``.
    """
    data_folder = data.opened()
    with data_folder.database("repository") as database:
        with database.begin() as cx:
            held = repositories.find(cx, initialise.REPOSITORY)
            view = RepositoryView.read(cx, held, _administrator())
            properties = {"object_name": CABINET, "acl_name": acls.PUBLIC}
            cabinet = creation.create(cx, view, "cabinet", properties, None, None, data_folder.now).id
            patterns = [_pattern(cx, data_folder, view, cabinet, number) for number in range(ACLS)]
            last = cx.execute(sa.select(sa.func.max(table.objects.c.seq))).scalar_one()
        numbered = enumerate(texts)
        while some := list(islice(numbered, _MANY)):
            rows, read = [], []
            with database.begin() as cx:
                for number, said in some:
                    row, about = patterns[number % ACLS]
                    seq, key = last + 1 + number, f"{number:032x}"
                    object_id = object_ids.make(cx, view.catalogue, row["type"], seq)
                    changed = {"seq": seq, "id": object_id, "name": f"passage-{number}.txt"}
                    rows.append({**row, **changed, "content_key": key, "content_size": len(said.encode())})
                    kept = {"object_id": object_id, "seq": seq, "content_key": key}
                    read.append({**about, **kept, "state": "done", "text": said})
                cx.execute(table.objects.insert(), rows)
                cx.execute(queue.texts.insert(), read)
        with database.begin() as cx:
            for row, _ in patterns:
                objects.delete(cx, held, _administrator(), row["id"], data_folder.now)
        agent.rebuild(database, held, backends.engine(data_folder.installation), clock.now)


def _pattern(
    cx: Connection, data_folder: DataFolder, view: RepositoryView, cabinet: str, number: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make a document under an ACL, and give its row and that of its text."""
    content = FileStore(data_folder.installation.content).put([b"Some words."])
    given = {"object_name": f"pattern-{number}.txt", "a_content_type": "text/plain", "acl_name": f"acl-{number}"}
    given |= {"subject": f"subject-{number % SUBJECTS}", "title": f"volume-{number:02d}"}
    made = creation.create(cx, view, "document", given, cabinet, content, data_folder.now)
    row = cx.execute(sa.select(table.objects).where(table.objects.c.id == made.id)).mappings().one()
    about = cx.execute(sa.select(queue.texts).where(queue.texts.c.object_id == made.id)).mappings().one()
    return dict(row), dict(about)


@dataclass(frozen=True)
class Site:
    """A data folder being served."""

    data: Data
    program: Program
    base: str
    ca_file: str

    @property
    def login(self) -> str:
        """The token endpoint."""
        return f"{self.base}/dirws/login"

    @property
    def repository(self) -> str:
        """The beginning of every address of the repository."""
        return f"{self.base}/rest/repositories/{initialise.REPOSITORY}"

    def sign_in_form(self, person: str = PERSON) -> str:
        """Write the password grant's body."""
        return str(
            httpx.QueryParams(
                {
                    "grant_type": "password",
                    "client_id": CLIENT,
                    "username": f"{person}@{PARTITION}",
                    "password": self.data.secret,
                    "scope": "resource:" + initialise.resource_name(initialise.REPOSITORY),
                }
            )
        )

    def signed_in(self, person: str = PERSON) -> dict[str, str]:
        """Sign ana or ben in: the tokens."""
        answer = httpx.post(self.login, content=self.sign_in_form(person), headers=dict([FORM]), verify=self.ca_file)
        found: dict[str, str] = answer.raise_for_status().json()
        return found

    def tokeninfo(self, token: str) -> Request:
        """Prepare to verify the token."""
        body = json.dumps({"token": token, "resource_id": self.data.resource_id})
        address = f"{self.base}/dirws/v1/authentication/oauth/tokeninfo"
        return Request("POST", address, body, (("Content-Type", "application/json"), ("Accept", "application/json")))

    def sign_in(self) -> Request:
        """Prepare to sign in."""
        return Request("POST", self.login, self.sign_in_form(), (FORM,))

    def search(self, token: str, words: Sequence[str]) -> Request:
        """Prepare an AQL search for keywords."""
        return self.aql(token, f"<fulltext>{' '.join(words)}</fulltext>")

    def aql(self, token: str, expression: str, more: str = "", needed: str = "all") -> Request:
        """Prepare an AQL search: a type, the expression, a range of sizes; the total and 20 entries with excerpts.

        ``more`` are further elements of the document, ``needed`` says how many of the words a hit needs.
        """
        document = (
            '<search xmlns="urn:muniment:vocab"><types><type>document</type></types>'
            f'<expression-set operator="AND"><expressions>{expression}'
            f'<property-range name="r_full_content_size" operator="BETWEEN"><from>{SIZES[0]}</from><to>{SIZES[1]}</to>'
            f"</property-range></expressions></expression-set>{more}</search>"
        )
        headers = (("Content-Type", "application/xml"), ("Accept", "application/xml"), bearer(token))
        shown = f"include-total=true&items-per-page=20&words={needed}"
        return Request("POST", f"{self.repository}/search?{shown}", document, headers)

    def keywords(self, token: str, words: str) -> Request:
        """Prepare a search by keywords."""
        query = httpx.QueryParams({"q": words, "include-total": "true", "items-per-page": "20"})
        return Request("GET", f"{self.repository}/search?{query}", "", (bearer(token), ("Accept", "application/xml")))

    def suggestion(self, token: str, typed: str) -> Request:
        """Prepare the question how what is typed may go on."""
        address = f"{self.repository}/search/suggestions?{httpx.QueryParams({'q': typed})}"
        return Request("GET", address, "", (bearer(token), ("Accept", "application/json")))

    def ask(self, request: Request) -> httpx.Response:
        """Send a prepared request once. Raises HTTPStatusError for an answer that is no success."""
        answer = httpx.request(
            request.method,
            request.address,
            content=request.body,
            headers=dict(request.headers),
            verify=self.ca_file,
            timeout=60,
        )
        return answer.raise_for_status()


FORM = ("Content-Type", "application/x-www-form-urlencoded")


@contextmanager
def serving(data: Data, *overrides: str, core: int | None = None, log: str = "serve.log") -> Iterator[Site]:
    """Serve a data folder with the default settings but for the overrides (``key=value``)."""
    port = free_port()
    settings = _settings(f"web.port={port}", *overrides)
    base = f"https://127.0.0.1:{port}"
    folder = data.folder
    with started(
        command(data, *settings, "serve"), folder.parent / log, ready=f"{base}/health/live", core=core
    ) as program:
        yield Site(data, program, base, str(folder / "tls" / "ca.pem"))


def command(data: Data, *arguments: str) -> list[str]:
    """Write a command line over the data folder."""
    python = [sys.executable] if data.checkout is None else data.checkout.command()
    return [*python, "-m", "muniment", "--data", str(data.folder), *_settings(*data.overrides), *arguments]


def _settings(*overrides: str) -> list[str]:
    return [word for override in overrides for word in ("--set", override)]


def _administrator() -> Principals:
    return Principals("admin@directory.admin", frozenset(), administrator=True)
