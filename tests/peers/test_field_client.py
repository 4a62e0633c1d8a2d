"""The client that the maker of the field's directory publishes calls ours, under the names of the field.

pyxecm (Apache-2.0) is not changed. Two addresses are set in its own configuration, because it asks for tokens and about
tokens at addresses that we do not have (docs/interface.md, Clients of the field). What its other modules need is not
installed, so the package is entered without its first module, which imports them all.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environments import environment, newest_python
from tests.scenes import Loop, Served, Site, World

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.campaign]

LOCK = Path(__file__).parent / "field_client.lock"

PROGRAM = """
import importlib.util, json, sys, types
package = types.ModuleType("pyxecm")
package.__path__ = importlib.util.find_spec("pyxecm").submodule_search_locations
sys.modules["pyxecm"] = package
from pyxecm import otds
otds.REQUEST_RETRY_DELAY = 0
asked = json.load(sys.stdin)
client = otds.OTDS("https", "127.0.0.1", asked["port"], client_id=asked["client"])
client.config()["oauthTokenUrl"] = client.base_url() + "/login"
client.config()["tokenInfoUrl"] = client.base_url() + "/v1/authentication/oauth/tokeninfo"
print(json.dumps([getattr(client, name)(*arguments) for name, *arguments in asked["calls"]]))
"""
"""Makes calls in their order, and prints what the client made of the answers."""


@pytest.fixture(scope="module")
def field(world: World, loop: Loop) -> Iterator[Served]:
    """The world under the names of the field, over TLS."""
    site = Site(world, "field", loop)
    running = Served(site)
    yield running
    running.close()
    site.close()


def called(field: Served, *calls: tuple[str, ...]) -> list[Any]:
    """Let the client make these calls; give what each returned."""
    python = environment(LOCK, "--no-deps", python=newest_python()) / "bin" / "python"
    asked = {"port": field.port, "client": field.site.world.client_id, "calls": calls}
    run = subprocess.run(
        [python, "-c", PROGRAM],
        input=json.dumps(asked),
        env=os.environ | {"REQUESTS_CA_BUNDLE": str(field.ca_file), "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    returned: list[Any] = json.loads(run.stdout)
    return returned


def test_it_gets_a_token_and_asks_whose_it_is(field: Served) -> None:
    world = field.site.world
    reader = world.reader
    token, found, refused = called(
        field,
        ("authenticate_user_token", reader.id, reader.password, world.scope.replace("+", " ")),
        ("get_access_token_info", world.resource_id),
        ("authenticate_user_token", reader.id, "wrong", world.scope.replace("+", " ")),
    )
    assert field.site.tokeninfo(token).status_code == 200
    assert found["user"]["id"] == reader.id
    assert found["data_map"]["OTDS_HAS_PASSWORD"] == "true"
    assert refused is None


def test_it_activates_a_resource_as_administrator(field: Served) -> None:
    world, site = field.site.world, field.site
    admin = world.admin(site.directory_names)
    resource_id = world.resource().id
    _, first, again = called(
        field,
        ("authenticate_user_token", admin.id, admin.password, site.administration_scope.replace("+", " ")),
        ("activate_resource", resource_id),
        ("activate_resource", resource_id),
    )
    assert first["secretKey"] == first["secret_key"]
    assert again is None, "a resource is activated once"
