"""Small worlds in one call: a data folder with people, a client, a resource, a repository, and sites that serve it."""

import asyncio
import itertools
import secrets
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar
from xml.sax.saxutils import escape

import httpx
import lxml.etree
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment import app
from muniment.database import connections
from muniment.directory.administration import decisions
from muniment.directory.entries import credentials, editing, entries, memberships, resources, system
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.sign_in import passwords
from muniment.ground import certificates, clock
from muniment.installation import backends, settings
from muniment.installation.layout import Installation
from muniment.repository.options import RepositoryNames
from muniment.repository.search.agent import agent
from muniment.repository.search.index.contract import IndexWriter
from muniment.repository.store import repositories
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.extraction import queue
from muniment.repository.store.permissions import acls
from tests.clock import Clock
from tests.servers import free_port
from tests.waiting import until

T = TypeVar("T")

NAMES = ("neutral", "field")
"""The two sets of names under which one data folder is served."""

ATOM = "{http://www.w3.org/2005/Atom}"

_FIELD = Path(__file__).parent.parent / "examples" / "names-of-the-field.toml"
_QUICK = (
    "directory.hash_memory_kib=8192",
    "directory.hash_passes=1",
    "directory.hash_slots=2",
    "log_level=warning",
    "repository.batch_seconds=60",
    "repository.batch_hold_seconds=60",
    "web.base_address=https://muniment.test",
    "repository.basic_client=demo-client",
    "repository.search_page_client=demo-client",
    "repository.default_partition=demo",
)


class Loop:
    """An event loop in a thread of its own, in which a site answers while a test waits."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="site", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and give what it gave."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def in_one_piece(application: ASGIApp) -> ASGIApp:
    """Give the application each request's body in one piece, as a server does with nearly every body."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        messages = [await receive()]
        while messages[-1].get("more_body", False):
            messages.append(await receive())
        whole: Message = {"type": "http.request", "body": b"".join(message.get("body", b"") for message in messages)}

        async def receive_whole() -> Message:
            nonlocal whole
            message, whole = whole, {}
            return message or await receive()

        await application(scope, receive_whole, send)

    return answer


