"""What was answered, remembered: writers of documents and holders of tokens, who say after a kill whether it holds.

A request that was answered with success must hold for good. One whose answer never came may have happened or not, but
wholly: each ledger keeps it as a doubt until the server is asked.
"""

import itertools
import json
import random
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from tests.scenes import World

REPOSITORY = f"/rest/repositories/{World.repository}"
OAUTH = "/dirws/v1/authentication/oauth"
WORD = "kept"
"""A word that every content holds."""

_LEVELS = ("Browse", "Read", "Write", "Delete")
_FEW, _MANY = 4, 10


class Unanswered(Exception):
    """No answer came; ``sent`` says whether the request may have reached the server."""

    def __init__(self, sent: bool) -> None:
        super().__init__()
        self.sent = sent


@dataclass
class Ledger:
    """What all ledgers have: how much was answered, and answers that nobody expected."""

    number: int
    answered: int = 0
    surprises: list[str] = field(default_factory=list)

    def work(self, http: httpx.Client, chance: random.Random, stop: threading.Event) -> None:
        """Do one thing after the other until told to stop, whatever becomes of the server."""
        while not stop.is_set():
            try:
                self.step(http, chance)
            except Unanswered:
                stop.wait(0.05)
            except Exception as error:  # noqa: BLE001 - in a thread of its own it would be seen by nobody
                self.surprises.append(f"{type(error).__name__}: {error}")
                return

    def step(self, http: httpx.Client, chance: random.Random) -> None:
        """Do one thing."""
        raise NotImplementedError

    def ask(self, http: httpx.Client, method: str, address: str, **what: Any) -> httpx.Response | None:
        """Send a request; None when it was refused, which is a surprise unless the server was merely busy."""
        try:
            answer = http.request(method, address, **what)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unanswered(sent=False) from error
        except httpx.TransportError as error:
            raise Unanswered(sent=True) from error
        if answer.is_success:
            self.answered += 1
            return answer
        if answer.status_code != 503:
            self.surprises.append(f"{method} {answer.request.url.path}: {answer.status_code} {answer.text}")
        return None


@dataclass(frozen=True)
class Paper:
    """A document as its writer knows it."""

    name: str
    title: str = ""
    acl: str = "private"
    content: bytes | None = None

    def __repr__(self) -> str:
        said = "nothing" if self.content is None else f"{len(self.content)} bytes {self.content[:30]!r}"
        return f"<{self.name} {self.title!r} {self.acl} {said}>"


