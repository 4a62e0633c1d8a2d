"""The demo's tour in seven steps."""

import re
import shlex
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import httpx
import lxml.etree
import msgspec
import typer

from muniment.cli import terminal
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure

_ATOM = "{http://www.w3.org/2005/Atom}"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{40,}")
_PASSWORD = re.compile(r"(?<![^&])password=[^&]*")
_START_SECONDS = 600
_SHOWN = 1200
_ENTRIES = 5
_RARE = "muniments"

Facts = Mapping[str, Any]


def tour_command(
    data: DataFolder,
    port: Annotated[int | None, typer.Option(help="Port for the server if none is running.")] = None,
    docs: Annotated[Path | None, typer.Option(help="Folder of documents for the server if none is running.")] = None,
    project: Annotated[
        Path | None, typer.Option(help="Folder of documents for the server if --docs is not given.")
    ] = None,
) -> None:
    """Perform the tour against the demo's server; if none is running, start one for the duration of the tour."""
    options = [f"--{name}={value}" for name, value in (("port", port), ("docs", docs), ("project", project)) if value]
    with _running(data.path, options) as facts, _client(facts) as http:
        _Tour(facts, http).perform()


def as_curl(facts: Facts) -> str:
    base, names = facts["base_url"], facts["names"]
    login = f"{base}/{names['directory']['prefix']}/login"
    oauth = f"{base}/{names['directory']['prefix']}/v1/authentication/oauth"
    repository = f"{base}/{names['repository']['prefix']}/repositories/{quote(facts['repository'], safe='')}"
    curl = f"curl -sS --cacert {shlex.quote(facts['ca_file'])}"
    bearer = '-H "Authorization: Bearer $TOKEN"'
    return f"""# 1. Get in
TOKEN=$({curl} {login} -d grant_type=password -d client_id={facts["client_id"]} \\
  -d username={facts["username"]} --data-urlencode password={shlex.quote(facts["password"])} \\
  -d scope={shlex.quote(scope(facts))} | python3 -c 'import json,sys; print(json.load(sys.stdin)["access_token"])')
# 2. Keep a document, and remember the position of that change
POSITION=$({curl} {bearer} -H 'Content-Type: text/plain' --data-binary {shlex.quote(_content(facts))} \\
  -D - -o /dev/null '{repository}/objects?object-name=muniments.txt' \\
  | tr -d '\\r' | sed -n 's/^[Mm]uniment-[Pp]osition: //p')
# 3. Find it, and others
{curl} {bearer} -H 'Content-Type: application/xml' -H 'Accept: application/xml' \\
  "{repository}/search?include-total=true&items-per-page={_ENTRIES}&wait-for=$POSITION" \\
  -d {shlex.quote(document(facts))}
# 4. Discover
{curl} {bearer} {repository}
# 5. Verify
{curl} {oauth}/tokeninfo -H 'Content-Type: application/json' -H 'Accept: application/json' \\
  -d "{{\\"token\\": \\"$TOKEN\\", \\"resource_id\\": \\"{facts["resource"]["id"]}\\"}}"
# 6. By keywords
{curl} {bearer} '{repository}/search?q={quote(facts["word"])}&include-total=true&items-per-page={_ENTRIES}'
# 7. End it
{curl} -i -X DELETE {oauth}/$TOKEN
# Or without a token: by name and password
{curl} -u {shlex.quote(f"{facts['username']}:{facts['password']}")} {repository}
"""


def next_steps(data: Path, facts: Facts) -> str:
    admin = facts["admin"]
    return f"""
Ready. What to try next:
  in another terminal  paste the commands above, or let 'make demo' perform them
  in a browser         {facts["base_url"]}/ and there "Administration console": sign in as
                       {admin["username"]} with the password {admin["password"]}
                       (the browser warns until it trusts {facts["ca_file"]})
  on the command line  {shlex.quote(sys.argv[0])} --data {shlex.quote(str(data))} search {facts["word"]}
Ctrl-C stops it; started again it goes on with the same data."""


def _content(facts: Facts) -> str:
    return f"Muniments are documents that prove a right, and {facts['word']} is one of their words."


def scope(facts: Facts) -> str:
    name: str = facts["resource"]["name"]
    return "resource:" + name.replace(" ", "+")