class InProcess(httpx.BaseTransport):
    """Hands requests to an ASGI application without a socket, from any thread."""

    def __init__(self, application: Any, loop: Loop) -> None:
        self._loop = loop
        self._inner = httpx.ASGITransport(in_one_piece(application))
        self._events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._started = threading.Event()
        self._lifespan = asyncio.run_coroutine_threadsafe(self._live(application), loop._loop)
        loop.run(self._events.put({"type": "lifespan.startup"}))
        if not self._started.wait(60):
            raise TimeoutError("The application did not start.")

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        return self._loop.run(self._answer(request))

    def close(self) -> None:
        """Let the application shut down."""
        self._loop.run(self._events.put({"type": "lifespan.shutdown"}))
        self._lifespan.result(60)

    async def _live(self, application: Any) -> None:
        async def send(message: Mapping[str, str]) -> None:
            if message["type"].endswith("failed"):
                raise RuntimeError(message.get("message", "The application did not start."))
            self._started.set()

        await application({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, self._events.get, send)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        copy = httpx.Request(request.method, request.url, headers=request.headers, content=body or None)
        response = await self._inner.handle_async_request(copy)
        content = b"".join([piece async for piece in response.aiter_raw()])
        return httpx.Response(response.status_code, headers=response.headers, content=content)


class Person:
    """A user of the world: his id, and his password as only tests know it."""

    def __init__(self, user_id: str, password: str) -> None:
        self.id = user_id
        self.password = password

    @property
    def name(self) -> str:
        """The short name."""
        return self.id.rpartition("@")[0]


system.READ_AGAIN_SECONDS = 24 * 60 * 60
"""Tests count the statements of a request: no other is sent meanwhile."""


class World:
    """One data folder, made once: partition `demo`, a group, three people, a client, a resource, a repository.

    ``reader`` and ``writer`` are in the access role (the writer through a group in a group), ``outsider`` is not.
    """

    partition = "demo"
    client_id = "demo-client"
    confidential_id = "demo-server"
    resource_name = "Demo Files"
    scope = "resource:Demo+Files"
    repository = "demo"

    def __init__(self, folder: Path, directory_url: str, repository_url: str, clock: Clock | None = None) -> None:
        self.folder = folder
        self._databases = (f"directory_database={directory_url}", f"repository_database={repository_url}")
        self.clock = clock or Clock()
        self.installation = self.installation_with("neutral")
        self.directory_db = connections.Database(self.installation.database_url("directory"))
        self.repository_db = connections.Database(self.installation.database_url("repository"))
        self.confidential_secret, self._password = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        self._writers: dict[int, IndexWriter] = {}
        self.tokens: dict[tuple[str, str], str] = {}
        self.secrets: dict[str, str] = {}  # of activated resources, by their identifiers
        self.numbers = itertools.count(1)
        self._make()

    def installation_with(self, names: str, *overrides: str) -> Installation:
        """Give the data folder's settings with one of the two sets of names."""
        file = _FIELD if names == "field" else None
        chosen = settings.read(file, {}, (*_QUICK, *self._databases, *overrides), file_must_exist=bool(file))
        return Installation(self.folder, chosen)

    def person(self, *groups: str, member: bool = True, name: str = "") -> Person:
        """Make a user of partition demo; with ``member``, in the access role by themselves."""
        name, password = name or f"person-{next(self.numbers)}", secrets.token_urlsafe(12)
        with self.directory_db.begin() as cx:
            partition = entries.find_partition(cx, self.names, self.partition)
            made = editing.add_user(cx, partition, name, self.clock(), password_hash=self.hash_of(password))
            for group in groups:
                memberships.add_member(cx, entries.find_group(cx, self.names, f"{group}@{self.partition}"), made)
            if member:
                resources.add_to_role(cx, resources.by_id(cx, self.resource_id), made)
        return Person(f"{name}@{self.partition}", password)

    def group(self, name: str, *members: Person) -> None:
        """Make a group of partition demo."""
        with self.directory_db.begin() as cx:
            made = editing.add_group(cx, entries.find_partition(cx, self.names, self.partition), name, self.clock())
            for member in members:
                memberships.add_member(cx, made, entries.find_user(cx, self.names, member.id))

    def remove_group(self, name: str) -> None:
        """Delete a group of partition demo."""
        with self.directory_db.begin() as cx:
            editing.delete(cx, entries.find_group(cx, self.names, f"{name}@{self.partition}"), self.clock())

    def resource(self, *, activated: bool = False, word: str = "Resource") -> resources.Resource:
        """Register a protected API that admits nobody yet."""
        with self.directory_db.begin() as cx:
            made = resources.add(cx, self.names, f"{word} {next(self.numbers)}", self.clock())
            if activated:
                self.secrets[made.id] = resources.activate(cx, made.id, self.clock())
        return made

    def admit(self, person: Person, resource_id: str) -> None:
        """Put a user into a resource's access role."""
        with self.directory_db.begin() as cx:
            resources.add_to_role(cx, resources.by_id(cx, resource_id), self.entry(person))

    def entry(self, person: Person) -> Entry:
        """Look a person up."""
        with self.directory_db.read() as cx:
            return entries.find_user(cx, self.names, person.id)

    def system_attribute(self, name: str, value: str | None) -> None:
        """Set a system attribute, or remove it."""
        with self.directory_db.begin() as cx:
            if value is None:
                system.remove(cx, name)
            else:
                system.put(cx, name, value, self.clock())

    def word(self) -> str:
        """Make up a word that no document holds yet."""
        return "qu" + "".join(secrets.choice("bcdfgklmnprtvz") for _ in range(10))

    def catch_up(self, name: str = "") -> None:
        """Do what extractor and agent have to do, until the index of a repository is at the end of the change log.

        Without a name, it is that of the world's own repository.
        """
        while self._read_a_text():
            pass
        with self.repository_db.read() as cx:
            repository = repositories.find(cx, name or self.repository)
        if repository.id not in self._writers:
            index = backends.engine(self.installation).index(repository)
            generation = index.begin()
            self._writers[repository.id] = index.writer(generation)
            index.switch(generation)
        writer, before = self._writers[repository.id], None
        while before != writer.position:
            before = writer.position
            agent.catch_up(self.repository_db, repository, writer, self.clock())

    def _read_a_text(self) -> bool:
        with self.repository_db.begin() as cx:
            job = queue.take(cx, self.clock())
            if job is None:
                return False
            with FileStore(self.installation.content).local(job.content_key) as file:
                queue.finish(cx, job, file.read().decode("utf-8", "replace"), self.clock())
        return True

    def secret_of_client(self, client_id: str) -> str | None:
        """Tell what is kept of a client's secret."""
        with self.directory_db.read() as cx:
            found = credentials.find_of_client(cx, client_id)
        return found.secret_hash if found else None

    def _make(self) -> None:
        now = self.clock()
        with self.directory_db.begin() as cx:
            decisions.initialise(cx, now)
            partition = entries.administration(cx)
            admin = editing.add_user(cx, partition, "admin", now, password_hash=self.hash_of(self._password))
            memberships.add_member(cx, entries.find_group(cx, self.names, self._administrators), admin)
            partition = editing.add_partition(cx, self.names, self.partition, now)
            everyone = editing.add_group(cx, partition, "everyone", now)
            writers = editing.add_group(cx, partition, "writers", now)
            memberships.add_member(cx, everyone, writers)
            editing.add_client(cx, self.client_id, now)
            editing.add_client(cx, self.confidential_id, now, password_hash=self.hash_of(self.confidential_secret))
            made = resources.add(cx, self.names, self.resource_name, now)
            self.secrets[made.id] = resources.activate(cx, made.id, now)
            resources.add_to_role(cx, made, everyone)
            self.resource_id = made.id
        self.idle_resource_id = self.resource(word="Idle").id
        self.other_resource_id = self.resource(activated=True, word="Other").id
        self.reader = self.person()
        self.writer = self.person("writers", member=False)
        self.outsider = self.person(member=False)
        with self.repository_db.begin() as cx:
            acls.initialise(cx, repositories.add(cx, self.repository, self.resource_id, "For tests.", now).id, now)
        self.catch_up()

    def hash_of(self, password: str) -> str:
        """Hash a password as quickly as the settings allow."""
        options = self.installation.settings.directory
        return passwords.hash_password(password, memory_kib=options.hash_memory_kib, passes=options.hash_passes)

    @property
    def names(self) -> DirectoryNames:
        """The neutral names."""
        return self.installation.settings.directory.names

    @property
    def _administrators(self) -> str:
        return f"administrators@{self.names.administration_partition}"

    def admin(self, names: DirectoryNames) -> Person:
        """The administrator, as a site with these names calls him."""
        return Person(f"admin@{names.administration_partition}", self._password)

    def close(self) -> None:
        """Give everything back."""
        for writer in self._writers.values():
            writer.close()
        self.directory_db.close()
        self.repository_db.close()


class Site:
    """One way to reach a world: an application with one set of names, and the words to talk to it."""

    base = "https://muniment.test"

    def __init__(self, world: World, names: str, loop: Loop, *overrides: str) -> None:
        self.world = world
        self.installation = world.installation_with(names, *overrides)
        self.kind = names
        self.directory_names: DirectoryNames = self.installation.settings.directory.names
        self.names: RepositoryNames = self.installation.settings.repository.names
        self.application = app.build(self.installation.settings, world.folder, clock=world.clock)
        self.http = httpx.Client(
            transport=InProcess(self.application, loop), base_url=self.base, follow_redirects=False, timeout=60
        )
        self.directory = f"/{self.directory_names.prefix}"
        self.login = f"{self.directory}/login"
        self.oauth = f"{self.directory}/v1/authentication/oauth"
        self.repository = f"/{self.names.prefix}/repositories/{world.repository}"
        self.search_address = f"{self.repository}/search"
        self.vocab = f"{{{self.names.vocab_namespace}}}"

    def close(self) -> None:
        """Shut the application down."""
        self.http.close()

    def type(self, name: str) -> str:
        """Spell a built-in type as this site does."""
        return self.names.type_prefix + name

    # The directory

    def ask_token(self, person: Person, **changes: str | None) -> httpx.Response:
        """Ask for a token by the password grant; ``changes`` replace parameters, None leaves one out."""
        asked: dict[str, str | None] = {
            "grant_type": "password",
            "client_id": self.world.client_id,
            "username": person.id,
            "password": person.password,
            "scope": self.world.scope,
        }
        form = {name: value for name, value in (asked | changes).items() if value is not None}
        return self.http.post(self.login, data=form)

    def issue(self, person: Person) -> dict[str, Any]:
        """Give a token reply for the person."""
        answer = self.ask_token(person)
        assert answer.status_code == 200, answer.text
        reply: dict[str, Any] = answer.json()
        return reply

    def refresh(self, token: str, /, **changes: str | None) -> httpx.Response:
        """Ask for a new access token."""
        asked: dict[str, str | None] = {
            "grant_type": "refresh_token",
            "client_id": self.world.client_id,
            "refresh_token": token,
        }
        form = {name: value for name, value in (asked | changes).items() if value is not None}
        return self.http.post(self.login, data=form)

    def tokeninfo(self, token: Any, resource_id: Any = None, address: str | None = None) -> httpx.Response:
        """Verify a token."""
        body = {"token": token, "resource_id": self.world.resource_id if resource_id is None else resource_id}
        return self.http.post(address or f"{self.oauth}/tokeninfo", json=body, headers={"Accept": "application/json"})

    def revoke(self, token: str) -> httpx.Response:
        """End a token's grant."""
        return self.http.delete(f"{self.oauth}/{token}")

    def activate(self, resource_id: str, token: str | None) -> httpx.Response:
        """Activate a resource as the bearer of the token."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.http.post(f"{self.directory}/rest/resources/{resource_id}/activate", headers=headers)

    def administrator(self) -> str:
        """Give an access token of the administrator for the administration resource."""
        admin = self.world.admin(self.directory_names)
        key = admin.id, self.administration_scope
        if key not in self.world.tokens:
            self.world.tokens[key] = self.ask_token(admin, scope=self.administration_scope).json()["access_token"]
        return self.world.tokens[key]

    @property
    def administration_scope(self) -> str:
        """The scope of the administration resource."""
        return "resource:" + self.directory_names.administration_resource.replace(" ", "+")

    # The repository

    def bearer(self, person: Person | None = None) -> dict[str, str]:
        """Give the Authorization header of the person (the writer, if none is named)."""
        who = person or self.world.writer
        if (who.id, self.world.scope) not in self.world.tokens:
            self.world.tokens[who.id, self.world.scope] = self.issue(who)["access_token"]
        return {"Authorization": f"Bearer {self.world.tokens[who.id, self.world.scope]}"}

    def forget(self, person: Person) -> None:
        """Forget the token of whoever bore the person's name before."""
        self.world.tokens.pop((person.id, self.world.scope), None)

    def create(
        self,
        name: str,
        content: bytes | None = None,
        *,
        person: Person | None = None,
        **more: Any,
    ) -> str:
        """Make an unfiled object, by JSON, with content in a second request; give its id."""
        properties = {"r_object_type": self.type("document"), "object_name": name, **more}
        made = self.http.post(
            f"{self.repository}/objects", json={"properties": properties}, headers=self.bearer(person)
        )
        assert made.status_code == 201, made.text
        object_id: str = made.json()["properties"]["r_object_id"]
        if content is not None:
            kept = self.http.post(
                f"{self.repository}/objects/{object_id}/contents",
                content=content,
                headers=self.bearer(person) | {"Content-Type": "text/plain"},
            )
            assert kept.status_code in {200, 201}, kept.text
        return object_id

    def cabinet(self, name: str) -> str:
        """Make a cabinet; give its id."""
        made = self.http.post(
            f"{self.repository}/cabinets", json={"properties": {"object_name": name}}, headers=self.bearer()
        )
        assert made.status_code == 201, made.text
        cabinet_id: str = made.json()["properties"]["r_object_id"]
        return cabinet_id

    def share(self, object_id: str, acl: str = "public", person: Person | None = None) -> None:
        """Put an object under another ACL."""
        answer = self.http.put(
            f"{self.repository}/objects/{object_id}/permission-set",
            json={"acl-name": acl},
            headers=self.bearer(person),
        )
        assert answer.status_code == 200, answer.text

    def aql(self, *expressions: str, types: tuple[str, ...] = ("document",), operator: str = "AND") -> str:
        """Write a search document (given 2.8) with these expressions."""
        listed = "".join(f"<type>{self.type(name)}</type>" for name in types)
        return (
            f'<search xmlns="{self.names.vocab_namespace}">'
            f"<types>{listed}</types>"
            f'<expression-set operator="{operator}"><expressions>{"".join(expressions)}</expressions></expression-set>'
            "</search>"
        )

    def post_search(
        self,
        document: str | bytes,
        parameters: Mapping[str, str] = {},
        *,
        person: Person | None = None,
        headers: Mapping[str, str] = {},
    ) -> httpx.Response:
        """Execute a search document."""
        read_and_written = {"Content-Type": "application/xml", "Accept": "application/xml"}
        return self.http.post(
            self.search_address,
            params=parameters,
            content=document.encode() if isinstance(document, str) else document,
            headers=read_and_written | self.bearer(person) | dict(headers),
        )

    def search(self, *expressions: str, person: Person | None = None, **parameters: str) -> "Feed":
        """Execute a search, with the total, and read the feed; ``items_per_page`` is ``items-per-page`` on the wire."""
        spelled = {"include-total": "true"} | {name.replace("_", "-"): value for name, value in parameters.items()}
        answer = self.post_search(self.aql(*expressions), spelled, person=person)
        assert answer.status_code == 200, answer.text
        return Feed(answer, self)

    def keywords(self, q: str, *, person: Person | None = None, **parameters: str) -> "Feed":
        """Search by the simple keyword language and read the feed. Unless it says so, the search is not relaxed."""
        spelled = {"q": q, "words": "all"} | {name.replace("_", "-"): value for name, value in parameters.items()}
        return self.feed(self.search_address, spelled, person=person)

    def feed(
        self, address: str, parameters: Mapping[str, str] | None = None, *, person: Person | None = None
    ) -> "Feed":
        """Get a feed in Atom."""
        headers = self.bearer(person) | {"Accept": "application/atom+xml"}
        answer = self.http.get(address, params=parameters, headers=headers)
        assert answer.status_code == 200, answer.text
        return Feed(answer, self)


class Feed:
    """A search feed as read from the wire."""

    def __init__(self, answer: httpx.Response, site: Site) -> None:
        self.answer = answer
        self.root = lxml.etree.fromstring(answer.content)
        self.entries = self.root.findall(f"{ATOM}entry")
        total = self.root.findtext(f"{site.vocab}total")
        self.total = None if total is None else int(total)
        self.ids = [entry.findtext(f"{ATOM}id") for entry in self.entries]

    def link(self, rel: str) -> str | None:
        """Give the feed's link of that relation."""
        found = [link.get("href") for link in self.root.findall(f"{ATOM}link") if link.get("rel") == rel]
        return found[0] if found else None


def fulltext(words: str) -> str:
    """Write a full-text expression."""
    return f"<fulltext>{escape(words)}</fulltext>"


def begins(name: str, value: str) -> str:
    """Write a property expression."""
    return f'<property name="{name}" operator="BEGINS_WITH">{escape(value)}</property>'


def one_of(name: str, *values: str) -> str:
    """Write a property-list expression."""
    listed = "".join(f"<value>{escape(value)}</value>" for value in values)
    return f'<property-list name="{name}" operator="IN"><values>{listed}</values></property-list>'


def between(name: str, low: str, high: str) -> str:
    """Write a property-range expression."""
    return f'<property-range name="{name}" operator="BETWEEN"><from>{low}</from><to>{high}</to></property-range>'


class Served:
    """A site on a real socket, with TLS by the certificate that a first start makes."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.port = free_port()
        self.base = f"https://127.0.0.1:{self.port}"
        world = site.world
        self.ca_file, certificate, key = certificates.ensure(world.installation.tls, ["localhost"], clock.now())
        chosen = world.installation_with(site.kind, f"web.base_address={self.base}").settings
        self._server = uvicorn.Server(
            uvicorn.Config(
                app.build(chosen, world.folder, clock=world.clock),
                host="127.0.0.1",
                port=self.port,
                ssl_certfile=str(certificate),
                ssl_keyfile=str(key),
                log_config=None,
                lifespan="on",
                timeout_graceful_shutdown=2,
            )
        )
        self._thread = threading.Thread(target=self._server.run, name="served", daemon=True)
        self._thread.start()
        until(lambda: self._server.started or not self._thread.is_alive())
        assert self._server.started, "The server did not start."

    def close(self) -> None:
        """Stop the server."""
        self._server.should_exit = True
        self._thread.join(30)
