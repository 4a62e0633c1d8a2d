"""Who has the connections of this worker? No address has more than its share; who keeps the worker waiting goes first.

It *waits for* a connection during its TLS handshake and until a request's head is there. One is *idle* between two
requests, and *at work* otherwise (docs/decisions/0089).
"""

import ipaddress
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import structlog

from muniment.web.options import TrustedProxies, WebOptions

log = structlog.get_logger("muniment.server.guests")

_SHARE = 2

_IPV6_NETWORK = 64
"""So many bits of an IPv6 address tell callers apart (RFC 6177)."""


@dataclass(eq=False, slots=True)
class Guest:
    """``sharing`` names those who have a share together; empty for a trusted proxy.

    ``is_one_too_many`` without a place: its requests are refused.
    """

    client: str
    sharing: str
    is_one_too_many: bool = False
    leave: Callable[[], object] = lambda: None


class Guests:
    """For its event loop only.

    A further connection from an address that has its share takes the place of another from there, in a full worker that
    of any other, but never of one at work. A trusted proxy has no share. One that finds no place ends another that
    found none and has not been refused yet.
    """

    def __init__(self, options: WebOptions) -> None:
        self._most = options.max_connections
        self._share = options.max_connections // _SHARE
        self._proxies = TrustedProxies(options)
        self._sharing = lru_cache(maxsize=1024)(self._find_sharing)
        self._counts: Counter[str] = Counter()
        self._present = set[Guest]()
        self._placed = 0
        self._waited_for: dict[Guest, None] = {}
        self._idle: dict[Guest, None] = {}
        self._without_place: dict[Guest, None] = {}

    def let_in(self, client: str) -> Guest:
        guest = Guest(client, self._sharing(client))
        if guest.sharing and self._counts[guest.sharing] >= self._share:
            guest.is_one_too_many = not self._make_room(guest.sharing)
        elif self._placed + 1 >= self._most:
            guest.is_one_too_many = not self._make_room()
        self._present.add(guest)
        if not guest.is_one_too_many:
            self._placed += 1
            self._counts[guest.sharing] += 1
        self.wait_for(guest)
        return guest

    def wait_for(self, guest: Guest) -> None:
        self._idle.pop(guest, None)
        if guest in self._present:
            (self._without_place if guest.is_one_too_many else self._waited_for).setdefault(guest)

    def begin(self, guest: Guest) -> None:
        for several in (self._waited_for, self._idle, self._without_place):
            several.pop(guest, None)

    def rest(self, guest: Guest) -> None:
        if guest in self._present and guest not in self._waited_for and not guest.is_one_too_many:
            self._idle[guest] = None

    def left(self, guest: Guest) -> None:
        """A second call changes nothing."""
        if guest in self._present:
            self._present.remove(guest)
            self.begin(guest)
            if guest.is_one_too_many:
                return
            self._placed -= 1
            self._counts[guest.sharing] -= 1
            if not self._counts[guest.sharing]:
                del self._counts[guest.sharing]

    def _make_room(self, sharing: str = "") -> bool:
        for other in itertools.chain(self._waited_for, self._idle, self._without_place):
            if sharing in ("", other.sharing):
                log.info("a connection made room for another", client=other.client, idle=other in self._idle)
                self.begin(other)
                other.leave()
                return not other.is_one_too_many
        return False

    def _find_sharing(self, client: str) -> str:
        if self._proxies.has(client):
            return ""
        address = ipaddress.ip_address(client)
        if isinstance(address, ipaddress.IPv4Address):
            return client
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), _IPV6_NETWORK), strict=False))
