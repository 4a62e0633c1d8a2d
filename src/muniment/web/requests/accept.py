"""Which media type does the caller like best? (RFC 9110 12.5.1)."""

import re
from collections.abc import Sequence
from functools import lru_cache

from starlette.requests import Request

_LONGEST_HEADER = 4000
_QUALITY = re.compile(r"(0(\.[0-9]{0,3})?|1(\.0{0,3})?)")


def best_media_type(request: Request, media_types: Sequence[str]) -> str | None:
    """Of equals the first one in ``media_types`` counts, and without Accept the first of all."""
    header = _header(request)
    return _best(header, tuple(media_types)) if header else media_types[0]


def prefers_page(request: Request) -> bool:
    header = _header(request).lower()
    media_types = ["application/json", "text/html"]
    if "text/html" in header and "json" not in header:
        # A caller who names HTML, and JSON only by a wildcard, wants a page: "text/html, */*".
        media_types.reverse()
    return header != "" and _best(header, tuple(media_types)) == "text/html"


def _header(request: Request) -> str:
    return ",".join(request.headers.getlist("accept")).strip()[:_LONGEST_HEADER]


@lru_cache(maxsize=100)
def _best(accept: str, media_types: tuple[str, ...]) -> str | None:
    ranges = [_range(text) for text in accept.split(",")]
    best = max(media_types, key=lambda kind: _quality(kind, ranges))
    return best if _quality(best, ranges) > 0 else None


def _range(text: str) -> tuple[str, float]:
    kind, *parameters = (part.strip().lower() for part in text.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            value = value.strip(" \t")
            return kind, float(value) if _QUALITY.fullmatch(value) else 0.0
    return kind, 1.0


def _quality(kind: str, ranges: Sequence[tuple[str, float]]) -> float:
    kind = kind.lower()
    family, structure = kind.partition("/")[0], kind.rpartition("+")[2]
    for pattern in (kind, f"{family}/*+{structure}" if "+" in kind else kind, f"{family}/*", "*/*"):
        qualities = [quality for kind_range, quality in ranges if kind_range == pattern]
        if qualities:
            return max(qualities)
    return 0.0