@dataclass
class Writer(Ledger):
    """Makes, changes, replaces, shares and deletes documents in a folder of his own, and changes an ACL of his own."""

    folder: str = ""
    papers: dict[str, Paper] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    level: str = "Browse"
    _doubts: dict[str, Paper | None] = field(default_factory=dict)
    _begun: dict[str, Paper] = field(default_factory=dict)
    _level_in_doubt: str = ""
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def begin(self, http: httpx.Client) -> None:
        """Make the folder and the ACL."""
        made = http.post(f"{REPOSITORY}/cabinets", json={"properties": {"object_name": f"cabinet {self.number}"}})
        assert made.status_code == 201, made.text
        self.folder = made.json()["properties"]["r_object_id"]
        kept = http.post(f"{REPOSITORY}/acls", json={"name": self._acl, "permitted": self._permitted(self.level)})
        assert kept.status_code == 201, kept.text

    def step(self, http: httpx.Client, chance: random.Random) -> None:
        """Make a document while there are few, delete one when there are many, else do anything."""
        if len(self._free()) < _FEW:
            self._create(http, chance)
        elif len(self._free()) > _MANY:
            self._delete(http, chance)
        else:
            steps = [self._create, self._change, self._replace, self._share, self._delete, self._change_acl]
            chance.choice(steps)(http, chance)

    def _free(self) -> list[str]:
        return [object_id for object_id in self.papers if object_id not in self._doubts]

    def _create(self, http: httpx.Client, chance: random.Random) -> None:
        name = f"paper {self.number}-{next(self._numbers)}"
        address = f"{REPOSITORY}/folders/{self.folder}/documents"
        title, content = self._word("title"), self._content(chance)
        properties = {"properties": {"object_name": name, "title": title}}
        sent: dict[str, Any]
        match chance.choice(["both", "metadata", "content"]):
            case "both":
                paper = Paper(name, title, content=content)
                parts = [
                    ("metadata", (None, json.dumps(properties).encode(), "application/json")),
                    ("content", (name, content, "text/plain")),
                ]
                sent = {"files": parts}
            case "metadata":
                paper, sent = Paper(name, title), {"json": properties}
            case _:
                paper = Paper(name, content=content)
                sent = {"params": {"object-name": name}, "content": content, "headers": {"Content-Type": "text/plain"}}
        self._begun[name] = paper
        try:
            made = self.ask(http, "POST", address, **sent)
        except Unanswered as error:
            if not error.sent:
                del self._begun[name]
            raise
        del self._begun[name]
        if made is not None:
            self.papers[made.json()["properties"]["r_object_id"]] = paper

    def _change(self, http: httpx.Client, chance: random.Random) -> None:
        object_id, name, title = chance.choice(self._free()), self._word("paper"), self._word("title")
        after = replace(self.papers[object_id], name=name, title=title)
        self._become(http, object_id, after, "POST", "", json={"properties": {"object_name": name, "title": title}})

    def _replace(self, http: httpx.Client, chance: random.Random) -> None:
        object_id, content = chance.choice(self._free()), self._content(chance)
        after, plain = replace(self.papers[object_id], content=content), {"Content-Type": "text/plain"}
        self._become(http, object_id, after, "POST", "/contents", content=content, headers=plain)

    def _share(self, http: httpx.Client, chance: random.Random) -> None:
        object_id, acl = chance.choice(self._free()), chance.choice(["private", "public", self._acl])
        after = replace(self.papers[object_id], acl=acl)
        self._become(http, object_id, after, "PUT", "/permission-set", json={"acl-name": acl})

    def _delete(self, http: httpx.Client, chance: random.Random) -> None:
        self._become(http, chance.choice(self._free()), None, "DELETE", "")

    def _become(
        self, http: httpx.Client, object_id: str, after: Paper | None, method: str, below: str, **what: Any
    ) -> None:
        self._doubts[object_id] = after
        try:
            done = self.ask(http, method, f"{REPOSITORY}/objects/{object_id}{below}", **what)
        except Unanswered as error:
            if not error.sent:
                del self._doubts[object_id]
            raise
        del self._doubts[object_id]
        if done is not None:
            self._adopt(object_id, after)

    def _change_acl(self, http: httpx.Client, chance: random.Random) -> None:
        if self._level_in_doubt:
            return
        self._level_in_doubt = chance.choice([level for level in _LEVELS if level != self.level])
        body = {"permitted": self._permitted(self._level_in_doubt)}
        try:
            if self.ask(http, "POST", f"{REPOSITORY}/acls/{self._acl}", json=body) is not None:
                self.level = self._level_in_doubt
        except Unanswered as error:
            if error.sent:
                return
        self._level_in_doubt = ""

    def faults(self, http: httpx.Client) -> list[str]:
        """Ask the server for everything and say what does not hold; doubts end here."""
        listed = self._listed(http)
        found = [*self._faults_of_papers(http, listed), *self._faults_of_strangers(http, listed)]
        answers = {object_id: http.get(f"{REPOSITORY}/objects/{object_id}").status_code for object_id in self.gone}
        found += [f"{object_id} was deleted and answers {said}" for object_id, said in answers.items() if said != 404]
        level = self._level(http)
        if level not in {self.level, self._level_in_doubt or self.level}:
            found.append(f"{self._acl} gives {level}, not {self.level}")
        self.level, self._level_in_doubt = level, ""
        self.gone.clear()
        self._doubts.clear()
        self._begun.clear()
        return found

    def _faults_of_papers(self, http: httpx.Client, listed: set[str]) -> Iterable[str]:
        for object_id, before in list(self.papers.items()):
            now = self._read(http, object_id)
            if now not in ({before, self._doubts[object_id]} if object_id in self._doubts else {before}):
                allowed = f"{before} or {self._doubts[object_id]}" if object_id in self._doubts else f"{before}"
                yield f"{object_id} is {now}, not {allowed}"
            if (now is not None) != (object_id in listed):
                yield f"{object_id} is {now}, and its folder says otherwise"
            self._adopt(object_id, now)

    def _faults_of_strangers(self, http: httpx.Client, listed: set[str]) -> Iterable[str]:
        for object_id in listed - self.papers.keys() - self.gone:
            paper = self._read(http, object_id)
            if paper is None or self._begun.pop(paper.name, None) != paper:
                yield f"{object_id} is {paper}, which nobody made, or not so, or not twice"
            if paper is not None:
                self.papers[object_id] = paper

    def _adopt(self, object_id: str, paper: Paper | None) -> None:
        if paper is not None:
            self.papers[object_id] = paper
        elif self.papers.pop(object_id, None) is not None:
            self.gone.add(object_id)

    def _listed(self, http: httpx.Client) -> set[str]:
        answer = http.get(
            f"{REPOSITORY}/folders/{self.folder}/objects?items-per-page=1000", headers={"Accept": "application/json"}
        )
        assert answer.status_code == 200, answer.text
        return {entry["id"].rpartition("/")[2] for entry in answer.json()["entries"]}

    def _read(self, http: httpx.Client, object_id: str) -> Paper | None:
        address = f"{REPOSITORY}/objects/{object_id}"
        answer = http.get(address)
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        said = answer.json()["properties"]
        media = http.get(f"{address}/content-media")
        assert media.status_code in {200, 404}, f"{object_id}: {media.status_code} {media.text[:300]}"
        content = media.content if media.status_code == 200 else None
        return Paper(said["object_name"], said.get("title") or "", said["acl_name"], content)

    def _level(self, http: httpx.Client) -> str:
        answer = http.get(f"{REPOSITORY}/acls/{self._acl}")
        assert answer.status_code == 200, answer.text
        return {line["accessor"]: str(line["basic-permission"]) for line in answer.json()["permitted"]}["world"]

    @property
    def _acl(self) -> str:
        return f"circle-{self.number}"

    def _permitted(self, level: str) -> list[dict[str, str]]:
        given = {"owner": "Delete", "world": level}
        return [{"accessor": accessor, "basic-permission": permission} for accessor, permission in given.items()]

    def _word(self, kind: str) -> str:
        return f"{kind} {self.number}-{next(self._numbers)}"

    def _content(self, chance: random.Random) -> bytes:
        words = f"{WORD} as qv{self.number}w{next(self._numbers)} "
        return (words + "and more " * chance.choice([0, 1, 1000, 30_000])).encode()


