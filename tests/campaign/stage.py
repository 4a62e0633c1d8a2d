"""A server in a process of its own with something behind every address, and the judge of what it answers.

A generated request names what is on the stage by a word (``Prop``); just before it is sent the word becomes the real
id, token or password. What a request used up is put there again.
"""

import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import httpx

from tests import passes
from tests.e2e.processes import ServedHouse, Server
from tests.scenes import World
from tests.servers import free_port

PATIENCE = 1.0
"""Seconds of processor time within which everything is answered; what takes longer by the clock is asked again."""


class Prop:
    """The words for what is on the stage. They pass through an address, JSON, a form and XML unchanged."""

    REPOSITORY = "PROP-repository"
    DOCUMENT = "PROP-document"
    FOLDER = "PROP-folder"
    CABINET = "PROP-cabinet"
    ACL = "PROP-acl"
    LINK = "PROP-link"
    SEARCH = "PROP-search"
    TEMPLATE = "PROP-template"
    POSITION = "PROP-position"
    TOKEN = "PROP-token-a"
    DEAD_TOKEN = "PROP-token-b"
    REFRESH_TOKEN = "PROP-refresh-token"
    RESOURCE = "PROP-resource-a"
    IDLE_RESOURCE = "PROP-resource-b"
    CLIENT = "PROP-client"
    SCOPE = "PROP-scope"
    USER = "PROP-user"
    VICTIM = "PROP-victim"
    PASSWORD = "PROP-password"
    CSRF = "PROP-csrf"
    TICKET_CSRF = "PROP-ticket-csrf"
    MARK = "PROP-mark"


_PROP = re.compile(r"PROP-[a-z]+(?:-[a-z]+)*")
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


