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
_CUT = re.compile(r"\$[A-Z_]*\Z")
_SETTINGS = ("MUNIMENT", "CURL")
_ASSIGNED = re.compile(r"(?<![\w$])([A-Z_]+)=")
_SAME_EVERYWHERE = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"), "2026-01-02T03:04:05"),
    (re.compile(r"(?<=T03:04:05\.)\d+"), lambda found: "6" * len(found[0])),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), f"{0:08}-0000-4000-8000-{0:012}"),
    (re.compile(r"\b([0-9a-f]{2})[0-9a-f]{14}\b"), lambda found: f"{found[1]}{0:014}"),
    (re.compile(r'(?<=^etag: "[0-9]-)[0-9a-f]{16}', re.MULTILINE), f"{0:016}"),
    (re.compile(r"(?<=^muniment-position: )(?!\$)\S+", re.MULTILINE), "xxxxxxxx"),
    (
        re.compile(r'(?<="secret_key": ")[^"]+|(?<="secretKey": ")[^"]+|(?<=cursor=)[\w.%-]+|(?<="csrf" value=")[^"]+'),
        "xxxxxxxx",
    ),
    (re.compile(r"(?<=\.css\?)\w{12}|(?<=\.svg\?)\w{12}"), f"{0:012}"),
    (re.compile(r'(?<="seconds_behind": )[\d.]+'), "0.0"),
    (re.compile(r'(?<="r_index_status": ")(?:waiting|done)'), "done"),
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


def by_password(page: str) -> str:
    """Write the requests of a page that show the token as a page of their own, on which they show the password."""
    lines = [f"$ {one.command}\n{one.answer}" for one in requests(page) if BY_TOKEN in one.command]
    return f"```console\n{''.join(lines)}```\n".replace(BY_TOKEN, BY_PASSWORD)


def naming(page: str, assigned: set[str], start: int, way: str) -> dict[int, str]:
    """Say in shell how the variables get their values that answers name first, by the number of the command.

    After the last command all variables are written into the file that is named for the ``way``.
    """
    known, lines = set(assigned), dict[int, str]()
    for number, (_, answer) in enumerate(printed(page), start):
        for line in answer.splitlines():
            for found in _VARIABLE.finditer(line):
                if found[1] not in known:
                    known.add(found[1])
                    before = _VARIABLE.split(line[: found.start()])[-1].lstrip().replace('": "', '":"')
                    pattern = rf"\Q{before}\E\K[\w.=-]+(?=" + (re.escape(line[found.end() :][:1]) or r"\s") + ")"
                    value = f"$(grep -aoP {shlex.quote(pattern)} {number}.out | head -n 1)"
                    lines[number] = lines.get(number, "") + f"{found[1]}={value}\n"
    every = " ".join(f'{name}="${name}"' for name in sorted(known))
    last = start + len(commands(page)) - 1
    lines[last] = lines.get(last, "") + f"env -i {every} env >{way}"
    return lines


class Asked:
    """The page's requests, asked of one server: all of them, then those with the token again with the password.

    The page deletes what it makes, so that the second time begins like the first.
    """

    def __init__(self, page: str, folder: Path) -> None:
        again = by_password(page)
        assigned = {name for name in _ASSIGNED.findall("\n".join(commands(page))) if not name.startswith(_SETTINGS)}
        count, port = len(commands(page)), free_port()
        tokens = {name for request in requests(page) for name in _VARIABLE.findall(request.answer) if "TOKEN" in name}
        after = naming(page, assigned, 0, "token") | naming(again, assigned | tokens, count, "password")
        execute(page + again, folder, port, after)
        self._folder, self._port = folder, port
        self.by_token = [self._print(number, command, "token") for number, command in enumerate(commands(page))]
        self.by_password = [
            self._print(number, command, "password") for number, command in enumerate(commands(again), count)
        ]

    def _print(self, number: int, command: str, way: str) -> Printed:
        """Give what the page has to print below a command."""
        curl = command.startswith("curl ")
        received = (self._folder / f"{number}.out").read_bytes().decode() if curl else output(self._folder, number)
        text = received.partition("\n")[0] + "\n" if SERVE.search(command) else received
        text = text.replace(str(self._folder / "data"), DATA).replace(str(self._port), PORT)
        variables = dict(line.split("=", 1) for line in (self._folder / way).read_text().splitlines())
        assert all(variables.values()), f"no answer names these: {[name for name in variables if not variables[name]]}"
        for name, value in sorted(variables.items(), key=lambda variable: -len(variable[1])):
            text = text.replace(value.replace(str(self._port), PORT), f"${name}")
        text = _answer(text) if curl else text
        for varying, same in _SAME_EVERYWHERE:
            text = varying.sub(same, text)
        return Printed(command, text)


def _answer(received: str) -> str:
    """Give status, headers and body as the page shows them."""
    head, _, body = received.partition("\r\n\r\n")
    status, *headers = head.split("\r\n")
    shown = [status.strip()] + [
        line for line in headers if line.lower().startswith((*(f"{name}:" for name in HEADERS), "access-control-"))
    ]
    media_type = next((line.partition(": ")[2] for line in headers if line.lower().startswith("content-type:")), "")
    lines = _indented(media_type.partition(";")[0], body).rstrip("\n").split("\n") if body else []
    cut = [line if len(line) <= COLUMNS else _CUT.sub("", line[:COLUMNS]) + " ..." for line in lines[:LINES]]
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


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """The page's requests, asked; with MUNIMENT_WRITE_DOCS the page is written anew."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    page = PAGE.read_text("utf-8")
    made = Asked(page, tmp_path_factory.mktemp("requests"))
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        left = iter(made.by_token)
        written = BLOCK.sub(lambda block: COMMAND.sub(lambda one: f"$ {one[1]}\n{next(left).answer}", block[0]), page)
        PAGE.write_text(written, "utf-8")
    return made


def test_every_request_gets_the_answer_that_is_printed(asked: Asked) -> None:
    assert asked.by_token == printed(PAGE.read_text("utf-8")), (
        "run MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_requests.py"
    )


def test_every_request_gets_the_same_answer_by_name_and_password(asked: Asked) -> None:
    assert asked.by_password == printed(by_password(PAGE.read_text("utf-8")))


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