def document(facts: Facts) -> str:
    """A search document (given 2.8) that finds the tour's own document first, then many others of the demo."""
    names = facts["names"]
    size = names["repository"]["system_property_prefix"] + "full_content_size"
    return (
        f'<search xmlns="{names["vocab_namespace"]}"><types><type>{names["sysobject_type"]}</type></types>'
        f'<expression-set operator="AND"><expressions><fulltext>{_RARE} OR {facts["word"]}</fulltext>'
        f'<property-list name="owner_name" operator="IN"><values><value>{facts["username"]}</value></values>'
        f'</property-list><property-range name="{size}" operator="BETWEEN"><from>1</from><to>100000000</to>'
        "</property-range></expressions></expression-set></search>"
    )


def check_answers(facts: Facts) -> None:
    """Raises Failure if an answer is wrong, or if the search finds nothing."""
    with _client(facts) as http:
        tour = _Tour(facts, http, quiet=True)
        token = tour.sign_in()
        if not tour.search(token).total:
            raise Failure(f"The search for {facts['word']!r} found nothing; the log may say why.")
        tour.end(token)


class _Found(NamedTuple):
    total: int
    object_ids: list[str]


class _Tour:
    def __init__(self, facts: Facts, http: httpx.Client, *, quiet: bool = False) -> None:
        self._facts = facts
        self._http = http
        self._print = (lambda _text: None) if quiet else terminal.line
        names = facts["names"]
        self._directory = f"/{names['directory']['prefix']}"
        self._oauth = f"{self._directory}/v1/authentication/oauth"
        self._repository = f"/{names['repository']['prefix']}/repositories/{quote(facts['repository'], safe='')}"

    def perform(self) -> None:
        self._say("1. Get in")
        token = self.sign_in()
        self._say("2. Keep a document")
        object_id, address, position = self._keep(token)
        self._say("3. Find it, and others")
        if object_id not in self.search(token, position).object_ids:
            raise Failure(f"The search did not find {object_id}, which the repository has kept just now.")
        self._say("4. Discover")
        self._ask("GET", self._repository, 200, token=token)
        self._say("5. Verify")
        resource_id = self._facts["resource"]["id"]
        self._ask("POST", f"{self._oauth}/tokeninfo", 200, json={"token": token, "resource_id": resource_id})
        self._say("6. By keywords")
        parameters = {"q": self._facts["word"], "include-total": "true", "items-per-page": str(_ENTRIES)}
        self._ask("GET", f"{self._repository}/search", 200, token=token, params=parameters)
        self._say("Clean up, then 7. End it")
        self._ask("DELETE", address, 204, token=token)
        self.end(token)
        self._say(f"The tour is done: {object_id} was kept, found and deleted, and the token has ended.")

    def sign_in(self) -> str:
        form = {
            "grant_type": "password",
            "client_id": self._facts["client_id"],
            "username": self._facts["username"],
            "password": self._facts["password"],
            "scope": scope(self._facts),
        }
        tokens = self._ask("POST", f"{self._directory}/login", 200, data=form).json()
        form = {
            "grant_type": "refresh_token",
            "client_id": self._facts["client_id"],
            "refresh_token": tokens["refresh_token"],
        }
        return str(self._ask("POST", f"{self._directory}/login", 200, data=form).json()["access_token"])

    def search(self, token: str, position: str = "") -> "_Found":
        headers = {"Content-Type": "application/xml", "Accept": "application/xml"}
        waiting = {"wait-for": position} if position else {}
        answer = self._ask(
            "POST",
            f"{self._repository}/search",
            200,
            token=token,
            params={"include-total": "true", "items-per-page": str(_ENTRIES), **waiting},
            content=document(self._facts),
            headers=headers,
        )
        root = lxml.etree.fromstring(answer.content, lxml.etree.XMLParser(resolve_entities=False, no_network=True))
        total = root.findtext(f"{{{self._facts['names']['vocab_namespace']}}}total", "0")
        return _Found(int(total), [entry.findtext(f"{_ATOM}id", "") for entry in root.findall(f"{_ATOM}entry")])

    def end(self, token: str) -> None:
        self._ask("DELETE", f"{self._oauth}/{token}", 204)
        resource_id = self._facts["resource"]["id"]
        self._ask("POST", f"{self._oauth}/tokeninfo", 410, json={"token": token, "resource_id": resource_id})
        self._ask("GET", f"{self._repository}/search", 401, token=token, params={"q": self._facts["word"]})

    def _keep(self, token: str) -> tuple[str, str, str]:
        answer = self._ask(
            "POST",
            f"{self._repository}/objects",
            201,
            token=token,
            params={"object-name": "muniments.txt"},
            content=_content(self._facts),
            headers={"Content-Type": "text/plain", "Accept": "application/json"},
        )
        prefix = self._facts["names"]["repository"]["system_property_prefix"]
        object_id = str(answer.json()["properties"][f"{prefix}object_id"])
        address = f"{self._repository}/objects/{object_id}"
        change_answer = self._ask(
            "POST", address, 200, token=token, json={"properties": {"title": "What muniments are"}}
        )
        self._ask("GET", address, 200, token=token, headers={"Accept": "application/xml"})
        self._ask("GET", f"{address}/content-media", 200, token=token)
        return object_id, address, change_answer.headers["muniment-position"]

    def _ask(self, method: str, address: str, status: int, *, token: str = "", **options: Any) -> httpx.Response:
        headers = dict(options.pop("headers", {}))
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = self._http.build_request(method, address, headers=headers, **options)
        self._show_request(request)
        try:
            answer = self._http.send(request)
        except httpx.TransportError as error:
            raise Failure(f"{self._facts['base_url']} cannot be reached ({error}).", Exit.NOT_READY) from error
        self._show_answer(answer)
        if answer.status_code != status:
            raise Failure(f"{method} {shorten(address)} answered {answer.status_code} instead of {status}.")
        return answer

    def _say(self, text: str) -> None:
        self._print(f"\n== {text}")

    def _show_request(self, request: httpx.Request) -> None:
        self._print(f"\n> {request.method} {shorten(str(request.url))}")
        for name in ("authorization", "content-type", "accept"):
            if name in request.headers and request.headers[name] != "*/*":
                self._print(f"> {name.title()}: {shorten(request.headers[name])}")
        body = request.read().decode("utf-8", "replace")
        if body:
            self._print("> " + shorten(_PASSWORD.sub("password=...", body)))

    def _show_answer(self, answer: httpx.Response) -> None:
        self._print(f"< {answer.status_code} {answer.reason_phrase}")
        for name in ("content-type", "location", "www-authenticate", "muniment-position"):
            if name in answer.headers:
                self._print(f"< {name.title()}: {shorten(answer.headers[name])}")
        body = answer.text
        if body:
            self._print(shorten(body[:_SHOWN]) + ("..." if len(body) > _SHOWN else ""))


