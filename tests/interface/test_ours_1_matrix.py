"""ours 1, ours 10: every address and method, asked in every media type, with each suffix, by every kind of credential.

The rows come from the table that serves the addresses. The rules below say of each cell which status it has and in
which media type it is answered. A write sends a body that cannot be read, or is to something that is not there, so a
write that is let in is a 400 or a 404; only an object's content takes any bytes.
"""

import base64
import itertools
import zlib
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from muniment.directory.sign_in.passwords import PasswordGate
from muniment.repository.api import routes
from muniment.repository.options import RepositoryNames
from muniment.web.addresses import SUFFIXES
from tests.interface.test_ours_1_media_types import Things
from tests.office import page_ticket
from tests.rights.play import Outcome, Sent, play
from tests.scenes import Loop, Site, World

pytestmark = pytest.mark.only("sqlite", "What is in a cell is decided before and after any database.")

NEUTRAL = routes.table(RepositoryNames())
ROWS = [(method, address.path) for address in NEUTRAL.addresses for method in address.operations]

VENDOR, ATOM, HAL = "application/vnd.muniment", "application/atom+xml", "application/hal+json"
ACCEPTS = (
    *(None, "*/*", "application/json", "application/xml", f"{VENDOR}+json", f"{VENDOR}+xml", HAL, ATOM),
    *("application/home+json", "application/home+xml", "image/png"),
)
THINGS = (f"{VENDOR}+json", f"{VENDOR}+xml", "application/json", "application/xml", HAL)
FEEDS = (f"{VENDOR}+json", ATOM, *THINGS[1:])
HITS = (ATOM, "application/xml", f"{VENDOR}+xml", f"{VENDOR}+json", "application/json", HAL)
HOME = ("application/home+json", "application/home+xml", *THINGS[:4])
"""What is offered, the best first: for a thing, a list or a GET of hits, a query in XML, the home document."""

ERRORS = {**dict(zip(THINGS, THINGS, strict=True)), ATOM: "application/xml"}
ERRORS |= {"application/home+xml": "application/xml", "application/home+json": "application/json"}
"""As what a refusal goes out to a caller who likes this best."""

LISTS = {"repositories", "cabinets", "folders", "documents", "objects", "contents", "parent-links", "child-links"}
LISTS |= {"acls", "types", "users", "groups", "saved-searches", "search-templates", "supported-facets", "results"}
LISTS |= {"similar", "formats", "aspect-types", "lifecycles", "network-locations", "wastebasket", "object-by-path"}
LISTS |= {"relations", "relation-types", "comments", "replies", "aspects"}
LISTS |= {"versions", "checked-out-objects", "associations"}
SEARCHES = {"search", "execution"}
OPEN = {"/services", "/product-info", "/repositories"}
"""What is shown to everybody, whatever they show."""

FOR_ADMINISTRATORS = {"index-report"}
"""What the writer, who asks here, is refused."""

BY_ADMINISTRATORS = {"{person}", "{member}"}
"""Ends of what the writer may not delete, because administrators of the directory may."""

NAMED = {"{acl}", "{person}", "{member}"}
"""Ends of a path that may be a whole name: whether one has it is nothing for a stranger, who is refused as he asks."""

GOOD = ("bearer", "basic", "ticket", "cookie and CSRF")
BAD = ("nothing", "wrong bearer", "wrong basic", "wrong ticket", "wrong cookie", "cookie and wrong CSRF")
CREDENTIALS = (*GOOD, "cookie", *BAD)


class Cell(NamedTuple):
    """A status, and the media type of the answer; None where it has no body."""

    status: int
    media_type: str | None