@dataclass
class Held:
    """One grant as its holder knows it; ``ended`` is None while nobody knows."""

    access: list[str]
    refresh: str
    ended: bool | None = False
    verified_dead: bool = False


@dataclass
class Holder(Ledger):
    """Signs in, refreshes and revokes."""

    world: World | None = None
    held: list[Held] = field(default_factory=list)

    def step(self, http: httpx.Client, chance: random.Random) -> None:
        """Sign in while few tokens live, else do anything."""
        alive = [grant for grant in self.held if grant.ended is False]
        kind = chance.choice(["issue", "refresh", "refresh", "revoke"]) if len(alive) > 2 else "issue"
        if kind == "issue" and len(alive) < 2 * _MANY:
            self._issue(http)
        elif kind == "refresh":
            self._refresh(http, chance.choice(alive))
        else:
            self._revoke(http, chance, chance.choice(alive))

    def sign_in(self, http: httpx.Client) -> dict[str, str]:
        """Give the reply of the token endpoint to the writer's password."""
        assert self.world is not None
        who = self.world.writer
        form = {"grant_type": "password", "client_id": self.world.client_id, "scope": self.world.scope}
        issued = self.ask(http, "POST", "/dirws/login", data=form | {"username": who.id, "password": who.password})
        return {} if issued is None else issued.json()

    def _issue(self, http: httpx.Client) -> None:
        if issued := self.sign_in(http):
            self.held.append(Held([issued["access_token"]], issued["refresh_token"]))

    def _refresh(self, http: httpx.Client, grant: Held) -> None:
        issued = self.ask(http, "POST", "/dirws/login", data=self._form(grant))
        if issued is not None:
            grant.access.append(issued.json()["access_token"])

    def _revoke(self, http: httpx.Client, chance: random.Random, grant: Held) -> None:
        grant.ended = None
        try:
            done = self.ask(http, "DELETE", f"{OAUTH}/{chance.choice([*grant.access, grant.refresh])}")
        except Unanswered as error:
            grant.ended = None if error.sent else False
            raise
        grant.ended = done is not None

    def faults(self, http: httpx.Client, *, all_of_them: bool = False) -> list[str]:
        """Verify every living token and those that ended since the last time, and say what does not hold.

        With ``all_of_them``, also those that ended long ago. Doubts end here.
        """
        found = []
        for at, grant in enumerate(self.held):
            if grant.verified_dead and not all_of_them:
                continue
            said = {self._info(http, token) for token in grant.access}
            again = http.post("/dirws/login", data=self._form(grant))
            if grant.ended is None:
                grant.ended = said == {410}
            wanted = ({410}, 400) if grant.ended else ({200}, 200)
            if (said, again.status_code) != wanted:
                state = "was revoked" if grant.ended else "is alive"
                found.append(f"grant {at} {state}: tokeninfo {said}, refresh {again.status_code} {again.text}")
            elif not grant.ended:
                grant.access.append(again.json()["access_token"])
            else:
                grant.verified_dead = True
                bearer = {"Authorization": f"Bearer {grant.access[-1]}"}
                if (status := http.get(f"{REPOSITORY}/acls", headers=bearer).status_code) != 401:
                    found.append(f"grant {at} was revoked: the repository answers {status}")
        return found

    def _info(self, http: httpx.Client, token: str) -> int:
        assert self.world is not None
        return http.post(f"{OAUTH}/tokeninfo", json={"token": token, "resource_id": self.world.resource_id}).status_code

    def _form(self, grant: Held) -> dict[str, str]:
        assert self.world is not None
        return {
            "grant_type": "refresh_token",
            "client_id": self.world.client_id,
            "refresh_token": grant.refresh,
        }
