"""A served data folder with people in it, and a signed-in user who does each thing that can be done, once."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import httpx

from muniment import certificates, clock, db, schema
from muniment.installation import Installation
from tests.clock import Clock
from tests.e2e.processes import Server
from tests.scenes import World
from tests.servers import free_port

REPOSITORY = f"/rest/repositories/{World.repository}"
LOGIN = "/dirws/login"
OAUTH = "/dirws/v1/authentication/oauth"
PATIENCE = 60
"""Seconds that anything may take on a slow machine."""


class ServedHouse:
    """A world in a data folder, and a server of it in processes of its own."""

    def __init__(self, root: Path, directory_url: str = "", repository_url: str = "") -> None:
        self.data = root / "data"
        self.data.mkdir(mode=0o700)
        databases = self.data / "databases"
        databases.mkdir()
        directory_url = directory_url or f"sqlite:///{databases / 'directory.db'}"
        repository_url = repository_url or f"sqlite:///{databases / 'repository.db'}"
        self.urls = (directory_url, repository_url)
        for half, url in zip(get_args(db.Half), self.urls, strict=True):
            database = db.Database(url)
            schema.migrate(database, half)
            database.close()
        self.world = World(self.data, directory_url, repository_url, Clock(clock.now()))
        self.world.close()
        self.installation: Installation = self.world.installation
        certificates.ensure(self.installation.tls, ["127.0.0.1"], clock.now())
        (self.data / "muniment.toml").write_text(
            f'directory_database = "{directory_url}"\nrepository_database = "{repository_url}"\n'
        )
        self.server: Server | None = None

    @contextmanager
    def served(self, *arguments: str, within: Sequence[str] = (), wait: bool = True) -> Iterator[Server]:
        """Serve the folder for the length of the block."""
        self.server = Server(self.data, free_port(), *arguments, within=within)
        try:
            if wait:
                self.server.wait_ready(PATIENCE)
            yield self.server
        finally:
            self.server.kill()


class Visitor:
    """Somebody who is signed in: he does one thing of each kind, and keeps what was answered with success."""

    def __init__(self, server: Server, world: World) -> None:
        self.http = server.client()
        self.world = world
        self.kept: dict[str, bytes] = {}
        issued = self.sign_in().json()
        self.access, self.refresh_token = issued["access_token"], issued["refresh_token"]
        self.http.headers["Authorization"] = f"Bearer {self.access}"

    def move(self, server: Server) -> None:
        """Go on with another server of the same house, with the same token."""
        self.http.close()
        self.http = server.client()
        self.http.headers["Authorization"] = f"Bearer {self.access}"

    def close(self) -> None:
        """Hang up."""
        self.http.close()

    def sign_in(self) -> httpx.Response:
        """Ask for tokens by the password grant."""
        who = self.world.writer
        form = {"grant_type": "password", "client_id": self.world.client_id, "scope": self.world.scope}
        return self.http.post(
            LOGIN, data=form | {"username": who.id, "password": who.password}, headers={"Authorization": ""}
        )

    def refresh(self) -> httpx.Response:
        """Ask for a further access token."""
        form = {"grant_type": "refresh_token", "client_id": self.world.client_id, "refresh_token": self.refresh_token}
        return self.http.post(LOGIN, data=form, headers={"Authorization": ""})

    def revoke_another(self, token: str) -> httpx.Response:
        """End another sign-in's grant."""
        return self.http.delete(f"{OAUTH}/{token}")

    def tokeninfo(self, token: str = "") -> httpx.Response:
        """Verify a token."""
        body = {"token": token or self.access, "resource_id": self.world.resource_id}
        return self.http.post(f"{OAUTH}/tokeninfo", json=body)

    def create(self, name: str, content: bytes | None = None) -> httpx.Response:
        """Make a document, with content if there is any."""
        address, plain = f"{REPOSITORY}/objects", {"Content-Type": "text/plain"}
        if content is None:
            answer = self.http.post(address, json={"properties": {"object_name": name}})
        else:
            answer = self.http.post(address, params={"object-name": name}, content=content, headers=plain)
        if answer.status_code == 201:
            self.kept[answer.json()["properties"]["r_object_id"]] = content or b""
        return answer

    def rename(self, object_id: str, name: str) -> httpx.Response:
        """Change a document's name."""
        return self.http.post(f"{REPOSITORY}/objects/{object_id}", json={"properties": {"object_name": name}})

    def replace(self, object_id: str, content: bytes) -> httpx.Response:
        """Replace a document's content."""
        address, plain = f"{REPOSITORY}/objects/{object_id}/contents", {"Content-Type": "text/plain"}
        answer = self.http.post(address, content=content, headers=plain)
        if answer.status_code == 201:
            self.kept[object_id] = content
        return answer

    def share(self, object_id: str) -> httpx.Response:
        """Put a document under another ACL."""
        return self.http.put(f"{REPOSITORY}/objects/{object_id}/permission-set", json={"acl-name": "public"})

    def delete(self, object_id: str) -> httpx.Response:
        """Delete a document."""
        answer = self.http.delete(f"{REPOSITORY}/objects/{object_id}")
        if answer.status_code == 204:
            self.kept.pop(object_id, None)
        return answer

    def media(self, object_id: str) -> httpx.Response:
        """Download a document's content."""
        return self.http.get(f"{REPOSITORY}/objects/{object_id}/content-media")

    def search(self, words: str) -> httpx.Response:
        """Search by keywords."""
        parameters = {"q": words, "include-total": "true", "items-per-page": "1000"}
        return self.http.get(f"{REPOSITORY}/search", params=parameters, headers={"Accept": "application/json"})

    def found(self, words: str) -> list[str]:
        """Name what a search finds; nothing while it is refused."""
        answer = self.search(words)
        return sorted(entry["id"] for entry in answer.json()["entries"]) if answer.status_code == 200 else []

    def holds(self) -> None:
        """Everything that was answered with success is there, byte for byte."""
        for object_id, content in self.kept.items():
            answer = self.media(object_id)
            assert (answer.content if answer.status_code == 200 else b"") == content, (object_id, answer.status_code)
            assert self.http.get(f"{REPOSITORY}/objects/{object_id}").status_code == 200


def until(happens: Callable[[], Any], otherwise: str, seconds: float = PATIENCE) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)
