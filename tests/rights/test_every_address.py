"""A right that ends between the head of a request and its last byte is not used: at every address, in every way.

Source: issue 8, 1 (failures C1). The addresses come from the table that serves them: a new one fails here until it says
when its caller's right is asked for.
"""

import base64
import itertools
import json
import random
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import repository_tables
from muniment.directory.administration import decisions, resource_decisions
from muniment.directory.entries import editing, entries, memberships, resources
from muniment.directory.oauth import tokens
from muniment.directory.options import DirectoryNames
from muniment.ground.clock import SECOND
from muniment.repository.api import context, routes
from muniment.repository.api.callers import callers
from muniment.repository.api.operations import BELOW
from muniment.repository.options import RepositoryNames
from muniment.repository.store import repositories
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import assigned_acls
from muniment.repository.store.permissions.principals import Principals
from tests import runs
from tests.contents import contents
from tests.office import page_ticket
from tests.rights.play import Moment, Outcome, Sent, play
from tests.scenes import Loop, Person, Served, Site, World
from tests.waiting import until

pytestmark = pytest.mark.campaign_on("postgresql")

LONG = random.Random(14).randbytes(640_000)
"""Content of several pieces, also in an archive."""

PASSWORD = "right-for-everybody"

numbers = itertools.count(1)


NOT_OF_THE_REQUEST = {"bearers", "repository_audit_events", "repository_rights_history"}
"""Tables with who somebody is, kept when they were let in, and with what whoever ends the right leaves."""


