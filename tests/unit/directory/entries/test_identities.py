"""The identities of users and groups are found by their ids, however these are written."""

from muniment.database.connections import Database
from muniment.directory.entries import entries, identities
from muniment.ground.clock import Instant
from tests.office import Office


def test_each_spelling_of_an_id_has_its_identity(directory_db: Database, now: Instant) -> None:
    office = Office(directory_db, now)
    with office.db.read() as cx:
        name, _, partition = entries.shown_id(office.names, office.bob).partition("@")
        spellings = [f"{name.lower()}@{partition}", f"{name.upper()}@{partition}", f"nobody@{partition}", name]
        assert identities.identities_of(cx, office.names, spellings) == dict.fromkeys(spellings[:2], office.bob.uuid)
