"""A repository that has something of everything an export holds."""

from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.contents.further_contents import ContentPlace, rendition
from muniment.repository.store.objects.decisions import assigned_acls, checkins, checkouts, contents, moving
from muniment.repository.store.objects.decisions.checkins import CheckIn
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.type_forms import AllowedForm, PropertyForm, TypeForm
from muniment.repository.store.permissions import name_keys
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.relations import comments, relation_types, relations
from muniment.repository.store.relations.relation_types import RelationType
from muniment.repository.store.relations.relations import RelationDraft
from muniment.repository.store.saved import saved_searches
from muniment.repository.store.saved.saved_searches import SavedDocument, SavedSearchQuota, SearchChange, WrittenNames
from tests.shelf import ADMIN, JON, MARTA, Shelf

FORMER = Principals("jon@demo", keys={"jon@demo": "jon@demo"})
"""Somebody who had Jon's name before him."""


def fill(shelf: Shelf, *, namesakes: bool = True) -> dict[str, StoredObject]:
    """Put something of everything into a repository, and return some of it by name."""
    if namesakes:
        with shelf.database.begin() as cx:
            name_keys.bind(cx, {"jon@demo": "identity of the first"}, shelf.now)
            key = name_keys.bind(cx, {"jon@demo": "identity of the second"}, shelf.now + 1)["jon@demo"]
        jon = Principals("jon@demo", keys={"jon@demo": key})
    else:
        jon = JON
    _define_types(shelf)
    made: dict[str, StoredObject] = {}
    made["cabinet"] = shelf.create({"object_name": "Schränke ☕ \N{ZERO WIDTH JOINER}"}, type_name="cabinet")
    made["other"] = shelf.create({"object_name": "Other"}, ADMIN, "cabinet")
    made["inner"] = shelf.create({"object_name": "Inner"}, type_name="folder", folder_id=made["cabinet"].id)
    made["letter"] = shelf.create(
        {
            "object_name": "A letter",
            "title": 'Dear \\u0000 "reader"',
            "pages": 3,
            "weight": 0.1,
            "sent": "2026-11-22T12:00:00.123Z",
            "sealed": True,
            "tags": ["a", "b", "ä"],
            "colour": "red",
            "a_content_type": "text/plain",
        },
        type_name="letter",
        folder_id=made["inner"].id,
        content=put(shelf, b"the charter was sealed"),
    )
    made["former's"] = shelf.create({"object_name": "Of him who left"}, FORMER)
    made["Jon's"] = shelf.create(
        {"object_name": "Of him who came", "a_content_type": "text/plain"},
        jon,
        content=put(shelf, b"the charter was sealed"),
    )
    shelf.acl("letters", {"owner": Permission.DELETE, "staff@demo": Permission.WRITE, "world": Permission.NONE})
    shelf.acl("common", {"jon@demo": Permission.READ}, ADMIN)
    later = shelf.create({"object_name": "Later"}, type_name="folder", folder_id=made["cabinet"].id)
    made["later"] = later
    administrator = shelf.view(ADMIN)
    with shelf.database.begin() as cx:
        now = shelf.now + 5
        assigned_acls.assign(cx, shelf.repository, MARTA, made["letter"].id, "letters", now)
        permitted = {"jon@demo": Permission.READ, "world": Permission.BROWSE}
        assigned_acls.permit(cx, shelf.repository, MARTA, made["inner"].id, permitted, now)
        assigned_acls.permit(cx, shelf.repository, FORMER, made["former's"].id, permitted, now)
        assigned_acls.set_default_acl(cx, shelf.repository, MARTA, later.id, {"jon@demo": Permission.WRITE}, now)
        # A folder lies in one that was made after it, and a document in several.
        moving.move(cx, administrator, made["inner"].id, made["cabinet"].id, later.id, now)
        moving.link(cx, administrator, made["letter"].id, made["cabinet"].id, now)
        moving.link(cx, administrator, made["letter"].id, later.id, now)
        for place, media_type, said in (
            (ContentPlace(True, 1), "text/plain", b"its second page"),
            (rendition("application/pdf", 0, ""), "application/pdf", b"%PDF-1.4 as a rendition"),
            (rendition("image/png", 2, "thumbnail"), "image/png; x=1", b""),
        ):
            content = put(shelf, said)
            contents.put(cx, shelf.repository, ADMIN, made["letter"].id, place, content, media_type, now)
    versions(shelf, made["letter"].id)
    with shelf.database.begin() as cx:
        relation_types.add(cx, shelf.repository.id, RelationType("replaces", "New for old"), ADMIN, shelf.now)
        for name, parent, child in (("replaces", "letter", "Jon's"), ("peer", "cabinet", "inner")):
            relations.add(
                cx, shelf.repository, RelationDraft(name, made[parent].id, made[child].id), ADMIN, shelf.now, 100
            )
        first = comments.add(cx, shelf.repository, made["letter"].id, "Is it real?", ADMIN, shelf.now, 100)
        comments.reply(cx, shelf.repository, first.id, "It is.\n\tI saw it.", MARTA, shelf.now + 1, 100)
        for kind in ("search", "template"):
            saved_searches.add(
                cx,
                shelf.repository.id,
                "search" if kind == "search" else "template",
                SearchChange(f"My {kind}", "what it finds", True),
                SavedDocument(
                    "xml", WrittenNames("urn:x", "dm_", "r_"), "<search>ä</search>".encode("utf-16"), question="?q=ä"
                ),
                MARTA,
                SavedSearchQuota(100, 100_000),
                shelf.now,
            )
        objects.delete(cx, shelf.repository, ADMIN, made["other"].id, shelf.now, keep_days=7)
    return made


def versions(shelf: Shelf, object_id: str) -> None:
    """Make a second version of a document, a branch of the first, and check the branch out."""
    view = shelf.view(ADMIN)
    with shelf.database.begin() as cx:
        checkouts.check_out(cx, shelf.repository, ADMIN, object_id, shelf.now + 10)
    with shelf.database.begin() as cx:
        what = CheckIn("next-major", {"title": "Second"}, put(shelf, b"a second version"), media_type="text/plain")
        checkins.check_in(cx, view, object_id, what, shelf.now + 11)
    with shelf.database.begin() as cx:
        checkouts.check_out(cx, shelf.repository, ADMIN, object_id, shelf.now + 12)
    with shelf.database.begin() as cx:
        branch = CheckIn(
            "branch-version", {}, comment="a branch", labels=("draft",), make_current=False, retain_lock=True
        )
        checkins.check_in(cx, view, object_id, branch, shelf.now + 13)


def put(shelf: Shelf, said: bytes) -> StoredContent:
    """Keep bytes in the store."""
    return shelf.store.put([said])


def _define_types(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        paper = TypeForm("paper", properties=[PropertyForm("pages", "integer", default=1)])
        type_editing.define_type(cx, shelf.repository.id, paper, shelf.now)
        properties = [
            PropertyForm("weight", "double"),
            PropertyForm("sent", "date", label="Sent on", default="2026-01-01T00:00:00Z"),
            PropertyForm("sealed", "boolean", searchable=False),
            PropertyForm("tags", "string", True, length=20, default=["x", "y"]),
            PropertyForm(
                "colour",
                "string",
                allowed=[AllowedForm("red", "Rot"), AllowedForm("blue", when=[1, 2])],
                is_open=True,
                depends_on="pages",
            ),
        ]
        letter = TypeForm("letter", "paper", "Brief", properties)
        type_editing.define_type(cx, shelf.repository.id, letter, shelf.now)