class Stage:
    """A world, a site that serves both halves, and the application that is attacked: that one, or a repository whose
    directory is elsewhere."""

    def __init__(self, world: World, loop: Loop, apart: bool) -> None:
        self.world, self.loop, self.apart = world, loop, apart
        quick = ("repository.stream_check_bytes=65536", "repository.wastebasket_days=30")
        self.site = Site(world, "neutral", loop, *quick)
        self._served, self._alone = None, None
        self.application: Any = self.site.application
        if apart:
            self._served = Served(self.site)
            url = f"{self._served.base}{self.site.oauth}/tokeninfo"
            secrets = world.folder / "resource-secrets"
            lines = [f"{resource_id} {secret}\n" for resource_id, secret in world.secrets.items()]
            secrets.write_text("".join(lines), "utf-8")
            elsewhere = (
                f"repository.tokeninfo_url={url}",
                f"repository.tokeninfo_ca_file={self._served.ca_file}",
                f"repository.resource_secrets_file={secrets}",
            )
            self._alone = Site(world, "neutral", loop, *quick, "halves=repository", *elsewhere)
            self.application = self._alone.application
        self.keeper = world.writer
        world.admit(world.admin(self.site.directory_names), world.resource_id)
        self.post("/objects", {"properties": {"object_name": "makes the ACL 'private'"}})
        self._open = f"open-{next(numbers)}"
        self.post("/acls", {"name": self._open, "permitted": [{"accessor": "world", "basic-permission": "Delete"}]})
        self._things: dict[str, str] = {}
        self._hash = world.hash_of(PASSWORD)
        self.holding: Connection | None = None

    def close(self) -> None:
        if self._alone is not None:
            self._alone.close()
        if self._served is not None:
            self._served.close()
        self.site.close()

    def post(self, path: str, body: Mapping[str, Any], token: str = "") -> httpx.Response:
        """Make or change something, as the bearer of the token or as the keeper."""
        headers = {"Authorization": f"Bearer {token}"} if token else self.site.bearer(self.keeper)
        answer = self.site.http.post(f"{self.site.repository}{path}", json=body, headers=headers)
        assert answer.status_code in {200, 201}, answer.text
        return answer

    def made(self, kind: str, token: str = "") -> str:
        """Make a thing of this kind: open to all, or the bearer's own."""
        if kind == "filed":
            return self.filed(self.shared("cabinet"))
        if kind == "discarded":
            discarded = self.made("document", token)
            headers = {"Authorization": f"Bearer {token}"} if token else self.site.bearer(self.keeper)
            gone = self.site.http.delete(f"{self.site.repository}/objects/{discarded}", headers=headers)
            assert gone.status_code == 204, gone.text
            return discarded
        properties = {"r_object_type": kind, "object_name": f"a {kind} {next(numbers)}", "acl_name": self._open}
        if token:
            properties["acl_name"] = "private"
        where = f"/folders/{self.shared('cabinet')}/folders" if kind == "folder" else "/objects"
        where = "/cabinets" if kind == "cabinet" else where
        object_id: str = self.post(where, {"properties": properties}, token).json()["properties"]["r_object_id"]
        return object_id

    def filed(self, folder_id: str) -> str:
        """Make a document in a folder, open to all."""
        properties = {"object_name": f"filed {next(numbers)}", "acl_name": self._open}
        made = self.post(f"/folders/{folder_id}/documents", {"properties": properties})
        object_id: str = made.json()["properties"]["r_object_id"]
        return object_id

    def shared(self, kind: str) -> str:
        """Give a thing that all requests of a kind are sent to: none of them may change it."""
        if kind not in self._things:
            self._things[kind] = self.made("document" if kind == "content" else kind.rpartition(" ")[2])
            if kind == "content":
                self.fill(self._things[kind])
        return self._things[kind]

    def fill(self, object_id: str) -> None:
        kept = self.site.http.post(
            f"{self.site.repository}/objects/{object_id}/contents",
            content=LONG,
            headers=self.site.bearer() | {"Content-Type": "application/octet-stream"},
        )
        assert kept.status_code == 201, kept.text

    def check_out(self, object_id: str, token: str) -> None:
        """Have the bearer of the token check an object out."""
        headers = {"Authorization": f"Bearer {token}"}
        held = self.site.http.put(f"{self.site.repository}/objects/{object_id}/lock", headers=headers)
        assert held.status_code == 200, held.text

    def rows(self) -> dict[str, int]:
        """Count what is kept: the rows of each table, every version, and the files."""
        with self.world.repository_db.read() as cx:
            counted = {
                table.name: cx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for table in repository_tables.sorted_tables
                if table.name not in NOT_OF_THE_REQUEST
            }
            versions = repository_tables.tables["objects"].c.revision
            counted["versions"] = cx.execute(sa.select(sa.func.sum(versions))).scalar_one()
        counted["contents"] = len(contents(self.world.installation.content))
        return counted

    def people(self, groups: Sequence[str], resource_id: str = "") -> list[tuple[Person, str]]:
        """Make somebody for each of these groups (empty: in the access role themselves), with an access token.

        All in one commit, and without a password check; all have the same password.
        """
        world, now = self.world, self.world.clock()
        made = []
        with world.directory_db.begin() as cx:
            partition = entries.find_partition(cx, world.names, world.partition)
            client = entries.find_client(cx, world.client_id)
            resource = resources.by_id(cx, resource_id or world.resource_id)
            for group_name in groups:
                user = editing.add_user(cx, partition, f"passing-{next(numbers)}", now, password_hash=self._hash)
                if group_name:
                    group = entries.find_group(cx, world.names, f"{group_name}@{world.partition}")
                    memberships.add_member(cx, group, user)
                else:
                    resources.add_to_role(cx, resource, user)
                until = now + 3600 * SECOND
                grant, _ = tokens.open_grant(cx, user.id, client.id, resource.id, now, until)
                token = tokens.add_access_tokens(cx, [(grant, until)], now)[0]
                made.append((Person(f"{user.name}@{world.partition}", PASSWORD), token))
        return made

    def ticket(self, person: Person) -> dict[str, str]:
        """Give the header with a ticket of the person."""
        with self.world.directory_db.begin() as cx:
            user, now = self.world.entry(person).id, self.world.clock()
            return {"Muniment-Ticket": page_ticket(cx, DirectoryNames(), user, self.world.resource_id, now)}

    @staticmethod
    def password(person: Person) -> dict[str, str]:
        """Give the header with the name and the password of the person."""
        encoded = base64.b64encode(f"{person.id}:{person.password}".encode()).decode()
        return {"Authorization": f"Basic {encoded}"}

    @contextmanager
    def another_guard(self) -> Iterator[Callable[[], None]]:
        """Let another resource guard the repository when the function is called, until the block ends."""

        def guard(resource_id: str) -> None:
            with ExitStack() as opening:
                cx = self.holding or opening.enter_context(self.world.repository_db.begin())
                repositories.guard(cx, repositories.find(cx, self.world.repository), resource_id)

        try:
            yield lambda: guard(self.world.other_resource_id)
        finally:
            guard(self.world.resource_id)

    def decide(self, decision: Callable[..., Any], *args: Any) -> None:
        """Take a decision of the directory, as the command line does."""
        with self.world.directory_db.begin() as cx:
            decision(cx, *args)


class Used(NamedTuple):
    """How a right is used at an address, and when it ends. ``of`` is the kind of thing the address names.

    ``own`` says that the thing has to be the caller's; ``by_acl`` that the address needs a permission on it.
    """

    moment: Moment
    of: str = ""
    body: bytes = b""
    media_type: str = "application/json"
    query: str = ""
    own: bool = False
    by_acl: bool = True


MADE_BY_ITS_OWNER = {"document", "folder", "discarded"}
"""The kinds of things that are made anew for a caller who has to own them."""


def described(**properties: str) -> bytes:
    return json.dumps({"properties": {"object_name": "changed", **properties}}).encode()


def multipart() -> bytes:
    parts = (b"application/json", described()), (b"application/octet-stream", LONG)
    return b"".join(b"--x\r\nContent-Type: %b\r\n\r\n%b\r\n" % part for part in parts) + b"--x--\r\n"


