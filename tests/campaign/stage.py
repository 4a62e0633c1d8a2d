"""A server in a process of its own with something behind every address, and the judge of what it answers.

A generated request names what is on the stage by a word (``Prop``); just before it is sent the word becomes the real
id, token or password. What a request used up is put there again.
"""

import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import httpx

from muniment.directory.entries import entries, memberships, resources
from tests import passes
from tests.e2e.processes import ServedHouse, Server
from tests.scenes import World
from tests.servers import free_port

PATIENCE = 1.0
"""Seconds of processor time within which everything is answered; what takes longer by the clock is asked again."""


class Prop:
    """The words for what is on the stage. They pass through an address, JSON, a form and XML unchanged."""

    REPOSITORY = "PROP-repository"
    DOCUMENT = "PROP-document"
    FOLDER = "PROP-folder"
    CABINET = "PROP-cabinet"
    ACL = "PROP-acl"
    LINK = "PROP-link"
    SEARCH = "PROP-search"
    TEMPLATE = "PROP-template"
    LINKED = "PROP-linked"
    DRAFT = "PROP-draft"
    VERSION = "PROP-version"
    DELETED = "PROP-deleted"
    RELATION = "PROP-relation"
    RELATION_TYPE = "PROP-relation-type"
    COMMENT = "PROP-comment"
    TYPE = "PROP-type"
    NEWCOMER = "PROP-newcomer"
    GROUP = "PROP-group"
    INNER_GROUP = "PROP-inner-group"
    POSITION = "PROP-position"
    TOKEN = "PROP-token-a"
    DEAD_TOKEN = "PROP-token-b"
    REFRESH_TOKEN = "PROP-refresh-token"
    ROLE = "PROP-role"
    INNER_ROLE = "PROP-inner-role"
    UNIT = "PROP-unit"
    PARTITION = "PROP-partition"
    HOME = "PROP-home"
    """The partition of the users on the stage; no request names it as a thing to change."""

    ADDED_RESOURCE = "PROP-resource-c"
    ADDED_ACCESS = "PROP-access"
    ADDED_CLIENT = "PROP-client-b"
    ATTRIBUTE = "PROP-attribute"
    TICKET = "PROP-ticket"
    TARGET_TICKET = "PROP-ticket-b"
    ADMIN_TICKET = "PROP-ticket-c"
    RESOURCE = "PROP-resource-a"
    IDLE_RESOURCE = "PROP-resource-b"
    CLIENT = "PROP-client"
    SCOPE = "PROP-scope"
    USER = "PROP-user"
    VICTIM = "PROP-victim"
    PASSWORD = "PROP-password"
    CSRF = "PROP-csrf"
    TICKET_CSRF = "PROP-ticket-csrf"
    MARK = "PROP-mark"
    NEW = "PROP-new"
    """A name that nothing has yet, another one each time."""


_HELD = {
    Prop.CABINET: {Prop.FOLDER, Prop.LINKED, Prop.RELATION},
    Prop.FOLDER: {Prop.LINKED, Prop.RELATION},
    Prop.DOCUMENT: {Prop.RELATION, Prop.COMMENT},
    Prop.GROUP: {Prop.INNER_GROUP},
    Prop.NEWCOMER: {Prop.GROUP},
    Prop.ADDED_RESOURCE: {Prop.ADDED_ACCESS, Prop.TARGET_TICKET},
    Prop.ADDED_ACCESS: {Prop.ADDED_RESOURCE, Prop.TARGET_TICKET},
}
"""What is no longer there, or no longer as it was made, when something is gone; the first holders hold the others."""

SECRET = "Zm9yIHRoZSBkb2N1bWVudA=="
"""The secret of the resource that requests may change."""

_PROP = re.compile(r"PROP-[a-z]+(?:-[a-z]+)*")
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


