"""What a search for ``acl_name`` compares, and that it tells nothing of ACLs that are hidden."""

import pytest

from muniment.repository.refusals import WrongValue
from muniment.repository.search.aql.tree import ExpressionSet, Property, PropertyList, PropertyRange
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission
from tests.shelf import ADMIN, BORIS, EDITH, MARTA, Shelf

pytestmark = pytest.mark.campaign_on("postgresql")


def named(*texts: str) -> PropertyList:
    return PropertyList("acl_name", "IN", texts)


def test_acl_name_calls_an_acl_as_an_assignment_does(shelf: Shelf) -> None:
    shelf.permit("circle", {"staff@demo": Permission.READ})
    kept, open_one = shelf.add("pump", acl="circle"), shelf.add("pump", acl="public")
    with shelf.database.begin() as cx:
        shown_id = acls.find(cx, shelf.repository.id, "circle", MARTA).shown_id
        acls.add(cx, shelf.repository.id, "circle", EDITH, {}, shelf.now)
    shelf.catch_up()
    assert shelf.find(MARTA, named("circle")) == [kept]
    assert shelf.find(EDITH, named("circle")) == []
    for text in ("marta@demo/circle", shown_id):
        assert shelf.find(EDITH, named(text)) == [kept]
        assert shelf.find(BORIS, named(text)) == []
    assert shelf.find(BORIS, named("public", "circle", "marta@demo/circle")) == [open_one]
    both = ExpressionSet("AND", (named("circle"), Property("object_name", "BEGINS_WITH", "pump")))
    assert shelf.find(MARTA, both) == [kept]


def test_an_objects_owner_cannot_find_out_the_name_of_a_hidden_acl(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        hidden = acls.add(cx, shelf.repository.id, "merger", ADMIN, {"owner": Permission.DELETE}, shelf.now)
    kept = shelf.add("pump")
    shelf.change(kept, {"acl_name": hidden.shown_id}, ADMIN)
    shelf.catch_up()
    assert shelf.find(MARTA, "pump") == [kept]
    for text in ("merger", "root@demo/merger", hidden.shown_id):
        assert shelf.find(MARTA, named(text)) == []
        assert shelf.find(ADMIN, named(text)) == [kept]
    for probe in (Property("acl_name", "BEGINS_WITH", "mer"), PropertyRange("acl_name", "BETWEEN", "m", "n")):
        for caller in (MARTA, ADMIN):
            with pytest.raises(WrongValue, match="IN and NOT_IN alone"):
                shelf.find(caller, probe)
