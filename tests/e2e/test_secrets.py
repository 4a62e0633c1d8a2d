"""After the walk no token, password or secret is in the logs or in the data folder, however it may be spelled."""

import base64
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from muniment import clock, db, schema
from muniment.db import Database
from tests.clock import Clock
from tests.scenes import World
from tests.servers import free_port


class Running:
    """A server process on a data folder of its own."""

    def __init__(self, world: World, log: Path) -> None:
        self.world = world
        self.log = log
        port = free_port()
        self.base = f"https://127.0.0.1:{port}"
        given = ["log_level=debug", "log_format=json", f"web.port={port}", "directory.hash_memory_kib=8192"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "muniment", "--data", str(world.folder)]
            + [word for setting in given for word in ("--set", setting)]
            + ["serve"],
            stdout=log.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")},
        )
        self._ready()
        self.http = httpx.Client(
            base_url=self.base,
            verify=ssl.create_default_context(cafile=str(world.folder / "tls" / "ca.pem")),
            timeout=30,
        )

    def _ready(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self.log.read_text()
            try:
                if httpx.get(f"{self.base}/health/ready", verify=False).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise TimeoutError(self.log.read_text())

    def stop(self) -> None:
        """Stop gracefully, and by force if that takes too long."""
        self.http.close()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(40)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(10)
                raise


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A world of its own, served by a process of its own."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    halves: tuple[db.Half, ...] = ("directory", "repository")
    for half in halves:
        database = Database(f"sqlite:///{folder}/{half}.db")
        schema.migrate(database, half)
        database.close()
    world = World(folder, f"sqlite:///{folder}/directory.db", f"sqlite:///{folder}/repository.db", Clock(clock.now()))
    world.close()
    started = Running(world, tmp_path / "log")
    yield started
    started.stop()


def test_after_the_walk_no_secret_is_kept_anywhere(running: Running) -> None:
    """failures A29: in no log, no database, no file."""
    world = running.world
    secrets = walk(running)
    assert world.folder.stat().st_mode & 0o077 == 0, "the data folder is its owner's alone"
    assert [key for key in world.folder.rglob("*key*.pem") if key.stat().st_mode & 0o077] == []
    running.stop()
    log = running.log.read_bytes()
    assert b"/dirws/login" in log, "the log holds the requests"
    events = [json.loads(line) for line in (world.folder / "events.log").read_bytes().splitlines()]
    assert {"sign-in", "revocation", "activation"} <= {event["event"] for event in events}
    places = {running.log: log}
    for file in world.folder.rglob("*"):
        if file.is_file() and file.name != "demo.json":
            places[file] = file.read_bytes()
    assert len(places) > 5
    found = [
        f"{what} in {place.name}"
        for what, secret in secrets.items()
        for spelled in spellings(secret)
        for place, content in places.items()
        if spelled in content
    ]
    assert not found


def walk(running: Running) -> dict[str, str]:
    """Do what a caller, an administrator and a browser do, well and badly; give every secret that was used."""
    http, world = running.http, running.world
    login, oauth = "/dirws/login", "/dirws/v1/authentication/oauth"

    def ask(person: str, password: str, scope: str = world.scope, **more: str) -> httpx.Response:
        form = {"grant_type": "password", "client_id": world.client_id, "username": person, "password": password}
        return http.post(login, data=form | {"scope": scope} | more)

    secrets = {"the reader's password": world.reader.password, "the writer's password": world.writer.password}
    issued = ask(world.writer.id, world.writer.password).json()
    secrets["access token"], secrets["refresh token"] = issued["access_token"], issued["refresh_token"]
    refresh = {"grant_type": "refresh_token", "client_id": world.client_id, "refresh_token": issued["refresh_token"]}
    secrets["refreshed access token"] = http.post(login, data=refresh).json()["access_token"]
    secrets["a wrong password"] = "wrong-pAssword-9241"
    assert ask(world.reader.id, secrets["a wrong password"]).status_code == 400
    assert ask(secrets["the writer's password"], "typed into the wrong field").status_code == 400
    assert ask(world.reader.id, "x", client_id="a-secret-for-a-client_id").status_code == 401
    secrets["a secret in place of the client_id"] = "a-secret-for-a-client_id"
    secrets["the client's secret"] = world.confidential_secret
    confidential = {"client_id": world.confidential_id, "client_secret": world.confidential_secret}
    secrets["a confidential client's token"] = ask(world.reader.id, world.reader.password, **confidential).json()[
        "access_token"
    ]
    assert http.post(login, params={"password": "in-the-query-55123"}, data={}).status_code == 400
    secrets["a password in the query"] = "in-the-query-55123"

    info = {"token": issued["access_token"], "resource_id": world.resource_id}
    assert http.post(f"{oauth}/tokeninfo", json=info).status_code == 200
    bearer = {"Authorization": f"Bearer {issued['access_token']}"}
    repository = f"/rest/repositories/{world.repository}"
    made = http.post(f"{repository}/objects", json={"properties": {"object_name": "walk"}}, headers=bearer)
    assert made.status_code == 201, made.text
    assert http.get(f"{repository}/search?q=walk", headers=bearer).status_code == 200

    admin = world.admin(world.names)
    secrets["the administrator's password"] = admin.password
    scope = "resource:" + world.names.administration_resource.replace(" ", "+")
    token = ask(admin.id, admin.password, scope).json()["access_token"]
    secrets["the administrator's token"] = token
    activated = http.post(
        f"/dirws/rest/resources/{world.idle_resource_id}/activate", headers={"Authorization": f"Bearer {token}"}
    )
    assert activated.status_code == 200, activated.text
    secrets["the resource's secret key"] = activated.json()["secret_key"]

    page = http.get(login, headers={"Accept": "text/html"})
    fields = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', page.text))
    assert "csrf" in fields
    secrets["the form's CSRF token"] = fields["csrf"]
    fields |= {"username": admin.id, "password": admin.password}
    signed_in = http.post(login, data=fields, headers={"Accept": "text/html"})
    assert signed_in.status_code in {200, 303}, signed_in.text
    secrets["the browser's ticket"] = http.cookies["__Host-muniment_ticket"]

    assert http.delete(f"{oauth}/{issued['access_token']}").status_code == 204
    assert http.delete(f"{oauth}/garbage-{issued['access_token']}").status_code == 401
    return secrets


def spellings(secret: str) -> set[bytes]:
    """The secret as it is, as addresses and forms write it, as base64, as hexadecimal."""
    plain = secret.encode()
    quoted = quote(secret, safe="").encode()
    return {plain, quoted, base64.b64encode(plain).rstrip(b"="), plain.hex().encode()}