class Stage:
    """A world of its own, served over HTTPS and plain HTTP by one worker, agent and extractor."""

    def __init__(self, root: Path, directory_url: str, repository_url: str, *settings: str) -> None:
        house = ServedHouse(root, directory_url, repository_url, self._furnish)
        self.world, self.plain_port = house.world, free_port()
        own = (
            f"web.http_port={self.plain_port}",
            f"repository.search_page_client={self.world.client_id}",
            "repository.wastebasket_days=30",
        )
        settings = (*own, *settings)
        self.server = Server(house.data, free_port(), *(word for setting in settings for word in ("--set", setting)))
        self._values: dict[str, str] = {}
        self._callers: dict[str, str] = {}
        self.cookies: dict[str, str] = {}

    def _furnish(self, world: World) -> None:
        world.system_attribute("directory.auth.EnforceSSL", "false")
        self.user, self.victim, self.steward = world.person(), world.person(), world.person()
        with world.directory_db.begin() as cx:
            memberships.add_member(cx, entries.administrators(cx), world.entry(self.steward))
            # So that a user or group whom a request makes is let in at once.
            partition = entries.find_partition(cx, world.names, world.partition)
            resources.add_to_role(cx, resources.by_id(cx, world.resource_id), partition)

    def __enter__(self) -> Self:
        self.server.wait_ready(180)
        self.http = self.server.client()
        # The server may end an idle connection just when it is used again.
        self.http.headers["Connection"] = "close"
        self.processes = set(self.server.children())
        self.memory = self.resident()
        return self

    def __exit__(self, *_error: object) -> None:
        self.http.close()
        self.server.kill()

    @property
    def ca_file(self) -> str:
        """The certificate to trust."""
        return str(self.server.data / "tls" / "ca.pem")

    def lost(self) -> set[int]:
        """Name the server's processes that are no more."""
        return self.processes - set(self.server.children())

    def bugs(self) -> list[str]:
        """Give the lines of the log that speak of a bug."""
        return [line for line in self.server.log_text.splitlines() if '"event":"bug"' in line or "Traceback" in line]

    def processor_seconds(self) -> float:
        """Say how many seconds of processor time its processes have taken."""
        return sum(passes.own_time(process) for process in self.processes)

    def resident(self) -> int:
        """Add up the resident memory of the server's processes, in bytes."""
        found = 0
        for process in (self.server.process.pid, *self.server.children()):
            status = Path(f"/proc/{process}/status").read_text()
            found += 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))
        return found

    def bearer(self, who: str) -> str:
        """Give an access token of writer, reader, steward (who administers the repository) or administrator."""
        if who not in self._callers:
            people = {"writer": self.world.writer, "reader": self.world.reader, "steward": self.steward}
            person = people.get(who)
            scope = self.world.scope
            if person is None:
                person, scope = self.world.admin(self.world.names), f"resource:{self._administration}"
            self._callers[who] = self._issued(person.id, person.password, scope)["access_token"]
        return self._callers[who]

    def filled(self, text: str) -> str:
        """Put what is on the stage in place of the words for it."""
        return _PROP.sub(lambda found: self._value(found[0]), text)

    def used(self, method: str, url: str) -> None:
        """Notice that a request succeeded: what it used up is put there again when it is next named."""
        takes = url.partition("?")[0].endswith(("/restore", "/versions"))
        renames = re.search(r"/(users|groups)/[^/?]+(\?|$)", url)
        directory = method in ("PUT", "PATCH", "POST") and "/dirws/" in url
        if method == "DELETE" or directory or (method == "POST" and (takes or renames)):
            gone = {word for word, value in self._values.items() if value in url}
            if gone & {Prop.TOKEN, Prop.REFRESH_TOKEN}:
                gone |= {Prop.TOKEN, Prop.REFRESH_TOKEN}
            for holder, held in _HELD.items():
                if holder in gone:
                    gone |= held
            for word in gone:
                self._values.pop(word, None)

    def renew(self) -> None:
        """Put everything there anew, whatever has become of it."""
        self._values.clear()

    def _value(self, word: str) -> str:
        if word == Prop.NEW:
            return f"new_{time.time_ns()}"
        if word not in self._values:
            self._make(word)
        return self._values.get(word, word)

    def _make(self, word: str) -> None:
        fixed = {
            Prop.REPOSITORY: self.world.repository,
            Prop.RESOURCE: self.world.resource_id,
            Prop.CLIENT: self.world.client_id,
            Prop.HOME: self.world.partition,
            Prop.SCOPE: self.world.scope,
            Prop.USER: self.user.id,
            Prop.VICTIM: self.victim.id,
            Prop.PASSWORD: self.user.password,
        }
        makers: Mapping[str, Callable[[], None]] = {
            Prop.TOKEN: self._tokens,
            Prop.REFRESH_TOKEN: self._tokens,
            Prop.DEAD_TOKEN: self._dead_token,
            Prop.CSRF: self._sign_in_page,
            Prop.TICKET_CSRF: self._console,
            Prop.MARK: self._search_page,
            Prop.DOCUMENT: lambda: self._object(Prop.DOCUMENT, "objects", "document"),
            Prop.FOLDER: lambda: self._object(Prop.FOLDER, "folders/PROP-cabinet/folders", "folder"),
            Prop.CABINET: lambda: self._object(Prop.CABINET, "cabinets", "cabinet"),
            Prop.POSITION: lambda: self._object(Prop.DOCUMENT, "objects", "document"),
            Prop.LINKED: self._linked,
            Prop.DRAFT: self._draft,
            Prop.VERSION: self._version,
            Prop.DELETED: self._deleted,
            Prop.RELATION: self._relation,
            Prop.RELATION_TYPE: self._relation_type,
            Prop.COMMENT: lambda: self._made(
                Prop.COMMENT, f"objects/{Prop.DOCUMENT}/comments", {"content": "Who has the keys?"}
            ),
            Prop.TYPE: self._type,
            Prop.NEWCOMER: lambda: self._person(Prop.NEWCOMER, "user"),
            Prop.GROUP: lambda: self._person(Prop.GROUP, "group"),
            Prop.INNER_GROUP: self._inner_group,
            Prop.ROLE: lambda: self._added(Prop.ROLE, "roles", "id", userPartitionID=self.world.partition),
            Prop.INNER_ROLE: lambda: self._added(Prop.INNER_ROLE, "roles", "id", userPartitionID=self.world.partition),
            Prop.UNIT: lambda: self._added(Prop.UNIT, "orgunits", "location", userPartitionID=self.world.partition),
            Prop.PARTITION: lambda: self._added(Prop.PARTITION, "partitions", "name"),
            Prop.IDLE_RESOURCE: lambda: self._added(
                Prop.IDLE_RESOURCE, "resources", "resourceName", name="resourceName"
            ),
            Prop.ADDED_RESOURCE: self._resource,
            Prop.ADDED_ACCESS: self._resource,
            Prop.ADDED_CLIENT: lambda: self._added(Prop.ADDED_CLIENT, "oauthclients", "id", name="id"),
            Prop.ATTRIBUTE: lambda: self._added(Prop.ATTRIBUTE, "systemconfig/system_attributes", "name", value="1"),
            Prop.TICKET: lambda: self._ticket(Prop.TICKET, self.user.id, self.user.password),
            Prop.TARGET_TICKET: self._target_ticket,
            Prop.ADMIN_TICKET: self._admin_ticket,
            Prop.ACL: self._acl,
            Prop.LINK: self._link,
            Prop.SEARCH: lambda: self._saved(Prop.SEARCH, "saved-searches", "query-document"),
            Prop.TEMPLATE: lambda: self._saved(Prop.TEMPLATE, "search-templates", "query-document-template"),
        }
        if word in fixed:
            self._values[word] = fixed[word]
        elif word in makers:
            try:
                makers[word]()
            except AssertionError:  # A request has changed what it is made of, or who may use that.
                self.renew()
                makers[word]()

    @property
    def _administration(self) -> str:
        return self.world.names.administration_resource.replace(" ", "+")

    @property
    def _repository(self) -> str:
        return f"/rest/repositories/{self.world.repository}"

    @property
    def _writer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.bearer('writer')}"}

    @property
    def _steward(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.bearer('steward')}"}

    def _issued(self, username: str, password: str, scope: str) -> dict[str, Any]:
        form = {"grant_type": "password", "client_id": self.world.client_id, "scope": scope}
        answer = self.http.post("/dirws/login", data={**form, "username": username, "password": password})
        reply: dict[str, Any] = _ok(answer).json()
        return reply

    def _tokens(self) -> None:
        issued = self._issued(self.user.id, self.user.password, self.world.scope)
        self._values |= {Prop.TOKEN: issued["access_token"], Prop.REFRESH_TOKEN: issued["refresh_token"]}

    def _dead_token(self) -> None:
        token = self._issued(self.user.id, self.user.password, self.world.scope)["access_token"]
        _ok(self.http.delete(f"/dirws/v1/authentication/oauth/{token}"))
        self._values[Prop.DEAD_TOKEN] = token

    def _sign_in_page(self) -> None:
        self.http.cookies.clear()
        page = _ok(self.http.get("/dirws/login"))
        self._values[Prop.CSRF] = _marked(page)
        self.cookies["login"] = f"__Host-muniment_ticket_form={page.cookies['__Host-muniment_ticket_form']}"

    def _console(self) -> None:
        self._sign_in_page()
        admin = self.world.admin(self.world.names)
        form = {"csrf": self._values[Prop.CSRF], "RFA": "", "username": admin.id, "password": admin.password}
        signed_in = self.http.post("/dirws/login", data=form)
        assert signed_in.status_code == 303, signed_in.text
        self.cookies["console"] = f"__Host-muniment_ticket={signed_in.cookies['__Host-muniment_ticket']}"
        self._values[Prop.TICKET_CSRF] = _marked(_ok(self.http.get("/dirws/console/system-attributes")))
        self.http.cookies.clear()

    def _search_page(self) -> None:
        self.http.cookies.clear()
        mark = _marked(_ok(self.http.get("/search/sign-in")))
        form = {"csrf": mark, "username": self.user.id, "password": self.user.password}
        signed_in = self.http.post("/search/sign-in", data=form)
        assert signed_in.status_code == 303, signed_in.text
        self.cookies["search"] = f"__Host-muniment-search={signed_in.cookies['__Host-muniment-search']}"
        self._values[Prop.MARK] = _marked(_ok(self.http.get("/search")))
        self.http.cookies.clear()

    def _object(self, word: str, where: str, kind: str) -> None:
        properties = {"object_name": f"{kind} of the campaign", "r_object_type": kind, "title": "pump station"}
        properties["acl_name"] = self._open_acl
        body = {"properties": properties}
        made = self.http.post(f"{self._repository}/{self.filled(where)}", json=body, headers=self._writer)
        self._values[word] = _ok(made).json()["properties"]["r_object_id"]
        self._values[Prop.POSITION] = made.headers["Muniment-Position"]
        if kind == "document":
            address = f"{self._repository}/objects/{self._values[word]}"
            kept = {**self._writer, "Content-Type": "text/plain"}
            _ok(self.http.post(f"{address}/contents", content=b"pump station and valve", headers=kept))

    def _linked(self) -> None:
        """Make a document that is in the folder."""
        made = {"object_name": "linked", "r_object_type": "document"}
        self._made(Prop.LINKED, f"folders/{Prop.FOLDER}/documents", made)

    def _draft(self) -> None:
        self._made(Prop.DRAFT, "objects", {"object_name": "draft", "r_object_type": "document"})
        _ok(self.http.put(f"{self._repository}/objects/{self._values[Prop.DRAFT]}/lock", headers=self._writer))

    def _version(self) -> None:
        """Make a former version: the first one of a document that was checked in again."""
        self._draft()
        self._values[Prop.VERSION] = self._values.pop(Prop.DRAFT)
        self._made("", f"objects/{Prop.VERSION}/versions", {"title": "pump station"})

    def _deleted(self) -> None:
        self._made(Prop.DELETED, "objects", {"object_name": "deleted", "r_object_type": "document"})
        _ok(self.http.delete(f"{self._repository}/objects/{self._values[Prop.DELETED]}", headers=self._writer))

    def _relation(self) -> None:
        ends = {"relation_name": "peer", "parent_id": Prop.DOCUMENT, "child_id": Prop.FOLDER}
        self._made(Prop.RELATION, "relations", {name: self.filled(value) for name, value in ends.items()})

    def _relation_type(self) -> None:
        name = f"campaign_{time.time_ns()}"
        body = {"properties": {"relation_name": name, "description": "Of the campaign."}}
        _ok(self.http.post(f"{self._repository}/relation-types", json=body, headers=self._steward))
        self._values[Prop.RELATION_TYPE] = name

    def _type(self) -> None:
        name = f"campaign_{time.time_ns()}"
        sheet = {"name": "sheet", "type": "string", "length": 20, "values": ["A4", "A3"]}
        body = {"name": name, "parent": "document", "properties": [sheet]}
        _ok(self.http.post(f"{self._repository}/types", json=body, headers=self._steward))
        self._values[Prop.TYPE] = name

    def _person(self, word: str, kind: str) -> None:
        name = f"campaign-{time.time_ns()}@{self.world.partition}"
        body = {"properties": {f"{kind}_name": name, "description": "Of the campaign."}}
        _ok(self.http.post(f"{self._repository}/{kind}s", json=body, headers=self._steward))
        self._values[word] = name
        if kind == "group":
            member = f"{self.server.base}{self._repository}/users/{self.filled(Prop.NEWCOMER)}"
            address = f"{self._repository}/groups/{name}/users"
            _ok(self.http.post(address, json={"href": member}, headers=self._steward))

    def _inner_group(self) -> None:
        """Make a group that is a member of the group."""
        name = f"campaign-inner-{time.time_ns()}@{self.world.partition}"
        made = {"properties": {"group_name": name}}
        _ok(self.http.post(f"{self._repository}/groups", json=made, headers=self._steward))
        self._values[Prop.INNER_GROUP] = name
        address = f"{self._repository}/groups/{self.filled(Prop.GROUP)}/groups"
        member = f"{self.server.base}{self._repository}/groups/{name}"
        _ok(self.http.post(address, json={"href": member}, headers=self._steward))

    def _made(self, word: str, where: str, properties: Mapping[str, str]) -> None:
        """Make a thing as the writer, and keep its id under a word, if there is one for it."""
        address = f"{self._repository}/{self.filled(where)}"
        if "object_name" in properties:
            properties = {"acl_name": self._open_acl, **properties}
        made = _ok(self.http.post(address, json={"properties": properties}, headers=self._writer)).json()
        if word:
            self._values[word] = made["properties"]["r_object_id"]

    @cached_property
    def _open_acl(self) -> str:
        """The ACL of what is on the stage: no request names it, so that none changes what it lets everybody do."""
        name, rights = "of the stage", {"owner": "Delete", "world": "Read"}
        entries = [{"accessor": who, "basic-permission": how} for who, how in rights.items()]
        _ok(self.http.post(f"{self._repository}/acls", json={"name": name, "permitted": entries}, headers=self._writer))
        return name

    def _added(self, word: str, where: str, kept: str, name: str = "name", **fields: str) -> None:
        """Make a thing of the directory as its administrator, and keep what the answer calls it."""
        made = self._directed(where, {name: f"campaign{time.time_ns()}", **fields})
        self._values[word] = made.json()[kept]

    def _directed(self, where: str, body: Mapping[str, Any]) -> httpx.Response:
        bearer = {"Authorization": f"Bearer {self.bearer('administrator')}"}
        return _ok(self.http.post(f"/dirws/rest/{where}", json=body, headers=bearer))

    def _resource(self) -> None:
        """Make an activated resource that lets everybody of the partition in."""
        name = f"campaign{time.time_ns()}"
        made = self._directed("resources", {"resourceName": name, "secretKey": SECRET}).json()
        access = f"Access+to+{name}"
        self._values |= {Prop.ADDED_RESOURCE: made["resourceID"], Prop.ADDED_ACCESS: access}
        self._directed(f"accessroles/{access}/members", {"userPartitions": [{"name": self.world.partition}]})

    def _ticket(self, word: str, username: str, password: str) -> None:
        person = {"userName": username, "password": password}
        self._values[word] = self._directed("authentication/credentials", person).json()["ticket"]

    def _target_ticket(self) -> None:
        """Exchange a ticket for one that opens the added resource alone."""
        target = {"ticket": self.filled(Prop.TICKET), "targetResourceId": self.filled(Prop.ADDED_RESOURCE)}
        exchanged = self._directed("authentication/ticketforresource", target)
        self._values[Prop.TARGET_TICKET] = exchanged.json()["ticket"]

    def _admin_ticket(self) -> None:
        admin = self.world.admin(self.world.names)
        self._ticket(Prop.ADMIN_TICKET, admin.id, admin.password)

    def _acl(self) -> None:
        name = f"campaign {time.time_ns()}"
        body = {"name": name, "permitted": [{"accessor": "everyone@demo", "basic-permission": "Read"}]}
        _ok(self.http.post(f"{self._repository}/acls", json=body, headers=self._writer))
        self._values[Prop.ACL] = name

    def _saved(self, word: str, where: str, document: str) -> None:
        expression = {"expression-type": "fulltext", "value": "pump", "template": True}
        query = {"types": ["document"], "expression-set": {"expressions": [expression]}}
        body = {"properties": {"object_name": "of the campaign", "r_is_public": True}, document: query}
        made = self.http.post(f"{self._repository}/{where}", json=body, headers=self._writer)
        self._values[word] = _ok(made).json()["properties"]["r_object_id"]
        if word == Prop.SEARCH:  # results to show; refused while the index is behind
            self.http.put(f"{self._repository}/{where}/{self._values[word]}/results", headers=self._writer)

    def _link(self) -> None:
        for _ in range(2):
            self._object(Prop.DOCUMENT, "objects", "document")
        space = self.world.installation.settings.repository.names.vocab_namespace
        deadline = time.monotonic() + 60
        while True:  # that it waits for a position ends after a while, whether it was reached or not
            answer = self.http.post(
                f"{self._repository}/search?items-per-page=1&wait-for={self._values[Prop.POSITION]}",
                content=f'<search xmlns="{space}"/>',
                headers={**self._writer, "Content-Type": "application/xml", "Accept": "application/xml"},
            )
            found = re.search(r"link=([^&\"]+)", _ok(answer).text)
            if found:
                self._values[Prop.LINK] = found[1]
                return
            assert time.monotonic() < deadline, answer.text


