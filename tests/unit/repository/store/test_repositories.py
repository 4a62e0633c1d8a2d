"""Which repositories are there, and which directory resource guards each?"""

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.refusals import UnknownRepository, WrongValue
from muniment.repository.store import repositories
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


UNREACHABLE = ["", ".", "..", " ", " plans", "plans ", "a\nb", "\x1b[2J", "a\x00b", "a\udcff", "a\u202eb", "x" * 121]


@pytest.mark.slow
@pytest.mark.parametrize("name", UNREACHABLE)
def test_no_repository_is_made_that_nobody_could_name(repository_db: Database, now: Instant, name: str) -> None:
    with repository_db.begin() as cx, pytest.raises(WrongValue, match="1 to 120 printable characters"):
        repositories.add(cx, name, HERS, "", now)


@pytest.mark.parametrize("name", ["a/b", "a, b", "...", ".json", "-r", "a\\b", "100 %", "Pläne", "x" * 120])
def test_any_other_name_can_be_had(repository_db: Database, now: Instant, name: str) -> None:
    with repository_db.begin() as cx:
        made = repositories.add(cx, name, HERS, "", now)
        assert repositories.find(cx, name) == made


def test_a_repository_of_an_earlier_release_keeps_its_name(repository_db: Database, now: Instant) -> None:
    columns = {"description": "", "resource_id": HERS, "created": now, "language": ""}
    with repository_db.begin() as cx:
        cx.execute(repositories.repositories.insert().values(name="", **columns))
        kept = repositories.find_open(cx, "")
        repositories.guard(cx, kept, THEIRS)
        assert [one.name for one in repositories.guarded_by(cx, THEIRS)] == [""]
        repositories.remove(cx, kept)
        with pytest.raises(UnknownRepository):
            repositories.find(cx, "")