def reference(kind: str) -> bytes:
    """Refer to a thing of this kind, which ``attacked`` makes."""
    return b'{"href": "https://muniment.test/rest/repositories/demo/objects/{%b}"}' % kind.encode()


HREFS = b'{"hrefs": ["https://muniment.test/rest/repositories/demo/objects/{id}"]}'

ACL = json.dumps({"name": "new", "permitted": [{"accessor": "world", "basic-permission": "Read"}]}).encode()
ENTRIES = json.dumps({"permitted": [{"accessor": "world", "basic-permission": "Read"}]}).encode()
QUERY = (
    b'<search xmlns="urn:muniment:vocab"><types><type>document</type></types><expression-set operator="AND">'
    b"<expressions><fulltext>document</fulltext></expressions></expression-set></search>"
)
SAVED = json.dumps({"properties": {"object_name": "saved"}, "query-document": QUERY.decode()}).encode()
OPEN_QUERY = QUERY.replace(b"<fulltext>", b'<fulltext template="true">').decode()
TEMPLATE = json.dumps({"properties": {"object_name": "open"}, "query-document-template": OPEN_QUERY}).encode()
VALUES = json.dumps({"external-variables": [{"id": "v1", "variable-value": "document"}]}).encode()
RELATION = b'{"properties": {"relation_name": "peer", "parent_id": "{thing}", "child_id": "{document}"}}'
COMMENT = json.dumps({"properties": {"content": "a comment"}}).encode()
BATCH = json.dumps({"operations": [{"id": "1", "request": {"uri": "/repositories/demo/types"}}]}).encode()
_XML = "application/xml"
_RAW = "application/octet-stream"

CHANGED = {
    f"{BELOW}/{kind}s/{{id}}": ("document" if kind == "object" else kind)
    for kind in ("object", "document", "folder", "cabinet")
}

