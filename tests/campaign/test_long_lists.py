"""Nine callers list what is long without pause: what tokeninfo takes meanwhile, beside what it takes when idle."""

import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from muniment.database.connections import Database
from tests.campaign.house import REPOSITORY, Visitor
from tests.conftest import Fresh
from tests.e2e.processes import ServedHouse, Server
from tests.waiting import until

pytestmark = pytest.mark.campaign

CHILDREN = 200_000
ACLS, ENTRIES = 197, 1000
CALLERS = 9
IDLE, BUSY = 3.0, 8.0
"""Seconds that tokeninfo is asked without pause, before the lists and beside them."""

_NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)",
    "postgresql": "WITH n(i) AS (SELECT generate_series(1, :count))",
}
_DIGITS = {"sqlite": "printf('%08x', i + 1000000)", "postgresql": "lpad(to_hex(i + 1000000), 8, '0')"}


def fill(database: Database, child_id: str) -> None:
    """Put as many children beside this one as there are to be, alike but for id and name."""
    with database.begin() as cx:
        child = cx.execute(sa.text("SELECT * FROM objects WHERE id = :id"), {"id": child_id}).mappings().one()
        own = {
            "seq": "i + 1000000",
            "id": f"substr(id, 1, 8) || {_DIGITS[database.dialect]}",
            "name": "'child ' || (i % 1000)",
        }
        columns = [name for name in child if name != "content_key"]
        values = ", ".join(own.get(name, name) for name in columns)
        cx.execute(
            sa.text(
                f"{_NUMBERS[database.dialect]} INSERT INTO objects ({', '.join(columns)}) "
                f"SELECT {values} FROM n, objects WHERE id = :id"
            ),
            {"count": CHILDREN, "id": child_id},
        )
        cx.exec_driver_sql("ANALYZE objects")


def tokeninfo(visitor: Visitor, seconds: float) -> list[float]:
    """Verify a token without pause, and say how long each answer took, in milliseconds."""
    took, until_then = list[float](), time.perf_counter() + seconds
    while time.perf_counter() < until_then:
        began = time.perf_counter()
        answer = visitor.tokeninfo()
        took.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, answer.text
    return took


Take = Callable[..., str]
"""Lists a page, and says where the next one is; nothing where there is none."""


@contextmanager
def listing(server: Server, token: str, rounds: Callable[[Take], None]) -> Iterator[Counter[int]]:
    """List as nine callers do, each round after round until the block ends."""
    statuses, wrong, over = Counter[int](), list[str](), threading.Event()

    def take(http: httpx.Client, address: str, **parameters: str) -> str:
        if over.is_set():
            return ""
        answer = http.get(address, params=parameters or None)
        statuses[answer.status_code] += 1
        if answer.status_code == 200:
            return next((link["href"] for link in answer.json()["links"] if link["rel"] == "next"), "")
        if answer.status_code != 503 or not answer.headers.get("retry-after", "").isdigit():
            wrong.append(f"{answer.status_code} {answer.text[:200]}")
        return ""

    def caller() -> None:
        with server.client() as http:
            http.headers.update({"Authorization": f"Bearer {token}", "Accept": "application/json"})
            while not over.is_set():
                rounds(partial(take, http))

    with ThreadPoolExecutor(CALLERS) as threads:
        callers = [threads.submit(caller) for _ in range(CALLERS)]
        try:
            yield statuses
        finally:
            over.set()
    for each in callers:
        each.result()
    assert not wrong, wrong[:3]


def beside(house: ServedHouse, server: Server, visitor: Visitor, rounds: Callable[[Take], None], what: str) -> None:
    """Print how long tokeninfo takes while nine callers list, beside its bound; each of them is answered meanwhile."""
    tokeninfo(visitor, 1)
    idle = statistics.quantiles(tokeninfo(visitor, IDLE), n=100)[98]
    with listing(server, visitor.access, rounds) as statuses:
        until(lambda: statuses[200] >= CALLERS, "not all callers are at work")
        busy = tokeninfo(visitor, BUSY)
    assert statuses[200] > CALLERS, statuses
    print(
        f"{sa.make_url(house.urls[1]).get_backend_name()}: {CALLERS} callers list {what} ({dict(statuses)}): tokeninfo "
        f"p99 {statistics.quantiles(busy, n=100)[98]:.0f} ms, longest {max(busy):.0f} ms of {len(busy)}; "
        f"the bound is 5 x {idle:.0f} = {5 * idle:.0f} ms"
    )


def test_tokeninfo_goes_on_while_nine_callers_list_a_folder_of_200_000_objects(tmp_path: Path, fresh: Fresh) -> None:
    house = ServedHouse(tmp_path, fresh("directory"), fresh("repository"))
    with house.serve() as server:
        visitor = Visitor(server, house.world)
        made = visitor.http.post(f"{REPOSITORY}/cabinets", json={"properties": {"object_name": "large"}})
        folder = f"{REPOSITORY}/folders/{made.json()['properties']['r_object_id']}/documents"
        child = visitor.http.post(folder, json={"properties": {"object_name": "child", "acl_name": "public"}})
        assert child.status_code == 201, child.text
        database = Database(house.urls[1])
        fill(database, child.json()["properties"]["r_object_id"])
        database.close()
        wanted = {"items-per-page": "100", "include-total": "true"}

        def rounds(take: Take) -> None:
            """The first page with the total, a page far in, from there the next ones."""
            take(folder, **wanted)
            following = take(folder, **wanted, page="90")
            for _ in range(10):
                if following:
                    following = take(following)

        beside(house, server, visitor, rounds, f"a folder of {CHILDREN} objects")
        visitor.close()


def test_tokeninfo_goes_on_while_the_largest_acls_of_one_caller_are_listed(tmp_path: Path, fresh: Fresh) -> None:
    """failures C2: the statements and rows of a page are counted by unit tests."""
    house = ServedHouse(tmp_path, fresh("directory"), fresh("repository"))
    entries = [{"accessor": f"user {number}@demo", "basic-permission": "Read"} for number in range(ENTRIES)]
    acls = f"{REPOSITORY}/acls"
    with house.serve("--set", f"repository.max_acl_entries={ACLS * ENTRIES}") as server:
        visitor = Visitor(server, house.world)
        for number in range(ACLS):
            made = visitor.http.post(acls, json={"name": f"large {number}", "permitted": entries})
            assert made.status_code == 201, made.text

        def rounds(take: Take) -> None:
            following = take(acls, **{"items-per-page": "1"})
            take(acls, **{"items-per-page": "1000", "include-total": "true"})
            if following:
                take(following)

        own = visitor.http.get(acls, params={"items-per-page": "1000"}).json()["entries"]
        assert sum(entry["title"].startswith("large ") for entry in own) == ACLS, own[:2]
        beside(house, server, visitor, rounds, f"{ACLS} ACLs of {ENTRIES} entries")
        visitor.close()