class Record:
    """What was sent and what came back: counted, and judged when the round is over."""

    def __init__(self) -> None:
        self.statuses: dict[str, Counter[int]] = defaultdict(Counter)
        self.seconds: list[float] = []
        self.wrong: list[str] = []
        self.slowest = (0.0, "")

    @property
    def sent(self) -> int:
        """How many requests were answered. A status of 0 stands for what had no answer, and does not count."""
        return sum(counted.total() - counted[0] for counted in self.statuses.values())

    def note(self, route: str, answer: "Answer", said: str) -> None:
        """Count an answer; ``said`` tells the request in a failure."""
        self.statuses[route][answer.status] += 1
        self.seconds.append(answer.seconds)
        self.slowest = max(self.slowest, (answer.seconds, said))
        fault = answer.fault()
        if fault:
            self.wrong.append(f"{fault}: {said}")

    def __str__(self) -> str:
        every: Counter[int] = sum(self.statuses.values(), Counter())
        lines = [
            f"{self.sent} requests answered; median {statistics.median(self.seconds) * 1000:.1f} ms",
            f"slowest {self.slowest[0] * 1000:.0f} ms: {self.slowest[1][:200]}",
            f"all: {dict(sorted(every.items()))}",
            *(f"{route}: {dict(sorted(counted.items()))}" for route, counted in sorted(self.statuses.items())),
        ]
        return "\n".join(lines)


class Answer:
    """One answer, as far as it is judged."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes, seconds: float, *, ours: bool) -> None:
        self.status, self.headers, self.body, self.seconds = status, headers, body, seconds
        self._ours = ours

    def fault(self) -> str:
        """Say what is wrong with it; nothing when nothing is."""
        without_body = not self.body and self.headers.get("content-length", "0") != "0"  # as to HEAD
        if self.status == 501 and (without_body or b"Transfer-Encoding" in self.body):
            return ""
        if self.status >= 500 and not (self.status == 503 and self.headers.get("retry-after", "").isdigit()):
            return f"{self.status} {self.body[:300]!r}"
        if self._ours and self.headers.get("x-content-type-options") != "nosniff":
            return f"{self.status} without nosniff"
        return ""


def _ok(answer: httpx.Response) -> httpx.Response:
    assert answer.status_code < 300, (answer.request.url, answer.text)
    return answer


def _marked(page: httpx.Response) -> str:
    found = _CSRF.search(page.text)
    assert found, page.text
    return found[1]
