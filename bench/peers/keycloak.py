"""Keycloak, on a PostgreSQL of ours, started as for production but over plain HTTP on loopback."""

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import httpx

from bench.peers import Missing, installed
from bench.peers.tokens import TokenServer, basic
from bench.processes import Program, away, free_port, run, started

VERSION = "26.7.3"

RETURN = "https://app.example.org/callback"
"""Where its client is sent back to."""

_ALICE = {"username": "alice", "password": "Correct-Horse-9"}

_REALM = {
    "realm": "bench",
    "enabled": True,
    "sslRequired": "none",
    "accessTokenLifespan": 7200,
    "ssoSessionIdleTimeout": 36000,
    "ssoSessionMaxLifespan": 36000,
    "clients": [
        {
            "clientId": "bench",
            "secret": "bench-secret",
            "publicClient": False,
            "serviceAccountsEnabled": True,
            "directAccessGrantsEnabled": True,
            "standardFlowEnabled": True,
            "redirectUris": [RETURN],
            "attributes": {"pkce.code.challenge.method": "S256"},
            # Without its own name among the audiences a client is told only that the token is not active.
            "protocolMappers": [
                {
                    "name": "aud",
                    "protocol": "openid-connect",
                    "protocolMapper": "oidc-audience-mapper",
                    "config": {
                        "included.client.audience": "bench",
                        "access.token.claim": "true",
                        "introspection.token.claim": "true",
                    },
                }
            ],
        }
    ],
    "users": [
        {
            "username": _ALICE["username"],
            "enabled": True,
            "email": "alice@example.com",
            "emailVerified": True,
            "firstName": "A",
            "lastName": "B",
            "credentials": [{"type": "password", "value": _ALICE["password"], "temporary": False}],
        }
    ],
}


@contextmanager
def serving(
    scratch: Path, database: tuple[str, int, str], postgres: Program, *, new: bool = True
) -> Iterator[TokenServer]:
    """Install and start it on the database (host, port, name), with a realm, a client and a user.

    Without ``new`` the database holds them from an earlier start. Raises Missing.
    """
    for tool in ("mvn", "java"):
        if away(tool):
            raise Missing(f"Keycloak needs {tool}")
    home = installed(f"keycloak-{VERSION}", _install) / f"keycloak-{VERSION}"
    port, management = free_port(), free_port()
    base = f"http://127.0.0.1:{port}"
    server, database_port, name = database
    environment = {
        "KC_DB_URL": f"jdbc:postgresql://{server}:{database_port}/{name}",
        "KC_DB_USERNAME": "postgres",
        "KC_DB_PASSWORD": "x",
        "KC_BOOTSTRAP_ADMIN_USERNAME": "admin",
        "KC_BOOTSTRAP_ADMIN_PASSWORD": "admin",
    }
    command: list[str | Path] = [
        home / "bin" / "kc.sh",
        "start",
        "--optimized",
        "--http-enabled=true",
        "--http-host=127.0.0.1",
        f"--http-port={port}",
        f"--http-management-port={management}",
        "--hostname-strict=false",
        "--cache=local",
    ]
    ready = f"{base}/realms/master"
    with started(command, scratch / "keycloak.log", ready=ready, within=300, environment=environment) as program:
        if new:
            _fill(base)
        realm = f"{base}/realms/bench/protocol/openid-connect"
        yield TokenServer(
            f"Keycloak {VERSION}",
            "PostgreSQL, default settings, RS256 tokens",
            [program, postgres],
            f"{realm}/token",
            f"{realm}/token/introspect",
            basic("bench", "bench-secret"),
            {"grant_type": "password", **_ALICE},
            authorization_url=f"{realm}/auth",
        )


def signed_in_browser(address: str) -> tuple[str, str]:
    """Sign alice in at the form to which a browser is led that asks for an authorization at this address: the header
    with its cookies, which has every one as if the connection were TLS.
    """
    cookies: dict[str, str] = {}
    with httpx.Client(timeout=60) as http:
        page = http.get(address)
        cookies |= _cookies(page)
        form = re.search(r'action="([^"]+)"', page.raise_for_status().text)
        if form is None:
            raise RuntimeError("Keycloak shows no form to sign in")
        header = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        cookies |= _cookies(http.post(unescape(form[1]), data=_ALICE, headers=header))
    return "Cookie", "; ".join(f"{name}={value}" for name, value in cookies.items() if value)


def _cookies(answer: httpx.Response) -> dict[str, str]:
    pairs = [each.partition(";")[0].partition("=") for each in answer.headers.get_list("set-cookie")]
    return {name: value for name, _, value in pairs}


def _fill(base: str) -> None:
    with httpx.Client(timeout=60) as http:
        form = {"grant_type": "password", "client_id": "admin-cli", "username": "admin", "password": "admin"}
        token = http.post(f"{base}/realms/master/protocol/openid-connect/token", data=form).raise_for_status().json()
        headers = {"Authorization": f"Bearer {token['access_token']}"}
        http.post(f"{base}/admin/realms", json=_REALM, headers=headers).raise_for_status()


def _install(folder: Path) -> None:
    artifact = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
    mvn = ["mvn", "-B", "-q"]
    run([*mvn, "dependency:get", f"-Dartifact={artifact}", "-Dtransitive=false"])
    run([*mvn, "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"])
    packed = folder / f"keycloak-quarkus-dist-{VERSION}.zip"
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(folder)
    packed.unlink()
    command = folder / f"keycloak-{VERSION}" / "bin" / "kc.sh"
    command.chmod(0o755)
    run([command, "build", "--db=postgres", "--health-enabled=true"])