def expected(method: str, path: str, accept: str | None, suffix: str, credential: str) -> Cell:
    """Say what is in a cell."""
    is_bytes, end = path.endswith(("/content-media", "/archived-contents")), path.rpartition("/")[2]
    known = best(ERRORS, accept, suffix)
    if suffix and is_bytes:
        return Cell(404, ERRORS[best(ERRORS, accept, "") or THINGS[0]])
    if not let_in(method, path, credential):
        unread = suffix and end in NAMED
        return Cell(401, ERRORS[best(ERRORS, accept, "") or THINGS[0]] if unread else ERRORS[known or THINGS[0]])
    if method == "DELETE":
        by_administrators = end in BY_ADMINISTRATORS or path.endswith("/types/{name}")
        return Cell(403 if by_administrators else 404, ERRORS[known or THINGS[0]])
    if is_bytes and method == "POST":
        return Cell(400, ERRORS[known or THINGS[0]])
    if is_bytes:
        return Cell(200, "application/zip" if end == "archived-contents" else "text/plain")
    chosen = best(offered(method, end), accept, suffix)
    if chosen is None:
        return Cell(406, ERRORS[known or THINGS[0]])
    status = answered(method, end)
    return Cell(status, chosen if status < 400 else ERRORS[known or THINGS[0]])


def answered(method: str, end: str) -> int:
    """Say what the writer gets, whose bodies are cut off."""
    if end in FOR_ADMINISTRATORS:
        return 403
    if method == "GET" or end in {"results", "content", "lock"}:
        return 200
    return 201 if end == "contents" else 400


def offered(method: str, end: str) -> Collection[str]:
    """List what is offered where a path ends so, the best first."""
    if end in LISTS and (method == "GET" or end == "results"):
        return FEEDS
    if end in SEARCHES:
        return HITS if method == "POST" else FEEDS
    return HOME if end == "services" else THINGS


def let_in(method: str, path: str, credential: str) -> bool:
    """Say whether a caller is let in: a cookie alone reads, and with a wrong CSRF token it reads just as well."""
    by_cookie_alone = method == "GET" and credential in {"cookie", "cookie and wrong CSRF"}
    return path in OPEN or credential in GOOD or by_cookie_alone


def best(kinds: Collection[str], accept: str | None, suffix: str) -> str | None:
    """Choose what is answered: by the suffix, else by Accept, else the first."""
    if suffix:
        return next(kind for kind in kinds if kind.endswith(suffix))
    if accept in {None, "*/*"}:
        return next(iter(kinds))
    return accept if accept in kinds else None


def cells(method: str, path: str, every: bool) -> Iterator[tuple[str, str, str | None]]:
    """Give credential, suffix and Accept of each cell of a row.

    A token meets every Accept without a suffix, and every suffix with some. Any other credential meets one Accept
    without a suffix and one with, because none of the three looks at the others: which ones differs from row to row.
    With ``every``, a token meets every suffix with every Accept, and any other credential meets every suffix.
    """
    row, kinds = zlib.crc32(f"{method} {path}".encode()), ("", *SUFFIXES)
    for (who, credential), (how, suffix) in itertools.product(enumerate(CREDENTIALS), enumerate(kinds)):
        step = (1 if every or not how else 4) if who == 0 else 9 if every else len(ACCEPTS)
        if every or who == 0 or how in {0, 1 + (row + who) % len(SUFFIXES)}:
            for accept in ACCEPTS[(row + who + 3 * how) % step :: step]:
                yield credential, suffix, accept