def shorten(text: str) -> str:
    return _TOKEN.sub(lambda token_match: token_match[0][:6] + "...", text)


@contextmanager
def _running(data: Path, options: list[str]) -> Iterator[Facts]:
    facts = _facts(data)
    if facts is not None:
        yield facts
        return
    terminal.line("No server is running: starting one for the tour.")
    data.parent.mkdir(parents=True, exist_ok=True)
    log = data.parent / f"{data.name}-tour.log"
    command = [sys.executable, "-m", "muniment", "--data", str(data), "demo", *options]
    with log.open("wb") as lines:
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=lines)
        try:
            deadline = time.monotonic() + _START_SECONDS
            with terminal.Counting("Starting, and importing documents: seconds", None) as counter:
                while (facts := _facts(data)) is None:
                    if server.poll() is not None or time.monotonic() > deadline:
                        raise Failure(_why(log))
                    time.sleep(0.5)
                    counter.reach(int(_START_SECONDS - deadline + time.monotonic()))
            yield facts
        finally:
            server.terminate()
            server.wait()
    log.unlink()


def _why(log: Path) -> str:
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.startswith("muniment: ")]
    return lines[-1].removeprefix("muniment: ") if lines else f"The server did not start; {log} says why."


def _facts(data: Path) -> Facts | None:
    try:
        facts: Facts = msgspec.json.decode((data / "demo.json").read_bytes())
        with _client(facts) as http:
            http.get("/health/live")
    except (FileNotFoundError, httpx.TransportError):
        return None
    return facts


def _client(facts: Facts) -> httpx.Client:
    trust = ssl.create_default_context(cafile=facts["ca_file"])
    return httpx.Client(base_url=facts["base_url"], verify=trust, timeout=120, trust_env=False)
