"""docs/requests.md prints a request for every address with the answer that it gets: by a token, and by a password.

``MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_requests.py`` writes into the page what the server answers now.
"""

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import lxml.etree
import pytest
from starlette.routing import compile_path

from muniment.directory.endpoints import routes as directory_routes
from muniment.directory.options import DirectoryNames
from muniment.front import routes as front_routes
from muniment.repository.endpoints import routes as repository_routes
from muniment.repository.options import RepositoryNames
from muniment.web.addresses import AddressTable, CredentialKind
from tests.e2e.pages import BLOCK, COMMAND, DATA, PORT, SERVE, commands, execute, output
from tests.house.sources import ROOT
from tests.servers import free_port

PAGE = ROOT / "docs" / "requests.md"

BY_TOKEN = '-H "Authorization: Bearer $TOKEN"'
BY_PASSWORD = '-u "anna@staff:$PASSWORD"'

TABLES: tuple[AddressTable[Any], ...] = (
    front_routes.table(),
    directory_routes.table(DirectoryNames()),
    repository_routes.table(RepositoryNames()),
)
"""Every address there is, with its neutral names."""

HEADERS = ("allow", "content-disposition", "content-range", "content-type", "etag", "location", "muniment-position")
"""What the page shows of an answer's headers, besides those that tell a browser what it may do."""

LINES, COLUMNS = 24, 118
"""How much of a body the page shows."""

_VARIABLE = re.compile(r"\$([A-Z_]+)")
_ASSIGNED = re.compile(r"(?<![\w$])([A-Z_]+)=")
_SAME_EVERYWHERE = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"), "2026-01-02T03:04:05"),
    (re.compile(r"(?<=T03:04:05\.)\d+"), lambda found: "6" * len(found[0])),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), f"{0:08}-0000-4000-8000-{0:012}"),
    (re.compile(r"\b([0-9a-f]{2})[0-9a-f]{14}\b"), lambda found: f"{found[1]}{0:014}"),
    (re.compile(r'(?<=^etag: "[0-9]-)[0-9a-f]{16}', re.MULTILINE), f"{0:016}"),
    (re.compile(r"(?<=^muniment-position: )(?!\$)\S+", re.MULTILINE), "xxxxxxxx"),
    (re.compile(r'(?<="secret_key": ")[^"]+|(?<="secretKey": ")[^"]+|(?<=cursor=)[\w.%-]+'), "xxxxxxxx"),
    (re.compile(r"(?<=\.css\?)\w{12}|(?<=\.svg\?)\w{12}"), f"{0:012}"),
    (re.compile(r'(?<="seconds_behind": )[\d.]+'), "0.0"),
    (re.compile(r"(?<![:\d.])\d\.\d{3,}\b"), "1.234"),
)
"""What differs from one server to the next, and how the page shows it."""


class Printed(NamedTuple):
    """A command of the page with what the page prints below it."""

    command: str
    answer: str

    @property
    def operation(self) -> tuple[str, str]:
        """The method and the path that curl is told, without the base address and the query."""
        words = iter(shlex.split(self.command.replace("\\\n", "")))
        method, sent, url = "", False, ""
        for word in words:
            if word in {"-H", "-u", "-X", "-d", "-F", "--data-urlencode"}:
                argument = next(words)
                method = argument if word == "-X" else method
                sent |= word not in {"-H", "-u", "-X"}
            elif word.startswith(("$BASE", "$REPO")):
                url = word.replace("$REPO", "/rest/repositories/demo").removeprefix("$BASE").partition("?")[0]
        return method or ("POST" if sent else "GET"), url


def printed(page: str) -> list[Printed]:
    """Every command of the page, in order."""
    return [Printed(*found) for block in BLOCK.findall(page) for found in COMMAND.findall(block)]


def requests(page: str) -> list[Printed]:
    """Every request of the page, in order."""
    return [one for one in printed(page) if one.command.startswith("curl ")]


def operations() -> dict[tuple[str, str], CredentialKind]:
    """Every method and address of the tables, with the credentials that it expects."""
    return {
        (method, table.prefix + address.path): table.credentials_of(address, operation)
        for table in TABLES
        for address in table.addresses
        for method, operation in address.operations.items()
    }


def addressed(request: Printed) -> tuple[str, str]:
    """The method and the address that a request meets: of several the one without an open part, else the first."""
    method, path = request.operation
    for address in sorted({address for _, address in operations()}, key=lambda address: "{" in address):
        if compile_path(address)[0].match(path):
            return method, address
    raise AssertionError(f"there is no address {path}")


