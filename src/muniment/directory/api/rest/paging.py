"""Page through a list: how many are asked for, from which place on, by which filter (docs/interface.md, ours 23)."""

import base64
import hmac
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import system
from muniment.directory.entries.listing import ListPlace
from muniment.ground.refusals import Malformed
from muniment.web.addresses import Parameter

IGNORED = "Muniment-Ignored"
"""The header of an answer that names the parameters of the query that its address does not know."""

MOST = 1000

_DEFAULT = 250
_LONGEST_FILTER = 1000
_LONGEST_NAMES = 500
_CHECK = 12

PARAMETERS = (
    Parameter(
        "page_size",
        f"How many members a page has at most: {_DEFAULT} if it is not said, and never more than {MOST}.",
        {"type": "integer", "minimum": 1},
    ),
    Parameter("next_page_cookie", "`nextPageCookie` of the page before."),
)

FILTER = Parameter(
    "where_filter",
    "How the name, the display name, the mail address or the last name begins; `*` at the beginning finds it anywhere.",
)


class PageFields(msgspec.Struct, kw_only=True):
    """What every list says of itself beside its members."""

    actual_page_size: int
    requested_page_size: int
    requested_filter: str | None
    next_page_cookie: str | None


class Wanted(NamedTuple):
    """The page that is asked for. ``list_name`` keeps the cookies of different lists apart."""

    list_name: str
    size: int
    cookie: str
    filter: str | None

    def after(self, cx: Connection) -> ListPlace | None:
        """None stands for the beginning. Raises Malformed for a cookie that this list did not give."""
        if not self.cookie:
            return None
        try:
            sent = base64.b64decode(self.cookie.replace(" ", "+"), validate=True)
        except ValueError:
            sent = b""
        check, content = sent[:_CHECK], sent[_CHECK:]
        keys = system.accepted_keys(cx, "csrf")
        if not any(hmac.compare_digest(check, self._check(key, content)) for key in keys):
            raise Malformed("This next_page_cookie does not come from a page of this list.")
        return ListPlace(*msgspec.json.decode(content.strip(b" "), type=tuple[int, str, int]))

    def fields(self, cx: Connection, members: int, end: ListPlace | None) -> dict[str, Any]:
        """Return those of ``PageFields``. ``end`` is None if nothing follows."""
        return {
            "actual_page_size": members,
            "requested_page_size": self.size,
            "requested_filter": self.filter,
            "next_page_cookie": None if end is None else self._cookie(cx, end),
        }

    def _cookie(self, cx: Connection, end: ListPlace) -> str:
        content = msgspec.json.encode(end)
        # Clients of the field expect a text that ends in '=='.
        content += b" " * ((1 - _CHECK - len(content)) % 3)
        return base64.b64encode(self._check(system.key(cx, "csrf"), content) + content).decode()

    def _check(self, key: bytes, content: bytes) -> bytes:
        text = f"page of {self.list_name}\x00{self.filter or ''}\x00".encode("utf-8", "surrogatepass") + content
        return hmac.digest(key, text, "sha256")[:_CHECK]


def read_size(text: str) -> int:
    """A size above ``MOST`` is that one, and an empty one the usual. Raises Malformed."""
    if not text.strip():
        return _DEFAULT
    try:
        size = int(text)
    except ValueError:
        size = 0
    if size < 1 or len(text) > 18:
        raise Malformed("page_size is a number from 1 on.")
    return min(size, MOST)


def read_filter(text: str) -> str | None:
    """None if all are asked for. Raises Malformed for one that is longer than any name."""
    if len(text) > _LONGEST_FILTER:
        raise Malformed(f"where_filter has at most {_LONGEST_FILTER} characters.")
    return text or None


def after_key(key: str | None) -> ListPlace | None:
    """Where a page of a list ends whose members differ in their keys. None stands for its end."""
    return None if key is None else ListPlace(0, key, 0)


def ignored(names: Sequence[str]) -> str:
    """Write the header's value: each name with what a header cannot hold percent-encoded."""
    return ", ".join(quote(name[:100], safe="") for name in names)[:_LONGEST_NAMES]