USES: dict[tuple[str, str], tuple[Used, ...]] = {
    ("GET", f"{BELOW}/search"): (Used("wait", "found", query="?q=document&items-per-page=1000"),),
    ("POST", f"{BELOW}/search"): (
        Used("last byte", "found", QUERY, _XML, "?items-per-page=1"),
        Used("wait", "found", QUERY, _XML, "?items-per-page=1000"),
    ),
    ("GET", f"{BELOW}/search/explanation"): (Used("wait", "document", query="?q=document&object={id}"),),
    ("POST", f"{BELOW}/search/explanation"): (
        Used("last byte", "document", QUERY, _XML, "?object={id}"),
        Used("wait", "document", QUERY, _XML, "?object={id}"),
    ),
    ("POST", "/search"): (Used("last byte", "found", QUERY, _XML, "?limit=1"),),
    ("POST", f"{BELOW}/acls"): (Used("last byte", "", ACL, by_acl=False),),
    ("POST", f"{BELOW}/acls/{{acl}}"): (Used("last byte", "acl", ENTRIES, own=True, by_acl=False),),
    ("DELETE", f"{BELOW}/acls/{{acl}}"): (Used("queue", "acl", own=True, by_acl=False),),
    ("PUT", f"{BELOW}/objects/{{id}}/permission-set"): (
        Used("last byte", "document", b'{"acl-name": "public"}', own=True),
    ),
    ("PUT", f"{BELOW}/folders/{{id}}/default-permission-set"): (
        Used("last byte", "folder", b'{"acl-name": "public"}', own=True),
    ),
    ("DELETE", f"{BELOW}/folders/{{id}}/default-permission-set"): (Used("queue", "folder", own=True),),
    ("POST", f"{BELOW}/saved-searches"): (Used("last byte", "", SAVED, by_acl=False),),
    ("POST", f"{BELOW}/saved-searches/{{search}}"): (Used("last byte", "saved", SAVED, by_acl=False),),
    ("DELETE", f"{BELOW}/saved-searches/{{search}}"): (Used("queue", "saved", by_acl=False),),
    ("GET", f"{BELOW}/saved-searches/{{search}}/execution"): (Used("wait", "found", query="?items-per-page=1000"),),
    ("PUT", f"{BELOW}/saved-searches/{{search}}/results"): (Used("wait", "found", query="?items-per-page=1000"),),
    ("DELETE", f"{BELOW}/saved-searches/{{search}}/results"): (Used("queue", "saved", by_acl=False),),
    ("POST", f"{BELOW}/search-templates"): (Used("last byte", "", TEMPLATE, by_acl=False),),
    ("DELETE", f"{BELOW}/search-templates/{{template}}"): (Used("queue", "saved", by_acl=False),),
    ("POST", f"{BELOW}/search-templates/{{template}}/execution"): (
        Used("last byte", "saved", VALUES, by_acl=False),
        Used("wait", "found", VALUES, query="?items-per-page=1000"),
    ),
    ("POST", f"{BELOW}/relations"): (Used("last byte", "document", RELATION), Used("queue", "document", RELATION)),
    ("DELETE", f"{BELOW}/relations/{{id}}"): (Used("queue", "document"),),
    ("POST", f"{BELOW}/objects/{{id}}/comments"): (
        Used("last byte", "document", COMMENT),
        Used("queue", "document", COMMENT),
    ),
    ("POST", f"{BELOW}/comments/{{id}}"): (Used("last byte", "document", COMMENT),),
    ("DELETE", f"{BELOW}/comments/{{id}}"): (Used("queue", "document"),),
    ("POST", f"{BELOW}/comments/{{id}}/replies"): (Used("last byte", "document", COMMENT),),
    ("POST", f"{BELOW}/batches"): (Used("last byte", "", BATCH, by_acl=False),),
    ("POST", f"{BELOW}/types/{{name}}/assist-values"): (Used("last byte", "", b"{}", by_acl=False),),
    ("POST", f"{BELOW}/objects/{{id}}/contents"): (Used("last byte", "content", LONG, _RAW),),
    ("POST", f"{BELOW}/objects/{{id}}/contents/content"): (Used("last byte", "content", LONG, _RAW),),
    ("DELETE", f"{BELOW}/objects/{{id}}/contents/content"): (Used("queue", "content"),),
    ("GET", f"{BELOW}/objects/{{id}}/content-media"): (Used("first bytes", "content"),),
    ("GET", f"{BELOW}/archived-contents"): (Used("first bytes", "content", query="?object-id={id}"),),
    ("POST", f"{BELOW}/archived-contents"): (
        Used("last byte", "content", HREFS),
        Used("first bytes", "content", HREFS),
    ),
    ("POST", f"{BELOW}/cabinets"): (Used("last byte", "", described(), by_acl=False),),
    ("POST", f"{BELOW}/objects"): (
        Used("last byte", "", described(), by_acl=False),
        Used("last byte", "", multipart(), "multipart/mixed; boundary=x", by_acl=False),
        Used("last byte", "", LONG, _RAW, "?object-name=raw", by_acl=False),
    ),
    **{
        ("POST", f"{BELOW}/folders/{{id}}/{name}"): (Used("last byte", "folder", described()),)
        for name in ("folders", "documents", "objects")
    },
    ("POST", f"{BELOW}/objects/{{id}}/parent-links"): (Used("last byte", "document", reference("other cabinet")),),
    ("PUT", f"{BELOW}/objects/{{id}}/parent-links/{{other}}"): (
        Used("last byte", "filed", reference("other cabinet")),
    ),
    ("DELETE", f"{BELOW}/objects/{{id}}/parent-links/{{other}}"): (Used("queue", "filed"),),
    ("POST", f"{BELOW}/wastebasket/{{id}}/restore"): (
        Used("last byte", "discarded", b'{"href": ""}', own=True, by_acl=False),
    ),
    ("DELETE", f"{BELOW}/wastebasket/{{id}}"): (Used("queue", "discarded", own=True, by_acl=False),),
    ("POST", f"{BELOW}/folders/{{id}}/child-links"): (Used("last byte", "folder", reference("document")),),
    ("DELETE", f"{BELOW}/folders/{{id}}/child-links/{{other}}"): (Used("queue", "folder"),),
    ("PUT", f"{BELOW}/objects/{{id}}/lock"): (Used("queue", "document"),),
    ("DELETE", f"{BELOW}/objects/{{id}}/lock"): (Used("queue", "document", own=True, by_acl=False),),
    ("POST", f"{BELOW}/objects/{{id}}/versions"): (
        Used("last byte", "document", described(), own=True),
        Used("last byte", "document", multipart(), "multipart/mixed; boundary=x", own=True),
        Used("last byte", "document", LONG, _RAW, own=True),
    ),
    **{("POST", path): (Used("last byte", kind, described()),) for path, kind in CHANGED.items()},
    **{("DELETE", path): (Used("queue", f"empty {kind}"),) for path, kind in CHANGED.items()},
}
"""Every address that takes a body, waits or streams, and every other that writes."""

OPEN = {"/services", "/product-info", "/repositories"}
"""What is shown to everybody."""

REFUSED_AT_ONCE = {
    ("POST", f"{BELOW}/index-report"),
    ("POST", f"{BELOW}/relation-types"),
    ("DELETE", f"{BELOW}/relation-types/{{relation_type}}"),
    ("POST", f"{BELOW}/objects/{{id}}/aspects"),
    ("POST", f"{BELOW}/types"),
    ("POST", f"{BELOW}/types/{{name}}"),
    ("DELETE", f"{BELOW}/types/{{name}}"),
}
"""What only administrators of the repository may do; no caller here is one. And what nobody may do."""

