"""What is removed and made again under its name inherits nothing (failures C8). Users: tests/interface."""

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Database, repository_tables
from muniment.directory.administration import decisions, resource_decisions
from muniment.directory.entries import editing, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import sessions, tokeninfo
from muniment.directory.refusals import AccessEnded, DeadToken, InvalidGrant, UnknownResource, WrongResource
from muniment.ground.clock import Instant
from muniment.ground.refusals import Malformed
from muniment.repository import keys
from muniment.repository.api.wire import positions
from muniment.repository.bulk import removal
from muniment.repository.bulk.importing import record
from muniment.repository.bulk.importing.record import ImportRecord
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import UnknownAcl, UnknownLink
from muniment.repository.search.answering.kept import kept_searches
from muniment.repository.search.answering.ordering.scrolls import Holder
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.filters import cursors
from muniment.repository.store.filters.cursors import CursorBinding, Part
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.types import object_types, type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository
from tests.office import Office

MARTA = Principals("marta@staff", keys={"marta@staff": "marta@staff"})
DOCUMENT = b"<search/>"


def test_a_group_has_no_members_no_groups_and_no_role(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        outer = editing.add_group(cx, office.partition, "outer", now)
        memberships.add_member(cx, outer, office.group)
        decisions.remove(cx, office.group, now)
        again = editing.add_group(cx, office.partition, "staff", now)
        assert memberships.members(cx, again) == memberships.groups_of(cx, again.id) == []
        assert resources.with_role_member(cx, again) == []
        memberships.add_member(cx, again, office.bob)
        assert not resources.admits(cx, office.resource.id, office.bob.id)
        assert again.uuid != office.group.uuid
        assert again.id != office.group.id


@pytest.mark.parametrize("kind", ["unit", "partition"])
def test_a_unit_and_a_partition_open_nothing(office: Office, now: Instant, kind: str) -> None:
    def make(cx: Connection) -> Entry:
        if kind == "unit":
            return editing.add_unit(cx, office.partition, "again", now)
        return editing.add_partition(cx, office.names, "again", now)

    with office.db.begin() as cx:
        first = make(cx)
        resources.add_to_role(cx, office.resource, first)
        ada = editing.add_user(cx, first, "ada", now)
        assert resources.admits(cx, office.resource.id, ada.id)
        decisions.remove(cx, ada, now)
        decisions.remove(cx, first, now)
        again = make(cx)
        ada = editing.add_user(cx, again, "ada", now)
        assert resources.with_role_member(cx, again) == []
        assert not resources.admits(cx, office.resource.id, ada.id)
        assert again.uuid != first.uuid
        assert again.id != first.id


def test_a_client_has_no_tokens_and_no_secret(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    with office.db.begin() as cx:
        editing.set_password_hash(cx, office.client, "a secret's hash", now)
        decisions.remove(cx, office.client, now)
        again = editing.add_client(cx, "app", now)
        assert not again.has_password
        assert sessions.of_client(cx, again, now) == []
    with pytest.raises(DeadToken):
        office.info(issued.access_token, now)
    with pytest.raises(InvalidGrant):
        office.refresh(issued, now)


def test_a_resource_is_not_activated_admits_nobody_and_has_no_tokens(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    with office.db.begin() as cx:
        resource_decisions.remove_resource(cx, office.resource, now)
        again = resources.add(cx, office.names, "My API", now)
        assert again.activated is None
        assert resources.role_members(cx, again) == []
        resources.activate(cx, again.id, now)
        resources.add_to_role(cx, again, office.group)
    with pytest.raises((DeadToken, AccessEnded, UnknownResource)):
        office.info(issued.access_token, now)
    with pytest.raises(InvalidGrant):
        office.refresh(issued, now)
    with office.db.read() as cx, pytest.raises((DeadToken, WrongResource)):
        tokeninfo.verify(cx, office.options, office.memory, issued.access_token, again.id, now)


def fill(cx: Connection, one: Repository, now: Instant) -> tuple[str, str, str]:
    """Keep some of everything in a repository; give the link, the cursor and the position that its callers have."""
    type_editing.add_type(cx, one.id, ObjectType("report", "document"), now)
    acls.add(cx, one.id, "papers", MARTA, {"world": Permission.READ}, now)
    view = RepositoryView.read(cx, one, MARTA)
    news = [NewObject("report", {"object_name": f"{number}", "acl_name": "papers"}) for number in range(3)]
    made = creation.create_all(cx, view, news, now)
    record.keep_records(cx, one.id, "/files", {"0": ImportRecord(made[0].id)})
    link = kept_searches.keep_search(cx, Holder(one.id, MARTA.key), DOCUMENT, RepositoryOptions(link_seconds=600), now)
    cursor = cursors.next_cursor(cx, CursorBinding(one.id, MARTA.key, "acls"), Part(1, 1), [("a", "1"), ("b", "2")])
    position = positions.spell(keys.seal(cx), one.id, MARTA, changes.latest(cx, one.id), plain=False)
    assert cursor is not None
    return link, cursor, position


def test_a_repository_holds_nothing_and_opens_nothing_sealed_for_the_former(
    repository_db: Database, now: Instant
) -> None:
    def make(cx: Connection) -> Repository:
        one = repositories.add(cx, "again", "0", "", now)
        acls.initialise(cx, one.id, now)
        return one

    with repository_db.begin() as cx:
        first = make(cx)
        link, cursor, position = fill(cx, first, now)
    with repository_db.begin() as cx:
        removal.close(cx, first, with_everything=True)
        while removal.remove_objects(cx, first, 2).number:
            pass
        removal.finish(cx, first)
    with repository_db.begin() as cx:
        again = make(cx)
    with repository_db.read() as cx:
        assert [(one.kind, one.number) for one in removal.count_rows(cx, again)] == [("ACLs", 2)]
        for table in repository_tables.sorted_tables:
            if "repository_id" in table.c:
                numbers = set(cx.scalars(sa.select(table.c.repository_id)))
                assert numbers <= {again.id}, table.name
        assert record.find(cx, again.id, "/files") == {}
        assert "report" not in {kind.name for kind in object_types.catalogue(cx, again.id).types()}
        assert changes.latest(cx, again.id) == changes.START
        with pytest.raises(UnknownAcl):
            acls.find(cx, again.id, "papers", MARTA)
        with pytest.raises(UnknownLink):
            kept_searches.follow(cx, Holder(again.id, MARTA.key), link, now)
        with pytest.raises(Malformed):
            cursors.stretch(cx, CursorBinding(again.id, MARTA.key, "acls"), Part(2, 1, cursor))
        with pytest.raises(Malformed):
            positions.read(keys.seal(cx), again.id, MARTA, position)
