"""The client that the maker of the field's directory publishes administers ours, unchanged, by ticket and by token.

Each of its methods is called with valid input, and the table of what came of each is printed. ``M`` and ``S`` must
work, ``T`` is answered by a stub, ``O`` is not offered and refused with a JSON object; licences are an empty list.
"""

import base64
import json
import os
import secrets
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment.directory.entries import resources
from tests.environments import environment, newest_python
from tests.scenes import Loop, Served, Site, World

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.campaign]

HERE = Path(__file__).parent
METHODS = 62
"""How many of the client's methods send something, in the release for Python 3.12."""


@pytest.fixture(scope="module")
def field(world: World, loop: Loop) -> Iterator[Served]:
    """The world under the names of the field, over TLS."""
    site = Site(world, "field", loop)
    running = Served(site)
    yield running
    running.close()
    site.close()


def walk(field: Served, mode: str) -> list[dict[str, Any]]:
    """Walk through the client in a process of its own; give what came of each method."""
    site, world, names = field.site, field.site.world, field.site.directory_names
    admin = world.admin(names)
    ticket = site.http.post(
        f"{site.directory}/rest/authentication/credentials", json={"userName": admin.name, "password": admin.password}
    ).json()["ticket"]
    with world.directory_db.read() as cx:
        administration = resources.administration(cx).id
    asked = {
        "mode": mode,
        "port": field.port,
        "word": world.word(),
        "new_password": secrets.token_urlsafe(12),
        "identity": str(uuid.uuid4()),
        "secret": base64.b64encode(secrets.token_bytes(16)).decode(),
        "administrators": f"{names.administrators_group}@{names.administration_partition}",
        "clients": names.clients_partition,
        "resource": world.resource_id,
        "administration": administration,
        "ticket": ticket,
    }
    if mode == "ticket":
        asked |= {"username": admin.name, "password": admin.password}
    else:
        asked["oauth_token"] = site.ask_token(admin, scope=site.administration_scope).json()["access_token"]
    python = environment(HERE / "field_client.lock", "--no-deps", python=newest_python()) / "bin" / "python"
    run = subprocess.run(
        [python, HERE / "field_walk.py"],
        input=json.dumps(asked),
        env=os.environ | {"REQUESTS_CA_BUNDLE": str(field.ca_file), "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    results: list[dict[str, Any]] = json.loads(run.stdout)
    return results


def table(results: list[dict[str, Any]]) -> str:
    """Write what came of each method."""
    lines = []
    for each in results:
        word = {True: "as expected", False: "refused", None: "not in this release"}[each["ok"]]
        sent = ", ".join(f"{method} {path} {status}" for method, path, status, *_ in each["wire"])
        lines.append(f"{each['support']:>5} {each['method']:36} {word:19} {sent}")
    return "\n".join(lines)


@pytest.mark.parametrize("mode", ["ticket", "bearer"])
def test_every_method_does_what_its_caller_needs(field: Served, mode: str) -> None:
    results = walk(field, mode)
    print(table(results))
    failed = [each for each in results if each["support"] in "MST" and each["ok"] is False]
    assert not failed, json.dumps(failed, indent=1)
    for each in results:
        if each["support"] == "O":
            assert each["ok"] is not True, each
        for _, path, status, is_object, text in each["wire"]:
            assert is_object or status == 204, (each["method"], path, status, text)
    assert not any(status >= 500 for each in results for _, _, status, *_ in each["wire"])
    called = {each["method"] for each in results if each["ok"] is not None}
    missing = {each["method"] for each in results if each["ok"] is None}
    assert len(called | missing) >= METHODS, sorted(called)
