"""What each owner keeps is counted exactly, and nobody but an administrator keeps more than they may."""

import asyncio
import random
import threading
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy.engine import Connection
from starlette.applications import Starlette

from muniment.database import connections
from muniment.repository.api import routes
from muniment.repository.bulk import removal
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import QuotaExceeded
from muniment.repository.store import repositories
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.contents import stored_contents, usage
from muniment.repository.store.objects.contents.usage import Amount, StorageQuota
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Principals
from tests.counting import cost
from tests.shelf import ADMIN, BORIS, MARTA, Shelf


def make(shelf: Shelf, caller: Principals, quota: StorageQuota, *sizes: int) -> list[str]:
    """Make documents of these sizes in one transaction."""
    wanted = [NewObject("document", {"object_name": f"{size}"}, None, shelf.content("x" * size)) for size in sizes]
    with shelf.database.begin() as cx:
        made = creation.create_all(cx, shelf.view(caller), wanted, shelf.now, quota)
    return [one.id for one in made]


def replace(shelf: Shelf, caller: Principals, object_id: str, size: int, quota: StorageQuota) -> None:
    with shelf.database.begin() as cx:
        content = shelf.content("x" * size)
        objects.replace_content(cx, shelf.repository, caller, object_id, content, "text/plain", shelf.now, quota=quota)


def undo(shelf: Shelf, object_id: str) -> None:
    """Delete in a transaction that is killed before its commit."""
    with suppress(ZeroDivisionError), shelf.database.begin() as cx:
        objects.delete(cx, shelf.repository, ADMIN, object_id, shelf.now)
        raise ZeroDivisionError


def counted(shelf: Shelf) -> dict[str, Amount]:
    """What was counted, which must be what there is."""
    with shelf.database.read() as cx:
        found = usage.usage_by_owner(cx)
        assert found == inventory.amounts_by_owner(cx)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_after_any_history_the_counts_are_what_there_is(shelf: Shelf, seed: int) -> None:
    chance = random.Random(seed)
    made: list[str] = []
    for _ in range(60):
        step = chance.choice(["make", "many", "replace", "delete", "give", "fail"])
        if step in ("make", "many") or not made:
            caller = chance.choice([MARTA, BORIS, ADMIN])
            made += make(
                shelf, caller, StorageQuota(), *(chance.randint(0, 90) for _ in range(3 if step == "many" else 1))
            )
        elif step == "replace":
            replace(shelf, ADMIN, chance.choice(made), chance.randint(0, 90), StorageQuota())
        elif step == "delete":
            shelf.delete(made.pop(chance.randrange(len(made))), ADMIN)
        elif step == "give":
            shelf.change(chance.choice(made), {"owner_name": chance.choice([MARTA.id, BORIS.id, "edith@demo"])}, ADMIN)
        else:
            undo(shelf, made[0])
        counted(shelf)
    for object_id in made:
        shelf.delete(object_id, ADMIN)
    assert counted(shelf) == {}


def test_what_goes_with_a_repository_is_each_owner_s_no_more(shelf: Shelf) -> None:
    make(shelf, MARTA, StorageQuota(), 40, 60)
    make(shelf, BORIS, StorageQuota(), 7)
    with shelf.database.begin() as cx:
        assert len(removal.remove_objects(cx, shelf.repository, 2)) == 2
    assert counted(shelf) == {BORIS.key: Amount(1, 7)}


def test_the_contents_of_all_repositories_are_counted_in_one_row(shelf: Shelf) -> None:
    with shelf.database.read() as cx:
        assert stored_contents.amount(cx) == Amount(0, 0)
    make(shelf, MARTA, StorageQuota(), 40, 0)
    with shelf.database.begin() as cx:
        without = NewObject("document", {"object_name": "no content"}, None, None)
        creation.create_all(cx, shelf.view(MARTA), [without], shelf.now, StorageQuota())
        other = repositories.add(cx, "other", "0", "", shelf.now)
        acls.initialise(cx, other.id, shelf.now)
        there = NewObject("document", {"object_name": "there"}, None, shelf.content("xx"))
        creation.create_all(cx, RepositoryView.read(cx, other, MARTA), [there], shelf.now, StorageQuota())
    with cost(shelf.database) as spent, shelf.database.read() as cx:
        assert stored_contents.amount(cx) == Amount(3, 42)
    assert spent.rows == 1