BY_ADMINISTRATORS = {
    *(("POST", f"{BELOW}/{path}") for path in ("users", "groups")),
    *((method, f"{BELOW}/{kind}s/{{person}}") for kind in ("user", "group") for method in ("POST", "DELETE")),
    *(("POST", f"{BELOW}/groups/{{person}}/{kind}s") for kind in ("user", "group")),
    *(("DELETE", f"{BELOW}/groups/{{person}}/{kind}s/{{member}}") for kind in ("user", "group")),
}
"""What only administrators of the directory may do: ``test_people_changes`` asks when their right is asked for."""

AT_ONCE = {
    *OPEN,
    "/search",
    "/repositories/{repository}",
    f"{BELOW}/types",
    f"{BELOW}/supported-facets",
    *(f"{BELOW}/{name}" for name in ("formats", "formats/{format}", "aspect-types", "lifecycles", "network-locations")),
    f"{BELOW}/network-locations/{{location}}",
    f"{BELOW}/index-report",
    f"{BELOW}/search/suggestions",
    f"{BELOW}/types/{{name}}",
    f"{BELOW}/acls",
    f"{BELOW}/acls/{{acl}}",
    f"{BELOW}/saved-searches",
    f"{BELOW}/saved-searches/{{search}}",
    f"{BELOW}/saved-searches/{{search}}/results",
    f"{BELOW}/search-templates",
    f"{BELOW}/search-templates/{{template}}",
    f"{BELOW}/cabinets",
    f"{BELOW}/objects/{{id}}/versions",
    f"{BELOW}/objects/{{id}}/versions/current",
    f"{BELOW}/checked-out-objects",
    f"{BELOW}/objects/{{id}}/permission-set",
    f"{BELOW}/objects/{{id}}/permissions",
    f"{BELOW}/folders/{{id}}/default-permission-set",
    f"{BELOW}/objects/{{id}}/contents",
    f"{BELOW}/objects/{{id}}/contents/content",
    f"{BELOW}/objects/{{id}}/index-status",
    f"{BELOW}/objects/{{id}}/similar",
    *(f"{BELOW}/{path}" for path in ("relations", "relations/{id}", "comments/{id}", "comments/{id}/replies")),
    *(f"{BELOW}/{path}" for path in ("relation-types", "relation-types/{relation_type}", "batch-capabilities")),
    *(f"{BELOW}/objects/{{id}}/{name}" for name in ("comments", "aspects")),
    *(f"{BELOW}/folders/{{id}}/{name}" for name in ("folders", "documents", "objects", "child-links")),
    f"{BELOW}/folders/{{id}}/child-links/{{other}}",
    *(f"{BELOW}/{path}" for path in ("users", "groups", "users/{person}", "groups/{person}", "currentuser")),
    *(
        f"{BELOW}/{path}"
        for path in ("users/{person}/home", "users/{person}/permission-set", "acls/{acl}/associations")
    ),
    *(f"{BELOW}/groups/{{person}}/{name}" for name in ("users", "groups")),
    *(f"{BELOW}/groups/{{person}}/{name}/{{member}}" for name in ("users", "groups")),
    f"{BELOW}/objects/{{id}}/parent-links",
    f"{BELOW}/objects/{{id}}/parent-links/{{other}}",
    *(f"{BELOW}/{path}" for path in ("object-by-path", "wastebasket", "wastebasket/{id}")),
    *CHANGED,
}
"""What is read by GET, without a body, in one piece, from one snapshot in which the caller is asked about."""


class Way(NamedTuple):
    """A way for a right to end, and the group through which the user has it, if it is one."""

    end: Callable[[Stage, Person, str], None]
    group: str = ""


def _user(change: Callable[..., Any], *more: Any) -> Callable[[Stage, Person, str], None]:
    def end(stage: Stage, person: Person, _token: str) -> None:
        stage.decide(change, stage.world.entry(person), *more, stage.world.clock())

    return end


def _role(stage: Stage, person: Person, _token: str) -> None:
    def expel(cx: Connection) -> None:
        resource = resources.by_id(cx, stage.world.resource_id)
        resource_decisions.remove_from_role(cx, resource, stage.world.entry(person))

    stage.decide(expel)


def _group(stage: Stage, person: Person, _token: str) -> None:
    def expel(cx: Connection) -> None:
        group = entries.find_group(cx, stage.world.names, f"writers@{stage.world.partition}")
        decisions.remove_members(cx, group, [stage.world.entry(person)], stage.world.clock())

    stage.decide(expel)


def _revocation(stage: Stage, _person: Person, token: str) -> None:
    assert stage.site.revoke(token).status_code == 204


