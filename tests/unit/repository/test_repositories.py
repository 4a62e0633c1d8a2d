"""Which repositories are there, and which directory resource guards each?"""

from muniment.clock import Instant
from muniment.db import Database
from muniment.repository import repositories
from tests.counting import cost

HERS, THEIRS = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"


def test_what_a_resource_guards_is_asked_of_the_database(repository_db: Database, now: Instant) -> None:
    with repository_db.begin() as cx:
        for name in ("plans", "archive", "minutes", "letters"):
            repositories.add(cx, name, HERS if name in ("plans", "archive") else THEIRS, "", now)
    with cost(repository_db) as counted, repository_db.read() as cx:
        guarded = repositories.guarded_by(cx, HERS)
    assert [one.name for one in guarded] == ["archive", "plans"]
    assert counted.rows == 2