def test_an_owner_keeps_no_more_objects_and_bytes_than_they_may(shelf: Shelf) -> None:
    quota = StorageQuota(3, 100)
    first, _ = make(shelf, MARTA, quota, 40, 60)
    with pytest.raises(QuotaExceeded, match="more content than one user may own: 100 bytes"):
        make(shelf, MARTA, quota, 1)
    make(shelf, MARTA, quota, 0)
    with pytest.raises(QuotaExceeded, match="more objects than one user may own: 3"):
        make(shelf, MARTA, quota, 0)
    with pytest.raises(QuotaExceeded):
        replace(shelf, MARTA, first, 41, quota)
    replace(shelf, MARTA, first, 39, quota)
    make(shelf, BORIS, quota, 100)
    assert counted(shelf) == {MARTA.key: Amount(3, 99), BORIS.key: Amount(1, 100)}


def test_what_is_there_stays_and_administrators_have_no_quota(shelf: Shelf) -> None:
    first, second = make(shelf, MARTA, StorageQuota(), 500, 500)
    lower = StorageQuota(1, 100)
    replace(shelf, MARTA, first, 400, lower)
    with pytest.raises(QuotaExceeded):
        replace(shelf, MARTA, second, 501, lower)
    replace(shelf, ADMIN, second, 600, lower)
    make(shelf, ADMIN, lower, 500, 500)
    shelf.change(first, {"owner_name": BORIS.id}, ADMIN)
    assert counted(shelf)[BORIS.key] == Amount(1, 400)


def test_of_callers_at_one_time_none_gets_past_the_quota(shelf: Shelf) -> None:
    quota, refused = StorageQuota(10, 10_000), []

    def work() -> None:
        for _ in range(4):
            try:
                make(shelf, MARTA, quota, 7)
            except QuotaExceeded:
                refused.append(1)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert counted(shelf) == {MARTA.key: Amount(10, 70)}
    assert len(refused) == 14


def test_many_new_objects_are_counted_by_one_statement(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    on_driver = connections.on_driver

    def note(cx: Connection, sql: str, values: Any = None, **how: Any) -> Any:
        sent.append(sql)
        return on_driver(cx, sql, values, **how)

    monkeypatch.setattr(connections, "on_driver", note)
    make(shelf, MARTA, StorageQuota(), *range(100))
    assert sum("INTO usage" in statement for statement in sent) == 1


class _Unread:
    """A body that nobody may ask for."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self) -> dict[str, Any]:
        self.asked += 1
        return {"type": "http.request", "body": b"x" * 10, "more_body": True}


def _sent(shelf: Shelf, path: str, headers: dict[str, str], most: int) -> tuple[int, int]:
    """Post a body that does not end to a repository whose users may own 100 bytes: its status, and what was read."""
    half = shelf.context(RepositoryOptions(max_stored_bytes=most))
    path, _, query = path.partition("?")
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"authorization", b"Bearer marta"), *raw],
        "server": ("testserver", 80),
        "scheme": "http",
        "http_version": "1.1",
    }
    body, statuses = _Unread(), []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    asyncio.run(Starlette(routes=routes.routes(half))(scope, body, send))
    assert not [
        file for file in (shelf.folder / "content").rglob("*") if file.is_file() and file.name != "removals.lock"
    ]
    return statuses[0], body.asked


def test_an_upload_that_says_that_it_is_too_large_is_refused_before_it_is_read(shelf: Shelf) -> None:
    create = "/rest/repositories/demo/objects?object-name=a.bin"
    own, _ = make(shelf, MARTA, StorageQuota(), 30, 30)
    replaced = f"/rest/repositories/demo/objects/{own}/contents"
    for path, declared in ((create, "41"), (replaced, "71")):
        headers = {"Content-Type": "application/octet-stream", "Content-Length": declared}
        assert _sent(shelf, path, headers, 100) == (403, 0)
    parts = {"Content-Type": "multipart/form-data; boundary=b", "Content-Length": str(40 + 262_144 + 65_536 + 1)}
    assert _sent(shelf, "/rest/repositories/demo/objects", parts, 100) == (403, 0)


def test_an_upload_that_does_not_say_its_size_is_broken_off_where_the_room_ends(shelf: Shelf) -> None:
    make(shelf, MARTA, StorageQuota(), 30, 30)
    chunked = {"Content-Type": "application/octet-stream", "Transfer-Encoding": "chunked"}
    path = "/rest/repositories/demo/objects?object-name=a.bin"
    assert _sent(shelf, path, chunked, 100) == (403, 5)
