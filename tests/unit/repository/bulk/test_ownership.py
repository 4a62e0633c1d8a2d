"""Whose things are given away, if a user is named who has left?"""

from muniment.database.connections import Database
from muniment.ground import clock
from muniment.repository.bulk import ownership
from muniment.repository.store.permissions import name_keys


def test_a_present_bearer_who_has_not_called_yet_is_no_former_bearer(repository_db: Database) -> None:
    """What waits under the name of a new user, such as imported objects, is theirs."""
    with repository_db.begin() as cx:
        assert name_keys.keys(cx, {"alice@p": "first"}) == {"alice@p": "alice@p"}
        assert ownership.former_keys(cx, "Alice@P", "first") == []
        assert ownership.former_keys(cx, "alice@p", None) == []
        assert ownership.former_keys(cx, "alice@p", "") == ["alice@p"]
        name_keys.bind(cx, {"alice@p": "first"}, clock.now())
        assert ownership.former_keys(cx, "alice@p", "first") == []
        assert ownership.former_keys(cx, "alice@p", "second") == ["alice@p"]
