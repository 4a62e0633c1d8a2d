"""How does a spreadsheet show a number? By the code of its number format (ECMA-376 part 1, 18.8.31)."""

import datetime as dt
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

_DATES = ("m/d/yyyy", "d-mmm-yy", "d-mmm", "mmm-yy", "h:mm AM/PM", "h:mm:ss AM/PM", "h:mm", "h:mm:ss", "m/d/yyyy h:mm")
_MONEY = ("#,##0;(#,##0)",) * 2 + ("#,##0.00;(#,##0.00)",) * 2 + ("#,##0", "$#,##0", "#,##0.00", "$#,##0.00")
_BUILT_IN = {
    **dict(enumerate(("0", "0.00", "#,##0", "#,##0.00"), 1)),
    **dict(enumerate(("0%", "0.00%"), 9)),
    **dict(enumerate(_DATES, 14)),
    **dict(enumerate((*_MONEY, "mm:ss", "[h]:mm:ss", "mm:ss"), 37)),
}
"""No file defines these (ECMA-376 part 1, 18.8.30)."""

_LONGEST_CODE = 200
_TOKEN = re.compile(
    r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|(\[(?:h+|m+|s+)\])|(\[[^\]]*\])|_.|\*.|'
    r"(AM/PM|A/P|y+|m+|d+|h+|s+(?:\.0+)?)|([0#?.,%E/;@])|(General)|(.)",
    re.IGNORECASE | re.DOTALL,
)
_Token = tuple[str, str]


def shown(value: float, number: int, code: str, *, since_1904: bool = False) -> str:
    """Return an empty text if the cell shows the number itself, or the format is not known."""
    sections = _sections(code or _BUILT_IN.get(number, ""))
    section = sections[1] if value < 0 and len(sections) > 1 and sections[1] else sections[0]
    section = sections[2] if value == 0 and len(sections) > 2 and sections[2] else section
    kinds = {kind for kind, _ in section}
    try:
        if "date" in kinds:
            return _date(value + (1462 if since_1904 else 0), section)
        if "number" in kinds and not {("number", sign) for sign in "E/@"} & set(section):
            return _number(value, section, signed=value < 0 and section is sections[0])
    except (OverflowError, ValueError, InvalidOperation):
        pass
    return ""


def _sections(code: str) -> list[list[_Token]]:
    sections: list[list[_Token]] = [[]]
    for quoted, escaped, currency, elapsed, ignored, date, number, general, other in _TOKEN.findall(
        code[:_LONGEST_CODE]
    ):
        if number == ";":
            sections.append([])
        elif general:
            return [[]]
        elif date or elapsed:
            sections[-1].append(("date", (date or elapsed).lower()))
        elif number:
            sections[-1].append(("number", number.upper()))
        elif not ignored:
            sections[-1].append(("text", quoted or escaped or currency or other or " "))
    return sections


def _number(value: float, section: Sequence[_Token], *, signed: bool) -> str:
    signs = "".join(text if kind == "number" else "" for kind, text in section)
    whole, _, fraction = signs.partition(".")
    digits = re.sub(r"[^0#?]", "", whole)
    places = len(re.sub(r"[^0#?]", "", fraction))
    scale = re.search(r"(?<=[0#?])(,+)(?=[.%]|$)", signs)
    thousands = len(scale[1]) if scale else 0
    scaled = Decimal(str(abs(value))) * 100 ** signs.count("%") / 1000**thousands
    rounded = scaled.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    text = f"{rounded:{',' if re.search('[0#?],+[0#?]', whole) else ''}.{places}f}"
    least = fraction.count("0") + fraction.count("?")
    while "." in text and len(text.partition(".")[2]) > least and text.endswith("0"):
        text = text[:-1]
    integer, point, decimals = text.rstrip(".").partition(".")
    integer = integer.rjust(digits.count("0"), "0")
    return ("-" if signed else "") + _placed(integer, f"{point}{decimals}", section).strip()


def _placed(integer: str, decimals: str, section: Sequence[_Token]) -> str:
    holders = [place for place, token in enumerate(section) if token[0] == "number" and token[1] in "0#?"]
    point = next((place for place, token in enumerate(section) if token == ("number", ".")), len(section))
    whole = [place for place in holders if place < point]
    pieces = [text if kind == "text" or text == "%" else "" for kind, text in section]
    if not whole:
        whole = [min(point, len(section) - 1)]
    between = any(section[place][0] == "text" for place in range(whole[0], whole[-1]))
    if between and "," not in integer:
        for place in reversed(whole):
            pieces[place], integer = integer[-1:], integer[:-1]
        pieces[whole[0]] = integer + pieces[whole[0]]
    else:
        pieces[whole[-1]] = integer
    pieces[whole[-1]] += decimals
    return "".join(pieces)


def _date(value: float, section: Sequence[_Token]) -> str:
    # The first day of 1900 is 1, and the format counts a 29 February 1900 that there never was.
    moment = dt.datetime(1899, 12, 30) + dt.timedelta(seconds=round(value * 86_400))
    parts = [part for kind, part in section if kind == "date"]
    noon = any(part in {"am/pm", "a/p"} for part in parts)
    pieces: list[str] = []
    last = ""
    for place, (kind, part) in enumerate(section):
        if kind != "date":
            pieces.append(part)
            continue
        following = next((text for kind, text in section[place + 1 :] if kind == "date"), "")
        is_minute = part[0] == "m" and len(part) < 3 and (last[:1] == "h" or last[:2] == "[h" or following[:1] == "s")
        pieces.append(_minutes(moment, part) if is_minute else _part(moment, part, value, noon=noon))
        last = part
    return "".join(pieces).strip()


def _minutes(moment: dt.datetime, part: str) -> str:
    return f"{moment.minute:0{len(part)}}"


def _part(moment: dt.datetime, part: str, value: float, *, noon: bool) -> str:
    hour = (moment.hour % 12 or 12) if noon else moment.hour
    elapsed = {"[h": value * 24, "[m": value * 1440, "[s": value * 86_400}
    if part[:2] in elapsed:
        return str(int(elapsed[part[:2]] + 1e-6))
    names = {"m": ("%b", "%B"), "d": ("%a", "%A")}
    if part[0] in names and len(part) > 2 and part != "am/pm":
        return moment.strftime(names[part[0]][len(part) > 3])
    numbers = {"m": moment.month, "d": moment.day, "h": hour, "s": moment.second}
    if part[0] in numbers:
        return f"{numbers[part[0]]:0{min(len(part.partition('.')[0]), 2)}}"
    if part[0] == "y":
        return f"{moment.year:04}" if len(part) > 2 else f"{moment.year % 100:02}"
    return moment.strftime("%p")
