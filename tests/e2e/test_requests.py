"""Every request of docs/requests.md gets the answer that is printed there: by a token, and by name and password.

``MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_requests.py`` writes into the page what the server answers now.
"""

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import lxml.etree
import pytest

from tests.e2e.pages import BLOCK, COMMAND, DATA, PORT, SERVE, commands, execute, output
from tests.house.test_requests import BY_PASSWORD, BY_TOKEN, PAGE, Printed, printed, requests
from tests.servers import free_port

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
    (re.compile(r'(?<=^etag: W/")[0-9a-f]{32}', re.MULTILINE), f"{0:032}"),
    (re.compile(r"(?<=^muniment-position: )(?!\$)\S+", re.MULTILINE), "xxxxxxxx"),
    (
        re.compile(
            r'(?<="secret_key": ")[^"]+|(?<="secretKey": ")[^"]+|(?<="secret": ")[^"]+'
            r'|(?<="objectGUID", "values": \[")[^"]+|(?<=cursor=)[\w.%-]+'
            r'|(?<="csrf" value=")[^"]+|(?<="nextPageCookie": ")[^"]+'
            r'|(?<="kid": ")[^"\n]+|(?<="[nxy]": ")[^"\n]+|(?<="value": "-----BEGIN PUBLIC KEY-----)[^"\n]+'
        ),
        "xxxxxxxx",
    ),
    (re.compile(r'(?<="device_code": ")[^"]+|(?<="user_code": ")[^"]+|(?<=user_code=)[A-Z-]+'), "xxxxxxxx"),
    (re.compile(r'(?<="iat": )\d+|(?<="exp": )\d+|(?<="updated_at": )\d+'), "1767323045"),
    (re.compile(r"(?<=\.css\?)\w{12}|(?<=\.svg\?)\w{12}|(?<=\.js\?)\w{12}"), f"{0:012}"),
    (re.compile(r'(?<="seconds_behind": )[\d.]+'), "0.0"),
    (re.compile(r'(?<="r_index_status": ")(?:waiting|done)'), "done"),
    (re.compile(r"(?<![:\d.])\d\.\d{3,}\b"), "1.234"),
)
"""What differs from one server to the next, and how the page shows it."""


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
                    pattern = rf"\Q{before}\E\K[\w.=*-]+(?=" + (re.escape(line[found.end() :][:1]) or r"\s") + ")"
                    value = f"$(grep -aoP {shlex.quote(pattern)} {number}.out | head -n 1)"
                    lines[number] = lines.get(number, "") + f"{found[1]}={value}\n"
    every = " ".join(f'{name}="${name}"' for name in sorted(known))
    last = start + len(commands(page)) - 1
    lines[last] = lines.get(last, "") + f"env -i {every} env >{way}"
    return lines


class Asked:
    """The page's requests, asked of one server: all of them, then ``again`` those with the token with the password.

    The page deletes what it makes, so that the second time begins like the first.
    """

    def __init__(self, page: str, folder: Path, again: str = "") -> None:
        assigned = {name for name in _ASSIGNED.findall("\n".join(commands(page))) if not name.startswith(_SETTINGS)}
        count, port = len(commands(page)), free_port()
        tokens = {name for request in requests(page) for name in _VARIABLE.findall(request.answer) if "TOKEN" in name}
        after = naming(page, assigned, 0, "token")
        after |= naming(again, assigned | tokens, count, "password") if again else {}
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


pytestmark = [
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
    pytest.mark.timeout(900),
]


def test_every_request_gets_the_answer_that_is_printed(tmp_path: Path) -> None:
    """With MUNIMENT_WRITE_DOCS the page is written anew."""
    page = PAGE.read_text("utf-8")
    made = Asked(page, tmp_path)
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        left = iter(made.by_token)
        written = BLOCK.sub(lambda block: COMMAND.sub(lambda one: f"$ {one[1]}\n{next(left).answer}", block[0]), page)
        PAGE.write_text(written, "utf-8")
    shown = printed(PAGE.read_text("utf-8"))
    others = [pair for pair in zip(made.by_token, shown, strict=True) if pair[0] != pair[1]]
    assert not others, "run MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_requests.py"


@pytest.mark.campaign
def test_every_request_gets_the_same_answer_by_name_and_password(tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    made, shown = Asked(page, tmp_path, by_password(page)), printed(by_password(page))
    assert not [pair for pair in zip(made.by_password, shown, strict=True) if pair[0] != pair[1]]
