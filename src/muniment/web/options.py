"""The settings for HTTP: where the server listens, which addresses it has, how long it waits."""

import ipaddress
from typing import Annotated

import msgspec

Doc = msgspec.Meta

_HTTPS_PORT = 443


class WebOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an operator may set about listening and transport."""

    host: Annotated[str, Doc(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Doc(description="Port of the HTTPS listener.", ge=1, le=65_535)] = 8443
    http_port: Annotated[int, Doc(description="Port of a plain-HTTP listener; 0 opens none.", ge=0, le=65_535)] = 0
    base_address: Annotated[
        str,
        Doc(
            description="Beginning of every link, such as `https://files.example.org`; empty = made from `host` and "
            "`port`."
        ),
    ] = ""
    other_addresses: Annotated[
        tuple[str, ...],
        Doc(description="Further addresses of the server; an answer's links begin with the address that was asked."),
    ] = ()
    certificate_file: Annotated[
        str, Doc(description="TLS certificate chain (PEM); empty = a certificate that the data folder's own CA makes.")
    ] = ""
    key_file: Annotated[str, Doc(description="Private key (PEM) of the certificate in `certificate_file`.")] = ""
    certificate_names: Annotated[
        tuple[str, ...],
        Doc(description="Further names and addresses in the certificate that the data folder's CA makes."),
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...],
        Doc(
            description="Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed, and which may "
            "have more than half of the connections."
        ),
    ] = ()
    workers: Annotated[int, Doc(description="Worker processes that answer requests.", ge=1, le=64)] = 1
    max_connections: Annotated[
        int,
        Doc(
            description="Connections of one worker before it answers 503. One address has at most half.",
            ge=10,
            le=100_000,
        ),
    ] = 1000
    max_unsent_bytes: Annotated[
        int,
        Doc(
            description="Most bytes of long answers that one worker keeps in memory until their callers have read "
            "them. One caller may have a quarter. What does not fit gets 503.",
            ge=1_048_576,
        ),
    ] = 268_435_456
    keep_alive_seconds: Annotated[
        int, Doc(description="How long an idle connection is kept, in seconds.", ge=1, le=600)
    ] = 30
    header_seconds: Annotated[
        int, Doc(description="Time a request's headers may take to arrive, in seconds.", ge=1, le=600)
    ] = 20
    body_pause_seconds: Annotated[
        int, Doc(description="Longest pause between two pieces of a request's body, in seconds.", ge=1, le=600)
    ] = 30
    body_seconds: Annotated[
        int,
        Doc(
            description="Time that a form, or a body of JSON or XML, may take to arrive, in seconds.",
            ge=1,
            le=3600,
        ),
    ] = 60
    lowest_upload_rate: Annotated[
        int, Doc(description="Lowest rate at which content may come in, in bytes a second.", ge=1, le=1_000_000)
    ] = 1000
    lowest_download_rate: Annotated[
        int, Doc(description="Lowest rate at which an answer may go out, in bytes a second.", ge=1, le=1_000_000)
    ] = 1000
    slow_seconds: Annotated[
        int,
        Doc(
            description="Seconds that content or an answer may stay below its lowest rate before it is aborted.",
            ge=1,
            le=3600,
        ),
    ] = 30
    stop_seconds: Annotated[
        int,
        Doc(
            description="How long requests in progress may go on after the server was told to stop, in seconds.",
            ge=1,
            le=600,
        ),
    ] = 20


def base_address(options: WebOptions) -> str:
    """For ``other_addresses``, links begin with what was asked."""
    if options.base_address:
        return options.base_address.rstrip("/")
    host = "localhost" if options.host in ("", "0.0.0.0", "::") else options.host  # noqa: S104 - compared, not bound
    host = f"[{host}]" if ":" in host else host
    return f"https://{host}" if options.port == _HTTPS_PORT else f"https://{host}:{options.port}"


class TrustedProxies:
    """Knows the network addresses in the settings' ``trusted_proxies``."""

    def __init__(self, options: WebOptions) -> None:
        self._networks = tuple(ipaddress.ip_network(proxy, strict=False) for proxy in options.trusted_proxies)

    def has(self, address: str) -> bool:
        if not self._networks:
            return False
        try:
            ip_address = ipaddress.ip_address(address)
        except ValueError:
            return False
        # A listener at "::" sees a caller by IPv4 as "::ffff:192.0.2.1".
        ipv4_address = getattr(ip_address, "ipv4_mapped", None) or ip_address
        return any(ip_address in network or ipv4_address in network for network in self._networks)