WAYS: dict[str, Way] = {
    "revocation": Way(_revocation),
    "disabled": Way(_user(decisions.set_disabled, True)),
    "locked": Way(_user(decisions.set_locked, True)),
    "new password": Way(_user(decisions.set_password, "another hash")),
    "signed out": Way(_user(decisions.sign_out)),
    "removed": Way(_user(decisions.remove)),
    "role": Way(_role),
    "group": Way(_group, "writers"),
}


def ways_at(stage: Stage, method: str, path: str, names: Sequence[str], most: int) -> Sequence[str]:
    """Choose the ways that are tried at an address: outside the campaign at most so many, of halves apart one.

    An address asks by one question, whatever the way. Each way has its addresses, and in the campaign all of them.
    """
    if runs.of_campaign():
        return names
    first, most = zlib.crc32(f"{method} {path}".encode()), 1 if stage.apart else min(most, len(names))
    return [names[(first + number * len(names) // most) % len(names)] for number in range(most)]


@pytest.fixture(scope="module", params=["together", "apart"])
def stage(request: pytest.FixtureRequest, world: World, loop: Loop) -> Iterator[Stage]:
    """A world on each database, served by one process, and by a repository whose directory is elsewhere."""
    made = Stage(world, loop, request.param == "apart")
    yield made
    made.close()


ROWS = [
    pytest.param(method, path, use, id=f"{method} {path.removeprefix(BELOW)} {use.moment} {use.media_type}")
    for (method, path), uses in USES.items()
    for use in uses
]


SOME_ROWS = [
    pytest.param(*row.values, id=row.id, marks=() if number % 3 == 0 else pytest.mark.campaign)
    for number, row in enumerate(ROWS)
]
"""Every third row in `make test`, all of them in the campaign."""


def test_every_address_of_the_repository_says_when_its_right_is_asked() -> None:
    served = {
        (method, address.path) for address in routes.table(RepositoryNames()).addresses for method in address.operations
    }
    assert served == USES.keys() | {("GET", path) for path in AT_ONCE} | REFUSED_AT_ONCE | BY_ADMINISTRATORS


@pytest.mark.parametrize("most_ways", [2, pytest.param(len(WAYS), marks=pytest.mark.campaign)])
@pytest.mark.parametrize(("method", "path", "use"), ROWS)
def test_a_right_that_ends_while_a_request_is_under_way_is_not_used(
    stage: Stage, method: str, path: str, use: Used, most_ways: int
) -> None:
    ways = ways_at(stage, method, path, [*WAYS], most_ways)
    people = stage.people([WAYS[name].group for name in ways])
    for name, (person, token) in zip(ways, people, strict=True):
        thing = stage.made(use.of, token) if use.own and use.of in MADE_BY_ITS_OWNER else ""
        outcome, before = attacked(stage, method, path, use, WAYS[name], person, token, thing)
        refused = outcome.status == 401 if use.moment != "first bytes" else not outcome.whole
        assert refused, f"{name}: {outcome.status} {outcome.body[:300]!r}"
        assert len(outcome.body) < len(LONG)
        assert stage.rows() == before, name
    assert not list((stage.world.installation.content / "incoming").iterdir())


@pytest.mark.parametrize("shown", ["password", pytest.param("ticket", marks=pytest.mark.campaign)])
@pytest.mark.parametrize(("method", "path", "use"), SOME_ROWS)
def test_a_password_and_a_ticket_are_not_used_either_once_the_right_has_ended(
    stage: Stage, method: str, path: str, use: Used, shown: str
) -> None:
    """What ends a token ends these; only the directory's own process knows a ticket."""
    ends = ("disabled", "new password" if shown == "password" else "signed out", "role", "group")
    ways = ways_at(stage, method, path, ends, len(ends))
    people = stage.people([WAYS[name].group for name in ways])
    for name, (person, token) in zip(ways, people, strict=True):
        headers = stage.password(person) if shown == "password" else stage.ticket(person)
        if shown == "ticket" and stage.apart:
            assert (
                play(stage.application, stage.loop, Sent("GET", f"{stage.site.repository}/types", headers), None).status
                == 401
            )
            continue
        thing = stage.made(use.of, token) if use.own and use.of in MADE_BY_ITS_OWNER else ""
        outcome, before = attacked(stage, method, path, use, WAYS[name], person, token, thing, headers)
        refused = outcome.status == 401 if use.moment != "first bytes" else not outcome.whole
        assert refused, f"{name}: {outcome.status} {outcome.body[:300]!r}"
        assert stage.rows() == before, name


@pytest.mark.parametrize(("method", "path", "use"), [row for row in ROWS if row.values[2].by_acl])  # type: ignore[union-attr]
def test_a_permission_that_ends_while_a_request_is_under_way_is_not_used(
    stage: Stage, method: str, path: str, use: Used
) -> None:
    kind = use.of.removeprefix("empty ")
    ((person, token),) = stage.people([""])
    thing = stage.made("document" if kind in {"content", "found"} else kind, token if use.own else "")
    if kind == "content":
        stage.fill(thing)

    def end(_stage: Stage, _person: Person, _token: str) -> None:
        if use.own and stage.holding is not None:
            repository = repositories.find(stage.holding, stage.world.repository)
            administrator = Principals("admin@directory.admin", administrator=True)
            key = administrator.key_for(stage.holding, stage.keeper.id, stage.world.clock())
            objects.give(
                stage.holding, repository.id, [thing], stage.keeper.id, key, administrator, stage.world.clock()
            )
        elif use.own:
            admin = stage.site.bearer(stage.world.admin(stage.site.directory_names))["Authorization"][7:]
            stage.post(f"/objects/{thing}", {"properties": {"owner_name": stage.keeper.id}}, admin)
        elif stage.holding is not None:
            administrator = Principals("admin@directory.admin", administrator=True)
            repository = repositories.find(stage.holding, stage.world.repository)
            assigned_acls.assign(stage.holding, repository, administrator, thing, "private", stage.world.clock())
        else:
            stage.site.share(thing, "private")

    outcome, before = attacked(stage, method, path, use, Way(end), person, token, thing)
    if kind == "found":
        assert outcome.status == 200
        assert thing.encode() not in outcome.body
    elif use.moment == "first bytes":
        assert not outcome.whole
        assert len(outcome.body) < len(LONG)
    else:
        assert outcome.status in {403, 404}, outcome.body
    compared = before.keys() if use.moment != "queue" else {"objects", "contents"}
    if kind == "found":
        # A search that is answered keeps its next link, where other tests have left more than one page of objects.
        compared -= {"links", "saved_results"}
    assert {name: count for name, count in stage.rows().items() if name in compared} == {
        name: before[name] for name in compared
    }


@pytest.mark.parametrize(("method", "path", "use"), SOME_ROWS)
def test_a_guard_that_changes_while_a_request_is_under_way_is_obeyed(
    stage: Stage, method: str, path: str, use: Used
) -> None:
    ((person, token),) = stage.people([""])
    thing = stage.made(use.of, token) if use.own and use.of in MADE_BY_ITS_OWNER else ""
    with stage.another_guard() as change:
        way = Way(lambda *_: change())
        outcome, before = attacked(stage, method, path, use, way, person, token, thing)
    assert outcome.status == 401 if use.moment != "first bytes" else not outcome.whole, outcome.body[:300]
    assert stage.rows() == before


def test_a_new_guard_is_obeyed_by_the_next_request(stage: Stage) -> None:
    """Whoever has a token for the former one is out, whoever has one for the new one is in: neither waits."""
    ((_, former),) = stage.people([""])
    ((_, new),) = stage.people([""], stage.world.other_resource_id)

    def statuses(path: str) -> list[int]:
        address = f"/{stage.site.names.prefix}{path.replace('{repository}', stage.world.repository)}"
        address += "?path=/nothing" if path.endswith("/object-by-path") else ""  # without a path nothing is asked
        sent = [Sent("GET", address, {"Authorization": f"Bearer {token}"}) for token in (former, new)]
        return [play(stage.application, stage.loop, one, None).status for one in sent]

    for path in sorted(AT_ONCE - OPEN):
        assert [status == 401 for status in statuses(path)] == [False, True], path
        with stage.another_guard() as change:
            change()
            assert [status == 401 for status in statuses(path)] == [True, False], path
        assert [status == 401 for status in statuses(path)] == [False, True], path


@pytest.mark.parametrize("stage", ["together", pytest.param("apart", marks=pytest.mark.campaign)], indirect=True)
def test_a_right_that_holds_is_used(stage: Stage) -> None:
    """The matrix refuses nobody for another reason: the same requests are obeyed when nothing ends."""
    way = Way(lambda *_: None)
    for (method, path), uses in USES.items():
        for use in uses:
            ((person, token),) = stage.people([""])
            kind = use.of.removeprefix("empty ")
            made = {"content": "document", "found": "document", "acl": "", "saved": "", "": ""}.get(kind, kind)
            thing = stage.made(made, token if use.own else "") if made else ""
            if kind == "content":
                stage.fill(thing)
            shown = stage.password(person) if next(numbers) % 2 else None
            outcome, _ = attacked(stage, method, path, use, way, person, token, thing, shown)
            assert outcome.status in {200, 201, 204}, f"{method} {path}: {outcome.body[:300]!r}"
            assert outcome.whole
            assert kind != "found" or use.moment != "wait" or thing.encode() in outcome.body


def attacked(
    stage: Stage,
    method: str,
    path: str,
    use: Used,
    way: Way,
    person: Person,
    token: str,
    thing: str = "",
    shown: Mapping[str, str] | None = None,
) -> tuple[Outcome, dict[str, int]]:
    """Send a request whose caller's right ends on its way; give what came back, and what was kept when it had ended.

    Without a ``thing`` it is sent to one that is there for all; without what is ``shown``, with the token.
    """
    kind = use.of.removeprefix("empty ")
    query = use.query
    searches = saved(stage, path, token)
    if kind == "acl":
        thing = f"own-{next(numbers)}"
        stage.post("/acls", {"name": thing, "permitted": [{"accessor": "world", "basic-permission": "Browse"}]}, token)
    elif kind not in {"", "found", "saved"} and not thing:
        thing = stage.shared(use.of)
    if (method, path.rpartition("/")[2]) in {("DELETE", "lock"), ("POST", "versions")}:
        stage.check_out(thing, token)
    if use.moment == "wait" and kind in {"found", "document"}:
        stage.world.catch_up()  # nothing else is to be noted when the wait ends
        position = stage.post("/objects", {"properties": {"object_name": "awaited"}}, token).headers
        query += f"&wait-for={position['Muniment-Position']}"
    other, body = referenced(stage, path, use.body, thing)
    path = related(stage, path, thing, token)
    address = (
        path.replace("{id}", thing)
        .replace("{other}", other)
        .replace("{acl}", thing)
        .replace("{name}", thing or "document")
        .replace("{format}", "pdf")
        .replace("{search}", searches)
        .replace("{template}", searches)
        .replace("{repository}", stage.world.repository)
    )
    headers = {**(shown or {"Authorization": f"Bearer {token}"}), "Content-Type": use.media_type}
    kept: list[dict[str, int]] = []

    def end() -> None:
        way.end(stage, person, token)
        kept.append(stage.rows())
        if use.moment == "wait":
            stage.world.catch_up()

    sent = Sent(method, f"/{stage.site.names.prefix}{address}{query.replace('{id}', thing)}", headers, body)
    if use.moment == "queue":
        with others_write(stage, end) as happen:
            outcome = play(stage.application, stage.loop, sent, "queue", happen)
    else:
        outcome = play(stage.application, stage.loop, sent, use.moment, end)
    return outcome, kept[0]


def saved(stage: Stage, path: str, token: str) -> str:
    """Save the search or the template that the path names, and give its id."""
    made = {"{search}": ("/saved-searches", SAVED), "{template}": ("/search-templates", TEMPLATE)}
    for part, (where, body) in made.items():
        if part in path:
            search_id: str = stage.post(where, json.loads(body), token).json()["properties"]["r_object_id"]
            return search_id
    return ""


def referenced(stage: Stage, path: str, body: bytes, thing: str) -> tuple[str, bytes]:
    """Make the other end of a link that the path names, and what the body refers to; give both."""
    other, body = "", body.replace(b"{thing}", thing.encode()).replace(b"{id}", thing.encode())
    if "parent-links/{other}" in path:
        other = stage.shared("cabinet")
    elif "child-links/{other}" in path:
        other = stage.filed(thing)
    if b"{document}" in body:
        body = body.replace(b"{document}", stage.made("document").encode())
    elif b"{other cabinet}" in body:
        body = body.replace(b"{other cabinet}", stage.shared("other cabinet").encode())
    return other, body


def related(stage: Stage, path: str, thing: str, token: str) -> str:
    """Make the relation, or the bearer's comment, that the path names; give the path with its id."""
    made = {
        "/relations/{id}": ("/relations", json.loads(RELATION.replace(b"{thing}", b"{document}"))),
        "/comments/{id}": (f"/objects/{thing}/comments", json.loads(COMMENT)),
    }
    for part, (where, body) in made.items():
        if part in path:
            if "parent_id" in body["properties"]:
                body["properties"] |= {"parent_id": thing, "child_id": thing}
            made_id: str = stage.post(where, body, token).json()["properties"]["r_object_id"]
            return path.replace("{id}", made_id)
    return path


@contextmanager
def others_write(stage: Stage, end: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Hold up every other write to the database until the right has ended, and longer than an answer is taken for."""
    database, later = stage.world.repository_db, [0.0]
    with ExitStack() as holding, pytest.MonkeyPatch.context() as patch:
        stage.holding = cx = holding.enter_context(database.begin())
        if database.dialect == "postgresql":
            cx.exec_driver_sql(
                "LOCK TABLE objects, wastebasket, acls, saved_searches, saved_results, relations, comments "
                "IN EXCLUSIVE MODE"
            )

        def happen() -> None:
            if database.dialect == "postgresql":
                waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
                until(lambda: cx.exec_driver_sql(waiting).scalar_one(), "the request does not wait for the lock")
            end()
            later.append(2 * callers.FRESH_SECONDS)
            stage.holding = None
            holding.close()

        shifted = SimpleNamespace(monotonic=lambda: time.monotonic() + sum(later))
        for module in (callers, context):
            patch.setattr(module, "time", shifted)
        try:
            yield happen
        finally:
            stage.holding = None
