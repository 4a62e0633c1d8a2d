"""Which content does a request mean, where is a new one stored, and how are contents shown?

Source: docs/interface.md, ours 3.
"""

import mimetypes
import os
from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.naming import is_storable
from muniment.ground.refusals import Malformed
from muniment.repository.api import uploads
from muniment.repository.api.shapes import collections
from muniment.repository.api.uploads import ReceivedBody, Upload
from muniment.repository.api.wire import format_names, parameters
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import NoContent
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.contents.further_contents import ContentPlace, ObjectContent
from muniment.repository.store.objects.decisions import contents
from muniment.repository.store.objects.decisions.contents import WantedContent
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

_POLICIES = ("dc-pref", "dc-only", "local", "all")
_MOST_PAGES, _LONGEST_MODIFIER = 1_000_000, 64


class ArrangedContent(msgspec.Struct, frozen=True):
    """A received content, with the place that it gets."""

    body: ReceivedBody
    media_type: str
    place: ContentPlace


def read_wanted(values: Mapping[str, str], names: RepositoryNames) -> WantedContent:
    """Raises WrongValue, Malformed."""
    parameters.choice(values, "media-url-policy", _POLICIES, default="all")
    format_name = values.get("format", "").strip()
    return WantedContent(
        format_names.media_type(format_name, names) if format_name else "",
        _page_number(values, 0),
        _modifier(values.get("modifier", "")),
        parameters.truth(values, "primary", default=True) if values.get("primary") else None,
    )


def arrange(upload: Upload, values: Mapping[str, str], names: RepositoryNames) -> list[ArrangedContent]:
    """Return each content of a body with its place: the main content first, then in the order of the parts.

    They are pages of the primary content, counted on from ``page``. With ``all-primary=false`` only the first one is,
    and the others are renditions; so they are if ``all-primary`` is absent, and a modifier is given. ``format``,
    ``modifier`` and ``page`` are lists with commas: the first value belongs to the first content, and so on. A lone
    ``format`` is that of all pages. Raises Malformed, WrongValue.
    """
    received = [*([(upload.content, upload.media_type)] if upload.content else []), *upload.further]
    number = collections.whole_number(values, "content-count", len(received), 0)
    if number != len(received):
        raise Malformed(f"The parameter 'content-count' is {number}, but the body has {len(received)} contents.")
    formats = _one_for_each(values, "format", len(received))
    modifiers = _one_for_each(values, "modifier", len(received))
    all_primary = parameters.truth(values, "all-primary", default=not any(modifiers))
    if all_primary and "," not in values.get("format", ""):
        formats = [formats[0]] * len(received) if received else []
    pages = _pages(values, len(received), counted_on=all_primary)
    arranged = []
    for at, (body, media_type) in enumerate(received):
        primary = all_primary or at == 0
        stated = format_names.media_type(formats[at], names) if formats[at] else media_type
        full = with_charset(stated if primary else uploads.media_type_of(stated, ""), values)
        at_page = WantedContent(full, pages[at], _modifier(modifiers[at]), primary)
        arranged.append(ArrangedContent(body, full, contents.place_of(at_page)))
    if sum(each.place.is_main for each in arranged) > 1:
        raise Malformed("Two contents have the page 0 of the primary content.")
    return sorted(arranged, key=lambda each: not each.place.is_main)


def with_charset(media_type: str, values: Mapping[str, str]) -> str:
    """``content-charset`` adds to a media type of text without one. Raises Malformed."""
    charset = values.get("content-charset", "").strip()
    if not charset:
        return media_type
    if not uploads.is_token(charset):
        raise Malformed(f"The parameter 'content-charset' is the name of a charset, not {charset[:40]!r}.")
    folded = media_type.lower()
    if not folded.startswith("text/") or "charset" in folded:
        return media_type
    return f"{media_type}; charset={charset}"


def check_length(values: Mapping[str, str], size: int) -> None:
    """Raise Malformed if ``content-length`` states other than ``size``."""
    stated = collections.whole_number(values, "content-length", size, 0)
    if stated != size:
        raise Malformed(f"The parameter 'content-length' is {stated}, but the content has {size} bytes.")


def _one_for_each(values: Mapping[str, str], name: str, number: int) -> Sequence[str]:
    texts = [text.strip() for text in values.get(name, "").split(",")]
    if len(texts) > max(1, number):
        raise Malformed(f"The parameter {name!r} has {len(texts)} values, but the body has {number} contents.")
    return texts + [""] * (number - len(texts))


def _pages(values: Mapping[str, str], number: int, *, counted_on: bool) -> list[int]:
    texts = _one_for_each(values, "page", number)
    pages: list[int] = []
    for text in texts[:number]:
        following = pages[-1] + 1 if counted_on and pages else 0
        pages.append(_page_number({"page": text}, following))
    return pages


def _page_number(values: Mapping[str, str], default: int) -> int:
    """Raises Malformed."""
    page = collections.whole_number(values, "page", default, 0)
    if page > _MOST_PAGES:
        raise Malformed(f"The parameter 'page' is at most {_MOST_PAGES}.")
    return page


def _modifier(text: str) -> str:
    modifier = text.strip()
    if len(modifier) > _LONGEST_MODIFIER or not modifier.isprintable() or not is_storable(modifier):
        raise Malformed(f"The parameter 'modifier' is a text of at most {_LONGEST_MODIFIER} printable characters.")
    return modifier


def check_still_there(
    cx: Connection, repository: Repository, principals: Principals, former: ObjectContent, wanted: WantedContent
) -> None:
    """Raises UnknownObject, NotPermitted, and NoContent if it is gone or has other bytes, not another key alone."""
    stored = objects.readable(cx, repository, former.object_id, principals)
    present = contents.find(cx, stored, wanted).content
    if (present.sha256, present.size) != (former.content.sha256, former.content.size):
        raise NoContent("The object does not have this content any more.")


def file_name(stored: StoredObject, content: ObjectContent) -> str:
    """Give a rendition the extension of its own format."""
    if content.place.is_primary:
        return stored.name
    ending = mimetypes.guess_extension(content.place.format, strict=False) or ""
    return stored.name if stored.name.lower().endswith(ending) else f"{os.path.splitext(stored.name)[0]}{ending}"
