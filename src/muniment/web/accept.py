"""Which media type does the caller like best? (RFC 9110 12.5.1)."""

import re
from collections.abc import Sequence
from functools import lru_cache

from starlette.requests import Request

_LONGEST_HEADER = 4000
_QUALITY = re.compile(r"(0(\.[0-9]{0,3})?|1(\.0{0,3})?)")


def preferred(request: Request, offered: Sequence[str]) -> str | None:
    """Choose the media type that the caller likes best, of equals the one offered first.

    Without a header Accept it is the first one. None when the caller likes none of them.
    """
    header = _header(request)
    return _best(header, tuple(offered)) if header else offered[0]


def prefers_page(request: Request) -> bool:
    """Say whether the caller would rather read a page than JSON, as a browser does."""
    header = _header(request).lower()
    offered = ["application/json", "text/html"]
    if "text/html" in header and "json" not in header:
        # Who names pages, and JSON only with everything else, wants a page: "text/html, */*".
        offered.reverse()
    return header != "" and _best(header, tuple(offered)) == "text/html"


def _header(request: Request) -> str:
    return ",".join(request.headers.getlist("accept")).strip()[:_LONGEST_HEADER]


@lru_cache(maxsize=100)
def _best(accept: str, offered: tuple[str, ...]) -> str | None:
    """Choose what the header likes best; None when it likes nothing of it."""
    ranges = [_range(text) for text in accept.split(",")]
    best = max(offered, key=lambda kind: _liked(kind, ranges))
    return best if _liked(best, ranges) > 0 else None


def _range(text: str) -> tuple[str, float]:
    kind, *parameters = (part.strip().lower() for part in text.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            value = value.strip(" \t")
            return kind, float(value) if _QUALITY.fullmatch(value) else 0.0
    return kind, 1.0


def _liked(kind: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return the quality of the range that names the media type most closely."""
    kind = kind.lower()
    family, structure = kind.partition("/")[0], kind.rpartition("+")[2]
    for pattern in (kind, f"{family}/*+{structure}" if "+" in kind else kind, f"{family}/*", "*/*"):
        qualities = [quality for kind_range, quality in ranges if kind_range == pattern]
        if qualities:
            return max(qualities)
    return 0.0