class Stage:
    """A world of its own, served over HTTPS and plain HTTP by one worker, agent and extractor."""

    def __init__(self, root: Path, directory_url: str, repository_url: str, *settings: str) -> None:
        house = ServedHouse(root, directory_url, repository_url, self._furnish)
        self.world, self.plain_port = house.world, free_port()
        own = (f"web.http_port={self.plain_port}", f"repository.search_page_client={self.world.client_id}")
        settings = (*own, *settings)
        self.server = Server(house.data, free_port(), *(word for setting in settings for word in ("--set", setting)))
        self._values: dict[str, str] = {}
        self._callers: dict[str, str] = {}
        self.cookies: dict[str, str] = {}

    def _furnish(self, world: World) -> None:
        world.system_attribute("directory.auth.EnforceSSL", "false")
        self.user, self.victim = world.person(), world.person()

    def __enter__(self) -> Self:
        self.server.wait_ready(180)
        self.http = self.server.client()
        self.processes = set(self.server.children())
        self.memory = self.resident()
        return self

    def __exit__(self, *_error: object) -> None:
        self.http.close()
        self.server.kill()

    @property
    def ca_file(self) -> str:
        """The certificate to trust."""
        return str(self.server.data / "tls" / "ca.pem")

    def lost(self) -> set[int]:
        """Name the server's processes that are no more."""
        return self.processes - set(self.server.children())

    def bugs(self) -> list[str]:
        """Give the lines of the log that speak of a bug."""
        return [line for line in self.server.log_text.splitlines() if '"event": "bug"' in line or "Traceback" in line]

    def processor_seconds(self) -> float:
        """Say how many seconds of processor time its processes have taken."""
        return sum(passes.own_time(process) for process in self.processes)

    def resident(self) -> int:
        """Add up the resident memory of the server's processes, in bytes."""
        found = 0
        for process in (self.server.process.pid, *self.server.children()):
            status = Path(f"/proc/{process}/status").read_text()
            found += 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))
        return found

    def bearer(self, who: str) -> str:
        """Give an access token of writer, reader or administrator."""
        if who not in self._callers:
            person = {"writer": self.world.writer, "reader": self.world.reader}.get(who)
            scope = self.world.scope
            if person is None:
                person, scope = self.world.admin(self.world.names), f"resource:{self._administration}"
            self._callers[who] = self._issued(person.id, person.password, scope)["access_token"]
        return self._callers[who]

    def filled(self, text: str) -> str:
        """Put what is on the stage in place of the words for it."""
        return _PROP.sub(lambda found: self._value(found[0]), text)

    def used(self, method: str, url: str) -> None:
        """Notice that a request succeeded: what it deleted is put there again when it is next named."""
        if method == "DELETE":
            gone = {word for word, value in self._values.items() if value in url}
            if gone & {Prop.TOKEN, Prop.REFRESH_TOKEN}:
                gone |= {Prop.TOKEN, Prop.REFRESH_TOKEN}
            for word in gone:
                del self._values[word]

    def renew(self) -> None:
        """Put everything there anew, whatever has become of it."""
        self._values.clear()

    def _value(self, word: str) -> str:
        if word not in self._values:
            self._make(word)
        return self._values.get(word, word)

    def _make(self, word: str) -> None:
        fixed = {
            Prop.REPOSITORY: self.world.repository,
            Prop.RESOURCE: self.world.resource_id,
            Prop.IDLE_RESOURCE: self.world.idle_resource_id,
            Prop.CLIENT: self.world.client_id,
            Prop.SCOPE: self.world.scope,
            Prop.USER: self.user.id,
            Prop.VICTIM: self.victim.id,
            Prop.PASSWORD: self.user.password,
        }
        makers: Mapping[str, Callable[[], None]] = {
            Prop.TOKEN: self._tokens,
            Prop.REFRESH_TOKEN: self._tokens,
            Prop.DEAD_TOKEN: self._dead_token,
            Prop.CSRF: self._sign_in_page,
            Prop.TICKET_CSRF: self._console,
            Prop.MARK: self._search_page,
            Prop.DOCUMENT: lambda: self._object(Prop.DOCUMENT, "objects", "document"),
            Prop.FOLDER: lambda: self._object(Prop.FOLDER, "folders/PROP-cabinet/folders", "folder"),
            Prop.CABINET: lambda: self._object(Prop.CABINET, "cabinets", "cabinet"),
            Prop.POSITION: lambda: self._object(Prop.DOCUMENT, "objects", "document"),
            Prop.ACL: self._acl,
            Prop.LINK: self._link,
            Prop.SEARCH: lambda: self._saved(Prop.SEARCH, "saved-searches", "query-document"),
            Prop.TEMPLATE: lambda: self._saved(Prop.TEMPLATE, "search-templates", "query-document-template"),
        }
        if word in fixed:
            self._values[word] = fixed[word]
        elif word in makers:
            makers[word]()

    @property
    def _administration(self) -> str:
        return self.world.names.administration_resource.replace(" ", "+")

    @property
    def _repository(self) -> str:
        return f"/rest/repositories/{self.world.repository}"

    @property
    def _writer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.bearer('writer')}"}

    def _issued(self, username: str, password: str, scope: str) -> dict[str, Any]:
        form = {"grant_type": "password", "client_id": self.world.client_id, "scope": scope}
        answer = self.http.post("/dirws/login", data={**form, "username": username, "password": password})
        reply: dict[str, Any] = _ok(answer).json()
        return reply

    def _tokens(self) -> None:
        issued = self._issued(self.user.id, self.user.password, self.world.scope)
        self._values |= {Prop.TOKEN: issued["access_token"], Prop.REFRESH_TOKEN: issued["refresh_token"]}

    def _dead_token(self) -> None:
        token = self._issued(self.user.id, self.user.password, self.world.scope)["access_token"]
        _ok(self.http.delete(f"/dirws/v1/authentication/oauth/{token}"))
        self._values[Prop.DEAD_TOKEN] = token

    def _sign_in_page(self) -> None:
        self.http.cookies.clear()
        page = _ok(self.http.get("/dirws/login"))
        self._values[Prop.CSRF] = _marked(page)
        self.cookies["login"] = f"__Host-muniment_ticket_form={page.cookies['__Host-muniment_ticket_form']}"

    def _console(self) -> None:
        self._sign_in_page()
        admin = self.world.admin(self.world.names)
        form = {"csrf": self._values[Prop.CSRF], "RFA": "", "username": admin.id, "password": admin.password}
        signed_in = self.http.post("/dirws/login", data=form)
        assert signed_in.status_code == 303, signed_in.text
        self.cookies["console"] = f"__Host-muniment_ticket={signed_in.cookies['__Host-muniment_ticket']}"
        self._values[Prop.TICKET_CSRF] = _marked(_ok(self.http.get("/dirws/console/system-attributes")))
        self.http.cookies.clear()

    def _search_page(self) -> None:
        self.http.cookies.clear()
        mark = _marked(_ok(self.http.get("/search/sign-in")))
        form = {"csrf": mark, "username": self.user.id, "password": self.user.password}
        signed_in = self.http.post("/search/sign-in", data=form)
        assert signed_in.status_code == 303, signed_in.text
        self.cookies["search"] = f"__Host-muniment-search={signed_in.cookies['__Host-muniment-search']}"
        self._values[Prop.MARK] = _marked(_ok(self.http.get("/search")))
        self.http.cookies.clear()

    def _object(self, word: str, where: str, kind: str) -> None:
        properties = {"object_name": f"{kind} of the campaign", "r_object_type": kind, "title": "pump station"}
        body = {"properties": properties}
        made = self.http.post(f"{self._repository}/{self.filled(where)}", json=body, headers=self._writer)
        self._values[word] = _ok(made).json()["properties"]["r_object_id"]
        self._values[Prop.POSITION] = made.headers["Muniment-Position"]
        if kind == "document":
            address = f"{self._repository}/objects/{self._values[word]}"
            kept = {**self._writer, "Content-Type": "text/plain"}
            _ok(self.http.post(f"{address}/contents", content=b"pump station and valve", headers=kept))
            _ok(self.http.put(f"{address}/permission-set", json={"acl-name": "public"}, headers=self._writer))

    def _acl(self) -> None:
        name = f"campaign {time.time_ns()}"
        body = {"name": name, "permitted": [{"accessor": "everyone@demo", "basic-permission": "Read"}]}
        _ok(self.http.post(f"{self._repository}/acls", json=body, headers=self._writer))
        self._values[Prop.ACL] = name

    def _saved(self, word: str, where: str, document: str) -> None:
        expression = {"expression-type": "fulltext", "value": "pump", "template": True}
        query = {"types": ["document"], "expression-set": {"expressions": [expression]}}
        body = {"properties": {"object_name": "of the campaign", "r_is_public": True}, document: query}
        made = self.http.post(f"{self._repository}/{where}", json=body, headers=self._writer)
        self._values[word] = _ok(made).json()["properties"]["r_object_id"]

    def _link(self) -> None:
        for _ in range(2):
            self._object(Prop.DOCUMENT, "objects", "document")
        space = self.world.installation.settings.repository.names.vocab_namespace
        deadline = time.monotonic() + 60
        while True:  # that it waits for a position ends after a while, whether it was reached or not
            answer = self.http.post(
                f"{self._repository}/search?items-per-page=1&wait-for={self._values[Prop.POSITION]}",
                content=f'<search xmlns="{space}"/>',
                headers={**self._writer, "Content-Type": "application/xml", "Accept": "application/xml"},
            )
            found = re.search(r"link=([^&\"]+)", _ok(answer).text)
            if found:
                self._values[Prop.LINK] = found[1]
                return
            assert time.monotonic() < deadline, answer.text


