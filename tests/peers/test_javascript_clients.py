"""Standard clients of npm agree with the authorization server, unchanged, over TLS: every grant, and what is refused.

Their programs (`javascript/*.mjs`) say what each has to see. The person's browser is the stage's own.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from tests.environments import node_environment
from tests.peers.stage import EMAIL, Stage
from tests.servers import free_port

pytestmark = [
    pytest.mark.peers,
    pytest.mark.slow,
    pytest.mark.campaign,
    pytest.mark.only("sqlite"),
    pytest.mark.timeout(900),
]

HERE = Path(__file__).parent / "javascript"
NOT_FETCHED = 'Authorization server metadata does not include "client_id_metadata_document_supported"'
"""An administrator gives a client's document (docs/decisions/0118), so the metadata does not promise to fetch it."""


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder of Node.js and of the programs that are installed."""
    return node_environment(HERE)


def described(stage: Stage) -> dict[str, Any]:
    """What a program is told of the stage."""
    clients = ("public", "confidential", "by_rsa", "by_ec", "device", "exchanging")
    resources = ("opaque", "rs256", "es256", "repository")
    return {
        "issuer": stage.issuer,
        "person": stage.person.id,
        "email": EMAIL,
        "user_id_type": stage.site.directory_names.user_id_type,
        **{name: getattr(stage, name)._asdict() for name in (*clients, *resources)},
    }


@contextmanager
def node(
    stage: Stage, programs: Path, folder: Path, *command: str
) -> Iterator[tuple[IO[str], Callable[[object], None]]]:
    """Run Node.js in a folder, where it finds what is installed, to its good end.

    Give the lines that it prints, and a function that sends it a line of JSON.
    """
    (folder / "node_modules").symlink_to(programs.parent)
    variables = os.environ | {"NODE_EXTRA_CA_CERTS": str(stage.ca_file), "NO_PROXY": "127.0.0.1"}
    with (folder / "errors").open("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [str(programs / "node"), *command],
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        typed, printed = process.stdin, process.stdout
        assert typed
        assert printed

        def answer(value: object) -> None:
            typed.write(json.dumps(value) + "\n")
            typed.flush()

        try:
            yield printed, answer
            code = process.wait(60)
        finally:
            process.kill()
            process.wait()
            typed.close()
            printed.close()
        errors.seek(0)
        assert code == 0, errors.read()[-4000:]


@pytest.mark.parametrize("program", ["oauth4webapi", "openid-client"])
def test_a_client_gets_all_that_it_asks_for(stage: Stage, programs: Path, tmp_path: Path, program: str) -> None:
    for file in HERE.glob("*.mjs"):
        shutil.copy(file, tmp_path)
    named = stage.client(f"https://app.example/{program}.json", secret=True)
    done, browser = [], stage.browser()
    with ExitStack() as later, node(stage, programs, tmp_path, f"{program}.mjs") as (asked, answer):
        answer(described(stage) | {"document": named._asdict()})
        for line in asked:
            match json.loads(line):
                case {"allow": address, "button": button}:
                    answer(browser.allow(address, button=button))
                case {"connect": address}:
                    browser.connect_device(address)
                    answer(None)
                case {"later": seconds}:
                    later.close()
                    later.enter_context(stage.world.clock.shift(seconds))
                    answer(None)
                case {"done": step}:
                    done.append(step)
    browser.close()
    assert done


def test_the_conformance_suite_of_mcp_finds_nothing_wrong(stage: Stage, programs: Path, tmp_path: Path) -> None:
    """`conformance authorization` of the Model Context Protocol, with a client for its code grant."""
    port = free_port()
    suite = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
    asked = ("--client-id", stage.public.id, "--resource", stage.repository.address, "--port", str(port))
    command = (str(suite), "authorization", "--url", stage.issuer, *asked, "--output-dir", "results")
    with node(stage, programs, tmp_path, *command) as (printed, _):
        for line in printed:
            if line.startswith(f"{stage.issuer}/oauth2/auth?"):
                browser = stage.browser()
                httpx.get(browser.allow(line.strip()), trust_env=False, timeout=30).raise_for_status()
                browser.close()
        checks = [
            (check["id"], check["status"], check.get("errorMessage"))
            for file in sorted(tmp_path.glob("results/*/checks.json"))
            for check in json.loads(file.read_text("utf-8"))
        ]
        assert checks == [
            ("authorization-code-grant", "SUCCESS", None),
            ("authorization-server-metadata", "SUCCESS", None),
            ("authorization-server-metadata-cimd", "WARNING", NOT_FETCHED),
        ]