class Matrix:
    """A site with one thing of each kind, and what every kind of credential sends."""

    def __init__(self, site: Site, loop: Loop) -> None:
        self.site, self.loop, self.things = site, loop, Things(site)
        writer, wrong = site.world.writer, base64.b64encode(b"nobody@demo:x").decode()
        pair = base64.b64encode(f"{writer.id}:{writer.password}".encode()).decode()
        with site.world.directory_db.begin() as cx:
            user_id = site.world.entry(writer).id
            ticket = page_ticket(cx, site.directory_names, user_id, site.world.resource_id, site.world.clock())
        cookie, csrf = {"cookie": f"__Host-muniment_ticket={ticket}"}, f"{site.names.csrf_prefix}-Token"
        token = self.ask("GET", f"{site.repository}/types", cookie).headers[csrf.lower()]
        self.headers: Mapping[str, Mapping[str, str]] = {
            "bearer": site.bearer(),
            "basic": {"authorization": f"Basic {pair}"},
            "ticket": {"Muniment-Ticket": ticket},
            "cookie": cookie,
            "cookie and CSRF": {**cookie, csrf: token},
            "nothing": {},
            "wrong bearer": {"authorization": "Bearer stale"},
            "wrong basic": {"authorization": f"Basic {wrong}"},
            "wrong ticket": {"Muniment-Ticket": "stale"},
            "wrong cookie": {"cookie": "__Host-muniment_ticket=stale", csrf: token},
            "cookie and wrong CSRF": {**cookie, csrf: token[::-1]},
        }
        lock = self.things.url("/repositories/{repository}/objects/{id}/lock", "")
        assert self.ask("PUT", lock, self.headers["bearer"]).status == 200  # so that a check-in is read

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Outcome:
        """Send one request."""
        return play(self.site.application, self.loop, Sent(method, path, headers, body), None)

    def url(self, method: str, path: str, suffix: str) -> str:
        """Fill in the open parts of a path; what is to be deleted is not there."""
        if method != "DELETE":
            return self.things.url(path, suffix)
        parts = ("id", "other", "acl", "search", "template", "relation_type", "name", "person", "member")
        nothing = dict.fromkeys(parts, "0900000000000000")
        return f"/{self.site.names.prefix}" + path.format(repository=self.site.world.repository, **nothing) + suffix


@pytest.fixture(scope="module")
def matrix(world: World, loop: Loop) -> Iterator[Matrix]:
    """The matrix on one site; a wrong password costs no hash, since a thousand cells show one."""
    check = PasswordGate.check

    def quickly(self: PasswordGate, stored: str | None, *more: Any) -> "Future[bool]":
        if stored is not None:
            return check(self, stored, *more)
        refused: Future[bool] = Future()
        refused.set_result(False)
        return refused

    with pytest.MonkeyPatch.context() as patch, closing(Site(world, "neutral", loop)) as site:
        patch.setattr(PasswordGate, "check", quickly)
        yield Matrix(site, loop)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.campaign)], ids=["some", "every"])
@pytest.mark.parametrize(("method", "path"), ROWS)
def test_every_cell_has_its_status_and_its_media_type(matrix: Matrix, method: str, path: str, every: bool) -> None:
    wrong = list[str]()
    kinds = {"search": "application/xml", "explanation": "application/xml"}
    kinds |= {"contents": "text/plain", "content": "text/plain"}
    body = b"" if method in {"GET", "DELETE"} else b"{"
    kind = {"content-type": kinds.get(path.rpartition("/")[2], "application/json")} if body else {}
    for credential, suffix, accept in cells(method, path, every):
        headers = {**matrix.headers[credential], **kind, **({"accept": accept} if accept else {})}
        answer = matrix.ask(method, matrix.url(method, path, f".{suffix}" if suffix else ""), headers, body)
        cell = Cell(answer.status, answer.headers.get("content-type"))
        rule = expected(method, path, accept, suffix, credential)
        if cell != rule:
            wrong.append(f"{credential}, .{suffix}, {accept}: {cell}, not {rule}")
        if answer.status == 401 and "www-authenticate" not in answer.headers:
            wrong.append(f"{credential}, .{suffix}, {accept}: a 401 without a challenge")
    assert not wrong, "\n".join([f"{len(wrong)} cells:", *wrong[:20]])


def test_the_rows_are_all_addresses_and_the_media_types_are_those_of_the_table() -> None:
    assert len(ROWS) > 50
    for address in NEUTRAL.addresses:
        for method, operation in address.operations.items():
            for answer in operation.answers:
                assert set(answer.content) <= {*ACCEPTS}, (method, address.path)