class Record:
    """What was sent and what came back: counted, and judged when the round is over."""

    def __init__(self) -> None:
        self.statuses: dict[str, Counter[int]] = defaultdict(Counter)
        self.seconds: list[float] = []
        self.wrong: list[str] = []
        self.slowest = (0.0, "")

    @property
    def sent(self) -> int:
        """How many requests were answered. A status of 0 stands for what had no answer, and does not count."""
        return sum(counted.total() - counted[0] for counted in self.statuses.values())

    def note(self, route: str, answer: "Answer", said: str) -> None:
        """Count an answer; ``said`` tells the request in a failure."""
        self.statuses[route][answer.status] += 1
        self.seconds.append(answer.seconds)
        self.slowest = max(self.slowest, (answer.seconds, said))
        fault = answer.fault()
        if fault:
            self.wrong.append(f"{fault}: {said}")

    def __str__(self) -> str:
        every: Counter[int] = sum(self.statuses.values(), Counter())
        lines = [
            f"{self.sent} requests answered; median {statistics.median(self.seconds) * 1000:.1f} ms",
            f"slowest {self.slowest[0] * 1000:.0f} ms: {self.slowest[1][:200]}",
            f"all: {dict(sorted(every.items()))}",
            *(f"{route}: {dict(sorted(counted.items()))}" for route, counted in sorted(self.statuses.items())),
        ]
        return "\n".join(lines)


class Answer:
    """One answer, as far as it is judged."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes, seconds: float, *, ours: bool) -> None:
        self.status, self.headers, self.body, self.seconds = status, headers, body, seconds
        self._ours = ours

    def fault(self) -> str:
        """Say what is wrong with it; nothing when nothing is."""
        without_body = not self.body and self.headers.get("content-length", "0") != "0"  # as to HEAD
        if self.status == 501 and (without_body or b"Transfer-Encoding" in self.body):
            return ""
        if self.status >= 500 and not (self.status == 503 and self.headers.get("retry-after", "").isdigit()):
            return f"{self.status} {self.body[:300]!r}"
        if self._ours and self.headers.get("x-content-type-options") != "nosniff":
            return f"{self.status} without nosniff"
        return ""


def _ok(answer: httpx.Response) -> httpx.Response:
    assert answer.status_code < 300, (answer.request.url, answer.text)
    return answer


def _marked(page: httpx.Response) -> str:
    found = _CSRF.search(page.text)
    assert found, page.text
    return found[1]
