"""Other accounts search and list as heavily as they may, and hang up: what one caller's search and list take meanwhile.

The bounds are printed beside the figures: ten times what is taken when idle beside one account, two seconds beside
eight, and no 503 (decision 0087).
"""

import random
import socket
import ssl
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.campaign.house import LOGIN, REPOSITORY, Visitor
from tests.e2e.processes import ServedHouse, Server
from tests.scenes import Person, World
from tests.waiting import until

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(1800)]

DOCUMENTS, WORDS = 400, 400
"""Documents, and how many words each of them has that no other has."""

ASKED = 100
ATTACKERS = 8

HEAVY = (
    "*e*t* OR *e*a* OR *t*o* OR *n*i*",
    "b*-d* OR r*-t*",
    " OR ".join(f"{letter}*" for letter in "abcdefghiklmnoprstuvw"),
    " OR ".join(f"*{a}*{b}*" for a in "etaoins" for b in "aeiu"),
)
"""What an attacker asks. The last question is refused, because of its wildcards."""

FILTER = " or ".join(f"contains(object_name, 'x{number}y')" for number in range(100))


def fill(visitor: Visitor) -> None:
    chance = random.Random(27)
    common = ["".join(chance.choices("etaoinshrdlu", k=5)) for _ in range(2000)]

    def create(number: int) -> None:
        own = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=9)) for _ in range(WORDS)]
        text = " ".join([*chance.choices(common, k=WORDS), *own, "needle" if number % 10 == 0 else "hay"])
        assert visitor.create(f"document {number}", text.encode()).status_code == 201

    for number in range(DOCUMENTS):
        create(number)
    until(lambda: len(visitor.find("needle")) == DOCUMENTS // 10, "the texts are not indexed", 600)


def token(server: Server, world: World, person: Person) -> str:
    form = {"grant_type": "password", "client_id": world.client_id, "scope": world.scope}
    with server.client() as http:
        answer = http.post(LOGIN, data=form | {"username": person.id, "password": person.password})
    return str(answer.json()["access_token"])


def hang_up(server: Server, access: str) -> None:
    """Send twelve questions on connections of their own, and close them at once."""
    trust = ssl.create_default_context(cafile=str(server.data / "tls" / "ca.pem"))
    for number in range(12):
        question = quote(HEAVY[number % len(HEAVY)])
        head = f"GET {REPOSITORY}/search?q={question} HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Authorization: Bearer {access}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port), 30) as plain:
            trust.wrap_socket(plain, server_hostname="localhost").sendall(head.encode())


@contextmanager
def attacked(server: Server, tokens: list[str]) -> Iterator[Counter[int]]:
    """Let each of these accounts search, hang up and list without pause until the block ends."""
    over, statuses = threading.Event(), Counter[int]()

    def attack(access: str) -> None:
        with server.client() as http:
            http.headers["Authorization"] = f"Bearer {access}"
            while not over.is_set():
                hang_up(server, access)
                for question in HEAVY:
                    statuses[http.get(f"{REPOSITORY}/search", params={"q": question}).status_code] += 1
                listed = http.get(f"{REPOSITORY}/cabinets", params={"filter": FILTER, "include-total": "true"})
                statuses[listed.status_code] += 1

    with ThreadPoolExecutor(len(tokens)) as threads:
        attackers = [threads.submit(attack, access) for access in tokens]
        try:
            until(lambda: statuses.total() >= len(tokens), "the attackers are not at work")
            yield statuses
        finally:
            over.set()
    for each in attackers:
        each.result()


def taken(visitor: Visitor) -> dict[str, list[float]]:
    """Search and list in turn; give how long each took, in milliseconds. None is refused."""
    took = dict[str, list[float]](search=[], list=[])
    asked: dict[str, Callable[[], httpx.Response]] = {
        "search": lambda: visitor.search("needle"),
        "list": lambda: visitor.http.get(f"{REPOSITORY}/cabinets"),
    }
    for _ in range(ASKED):
        for what, ask in asked.items():
            began = time.perf_counter()
            answer = ask()
            took[what].append((time.perf_counter() - began) * 1000)
            assert answer.status_code == 200, answer.text
    return took


def test_searches_and_lists_are_answered_while_others_ask_as_heavily_as_they_may(tmp_path: Path) -> None:
    people = list[Person]()

    def furnish(world: World) -> None:
        people.extend(world.person() for _ in range(ATTACKERS))

    house = ServedHouse(tmp_path, furnish=furnish)
    with house.serve() as server:
        visitor = Visitor(server, house.world)
        fill(visitor)
        tokens = [token(server, house.world, person) for person in people]
        taken(visitor)
        idle = {what: statistics.quantiles(times, n=100)[98] for what, times in taken(visitor).items()}
        for number, bounds in ((1, {what: 10 * each for what, each in idle.items()}), (ATTACKERS, {})):
            with attacked(server, tokens[:number]) as statuses:
                for what, times in taken(visitor).items():
                    print(
                        f"{what} beside {number} attacking ({dict(statuses)}): p50 {statistics.median(times):.0f} ms, "
                        f"p99 {statistics.quantiles(times, n=100)[98]:.0f} ms, longest {max(times):.0f} ms; "
                        f"idle p99 {idle[what]:.0f} ms, the bound is {bounds.get(what, 2000):.0f} ms"
                    )
        assert not server.has_logged("bug")
        visitor.close()
