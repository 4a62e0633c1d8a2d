"""Which time zone does a text name?

Source: the parameter ``timezone`` of other content repositories; docs/aql.md, "Facets". Rules and daylight saving are
those of the IANA time zone database.
"""

import re
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, timedelta, timezone, tzinfo
from functools import cache, lru_cache

from muniment.repository.refusals import WrongValue

_OFFSET = re.compile(r"(?:gmt|utc)?\s*([+-]?)\s*([0-9]{1,2})(?::?([0-5][0-9]))?")
_LONGEST = 64
_NO_REGIONS = frozenset({"factory", "localtime", "posixrules"})
_ABBREVIATIONS: Mapping[str, str] = {
    **dict.fromkeys(("pst", "pdt"), "America/Los_Angeles"),
    **dict.fromkeys(("mdt",), "America/Denver"),
    **dict.fromkeys(("cst", "cdt"), "America/Chicago"),
    **dict.fromkeys(("edt",), "America/New_York"),
    **dict.fromkeys(("akst", "akdt"), "America/Anchorage"),
    **dict.fromkeys(("bst",), "Europe/London"),
    **dict.fromkeys(("cest",), "Europe/Berlin"),
    **dict.fromkeys(("eest",), "Europe/Athens"),
    **dict.fromkeys(("msk",), "Europe/Moscow"),
    **dict.fromkeys(("ist",), "Asia/Kolkata"),
    **dict.fromkeys(("jst",), "Asia/Tokyo"),
    **dict.fromkeys(("aest", "aedt"), "Australia/Sydney"),
    **dict.fromkeys(("nzst", "nzdt"), "Pacific/Auckland"),
    **dict.fromkeys(("gmt", "z"), "UTC"),
}


@lru_cache(maxsize=256)
def read(text: str) -> tzinfo:
    """Read UTC from an empty text.

    Raises WrongValue.
    """
    folded_text = text.strip().lower()
    if folded_text in ("", "utc"):
        return UTC
    if len(folded_text) <= _LONGEST:
        region = _regions().get(_ABBREVIATIONS.get(folded_text, folded_text).lower())
        if region is not None:
            return zoneinfo.ZoneInfo(region)
        # A plus that an address does not encode arrives as a blank.
        if (offset_match := _OFFSET.fullmatch(folded_text)) and int(offset_match[2]) <= 14:
            offset = timedelta(hours=int(offset_match[2]), minutes=int(offset_match[3] or 0))
            return timezone(-offset if offset_match[1] == "-" else offset)
    raise WrongValue(f"There is no time zone {text[:_LONGEST]!r}: name a region, or an offset such as GMT-8:00.")


@cache
def _regions() -> Mapping[str, str]:
    return {name.lower(): name for name in zoneinfo.available_timezones() if name.lower() not in _NO_REGIONS}
