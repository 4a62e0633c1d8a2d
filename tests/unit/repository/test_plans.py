"""How SQLite looks up what a search and the index agent ask for: by a key, however many rows there are."""

from collections.abc import Callable

import pytest
from sqlalchemy.engine import Connection

from muniment.repository.store.change_log import changes
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.plans import steps
from tests.shelf import Shelf

IDS = [f"09000001{number:08x}" for number in range(25)]
CALLER = Principals("boris@staff", frozenset(f"group-{number}@staff" for number in range(25)))

QUESTIONS: dict[str, Callable[[Connection], object]] = {
    "objects": lambda cx: inventory.rows(cx, 1, IDS),
    "texts": lambda cx: queue.text_of(cx, IDS),
    "ACLs": lambda cx: acls.permissions_by_acl(cx, 1, CALLER, Permission.READ),
    "changes": lambda cx: changes.hiding(cx, 1, changes.START, 100),
}
NARROWEST = {"objects": "(id=?)", "texts": "(object_id=?)", "ACLs": "(accessor=?", "changes": "sequence>?)"}


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
@pytest.mark.parametrize("what", QUESTIONS)
def test_each_is_looked_up_by_its_key(shelf: Shelf, what: str) -> None:
    plans = [" ".join(looked_up) for _, looked_up in steps(shelf.database, QUESTIONS[what])]
    assert len(plans) == 1
    assert NARROWEST[what] in plans[0], plans[0]
    assert "SCAN" not in plans[0]


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
def test_the_contents_of_many_hits_are_looked_up_by_their_counters(shelf: Shelf) -> None:
    ((_, looked_up),) = steps(shelf.database, lambda cx: lists.content_digests(cx, 1, range(1000)))
    assert "SEARCH objects USING INTEGER PRIMARY KEY (rowid=?)" in looked_up, looked_up
