"""To which addresses may a browser be led back with an answer (RFC 6749 3.1.2, RFC 8252 7.3, RFC 9700 4.1)?"""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

_HOST = r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]"
_OF_THE_WEB = re.compile(rf"(https?://(?:{_HOST})(?::[0-9]{{1,5}})?)(?:[/?].*)?", re.IGNORECASE)
# What RFC 3986 lets stand in an address, except the mark of a fragment. A backslash is a slash to a browser.
_CHARACTERS = re.compile(r"[A-Za-z0-9:/?\[\]@!$&'()*+,;=._~%-]{1,4000}")
_OF_AN_APPLICATION = re.compile(r"([A-Za-z][A-Za-z0-9+-]*\.[A-Za-z0-9+.-]+:)/.*")
_LOOPBACK = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::[0-9]{1,5})?(?=/|\?|\Z)(.*)")


def origin(address: str) -> str | None:
    """What a page's policy calls the place (CSP 3, ``form-action``): an origin, or an application's own scheme.

    None if a browser may not be led there: the address is not whole, has a fragment or a user part, or a scheme that
    is neither of the web nor an application's own, which holds a dot (RFC 8252 7.1).
    """
    if not _CHARACTERS.fullmatch(address):
        return None
    found = _OF_THE_WEB.fullmatch(address) or _OF_AN_APPLICATION.fullmatch(address)
    return None if found is None else found[1]


def form_source(origin: str) -> str:
    """How a page's policy spells an origin. Browsers read none with an address of IPv6: its scheme stands for it."""
    return "http:" if origin.startswith("http://[") else "https:" if origin.startswith("https://[") else origin


def is_registered(address: str, registered: Iterable[str], *, public: bool) -> bool:
    """Addresses are equal as strings. A ``public`` client's may have any port where the registered one is on the
    loopback: a native application takes the port that is free.
    """
    if origin(address) is None:
        return False
    return any(address == each or (public and _but_for_port(address) == _but_for_port(each)) for each in registered)


def is_assured(address: str) -> bool:
    """Whether nobody but the host's owner can receive what is sent there: any program can take a loopback port, or the
    scheme of an application (RFC 8252 8.6).
    """
    return address.lower().startswith("https://")


def extended(address: str, parameters: Sequence[tuple[str, str]]) -> str:
    """The address with further parameters in its query."""
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}"


def _but_for_port(address: str) -> tuple[str, ...]:
    loopback = _LOOPBACK.fullmatch(address)
    return (address,) if loopback is None else loopback.groups()
