"""What holds for every unit test: no network."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

_REACHING = ("connect", "connect_ex", "bind", "sendto")


class NetworkUsed(AssertionError):
    """A unit test used the network: what needs a real socket belongs in tests/contract or tests/e2e."""


@pytest.fixture(autouse=True)
def no_network() -> Iterator[None]:
    """Let no socket of the internet families reach or be reached.

    Sockets of this process alone, as an event loop has, are allowed. libpq has its own way to PostgreSQL.
    """

    def refusing(reach: Any) -> Any:
        def refuse(endpoint: socket.socket, *about: Any) -> Any:
            if endpoint.family in {socket.AF_INET, socket.AF_INET6}:
                raise NetworkUsed(f"{reach.__name__} {about}: what needs the network is no unit test")
            return reach(endpoint, *about)

        return refuse

    with pytest.MonkeyPatch.context() as patch:
        for name in _REACHING:
            patch.setattr(socket.socket, name, refusing(getattr(socket.socket, name)), raising=False)
        patch.setattr(socket, "getaddrinfo", _no_names)
        yield


def _no_names(host: Any, *about: Any, **more: Any) -> Any:
    raise NetworkUsed(f"{host}: what asks for the address of a name is no unit test")
