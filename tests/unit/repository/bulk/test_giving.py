"""Whose things are given away, if a user is named who has left?"""

from muniment.database.connections import Database
from muniment.ground import clock
from muniment.repository.bulk import giving
from muniment.repository.store.permissions import bearers


def test_a_present_bearer_who_has_not_called_yet_is_no_former_bearer(repository_db: Database) -> None:
    """What waits under the name of a new user, such as imported objects, is theirs."""
    with repository_db.begin() as cx:
        assert bearers.keys(cx, {"alice@p": "first"}) == {"alice@p": "alice@p"}
        assert giving.former_keys(cx, "Alice@P", "first") == []
        assert giving.former_keys(cx, "alice@p", None) == []
        assert giving.former_keys(cx, "alice@p", "") == ["alice@p"]
        bearers.bind(cx, {"alice@p": "first"}, clock.now())
        assert giving.former_keys(cx, "alice@p", "first") == []
        assert giving.former_keys(cx, "alice@p", "second") == ["alice@p"]