def naming(page: str) -> dict[int, str]:
    """Say in shell how the variables get their values that answers name first, by the number of the command."""
    known = set(_ASSIGNED.findall("\n".join(commands(page))))
    lines: dict[int, str] = {}
    for number, (_, answer) in enumerate(printed(page)):
        for line in answer.splitlines():
            for found in _VARIABLE.finditer(line):
                if found[1] not in known:
                    known.add(found[1])
                    before = _VARIABLE.split(line[: found.start()])[-1].lstrip().replace('": "', '":"')
                    pattern = rf"\Q{before}\E\K[\w.=-]+(?=" + (re.escape(line[found.end() :][:1]) or r"\s") + ")"
                    value = f"$(grep -aoP {shlex.quote(pattern)} {number}.out | head -n 1)"
                    lines[number] = lines.get(number, "") + f"{found[1]}={value}\n"
    every = " ".join(f'{name}="${name}"' for name in sorted(known) if not name.startswith(("MUNIMENT", "CURL")))
    lines[len(commands(page)) - 1] = f"env -i {every} env >variables"
    return lines


def answers(page: str, folder: Path) -> list[str]:
    """Run the page's commands; give what the page has to print below each."""
    port = free_port()
    execute(page, folder, port, naming(page))
    variables = dict(line.split("=", 1) for line in (folder / "variables").read_text().splitlines())
    assert all(variables.values()), f"no answer names them: {[name for name in variables if not variables[name]]}"
    found = []
    for number, command in enumerate(commands(page)):
        curl = command.startswith("curl ")
        text = (folder / f"{number}.out").read_bytes().decode() if curl else output(folder, number)
        text = text.partition("\n")[0] + "\n" if SERVE.search(command) else text
        text = text.replace(str(folder / "data"), DATA).replace(str(port), PORT)
        for name, value in sorted(variables.items(), key=lambda variable: -len(variable[1])):
            text = text.replace(value.replace(str(port), PORT), f"${name}")
        text = _answer(text) if curl else text
        for varying, same in _SAME_EVERYWHERE:
            text = varying.sub(same, text)
        found.append(text)
    return found


def _answer(received: str) -> str:
    """Give status, headers and body as the page shows them."""
    head, _, body = received.partition("\r\n\r\n")
    status, *headers = head.split("\r\n")
    shown = [status.strip()] + [
        line for line in headers if line.lower().startswith((*(f"{name}:" for name in HEADERS), "access-control-"))
    ]
    media_type = next((line.partition(": ")[2] for line in headers if line.lower().startswith("content-type:")), "")
    lines = _indented(media_type.partition(";")[0], body).rstrip("\n").split("\n") if body else []
    cut = [line if len(line) <= COLUMNS else f"{line[:COLUMNS]} ..." for line in lines[:LINES]]
    cut += ["..."] if len(lines) > LINES else []
    return "".join(f"{line.rstrip()}\n" for line in [*shown, *([""] if cut else []), *cut])


def _indented(media_type: str, body: str) -> str:
    if media_type.endswith("json"):
        return _json(json.loads(body), "")
    if media_type.endswith("xml") and media_type != "image/svg+xml":
        root = lxml.etree.fromstring(body.encode())
        lxml.etree.indent(root)
        return lxml.etree.tostring(root, encoding="unicode")
    return body


def _json(value: Any, margin: str) -> str:
    """Write JSON, in one line where that is short enough."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or (margin and len(margin) + len(line) <= COLUMNS):
        return line
    inner = f"{margin}  "
    if isinstance(value, list):
        members = [_json(member, inner) for member in value]
    else:
        members = [f"{json.dumps(key)}: {_json(member, inner)}" for key, member in value.items()]
    opening, closing = "[]" if isinstance(value, list) else "{}"
    return f"{opening}\n{inner}" + f",\n{inner}".join(members) + f"\n{margin}{closing}"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("way", [BY_TOKEN, BY_PASSWORD], ids=["token", "password"])
def test_every_request_gets_the_answer_that_is_printed(way: str, tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    found = answers(page.replace(BY_TOKEN, way), tmp_path)
    shown = [answer for _, answer in printed(page)]
    if os.environ.get("MUNIMENT_WRITE_DOCS") and way == BY_TOKEN:
        left = iter(found)
        written = BLOCK.sub(lambda block: COMMAND.sub(lambda one: f"$ {one[1]}\n{next(left)}", block[0]), page)
        PAGE.write_text(written, "utf-8")
    pairs = list(zip(commands(page), found, strict=True))
    assert pairs == list(zip(commands(page), shown, strict=True)), (
        "run MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_requests.py"
    )


def test_every_address_has_a_request() -> None:
    met = {addressed(request) for request in requests(PAGE.read_text("utf-8"))}
    assert met == operations().keys(), "print a request in docs/requests.md for each method of each address"


def test_a_request_shows_a_token_where_the_password_may_stand() -> None:
    """An address of the repository takes either, so that the test with the password asks each of them."""
    for request in requests(PAGE.read_text("utf-8")):
        takes_either = operations()[addressed(request)] is CredentialKind.CALLER
        assert (BY_TOKEN in request.command) == takes_either, request.command


def test_every_request_stands_below_its_address() -> None:
    page = PAGE.read_text("utf-8")
    for heading, text in re.findall(r"^### `(?:[A-Z]+ )?(\S+)`\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL):
        met = [addressed(request)[1] for request in requests(text)]
        assert heading in met, heading
