"""What does a person read of an object's properties?"""

from collections.abc import Mapping

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import timestamp
from muniment.repository.api.shapes import collections
from muniment.repository.api.wire import spelling
from muniment.repository.options import RepositoryNames
from muniment.repository.page import frame
from muniment.repository.page.asking import choices
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Value
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import object_types

HEADINGS: Mapping[str, str] = {
    "object_name": "Name",
    "title": "Title",
    "subject": "Subject",
    "keywords": "Keywords",
    "authors": "Authors",
    "language_code": "Language",
    "a_content_type": "Format",
    "r_full_content_size": "Size",
    "owner_name": "Owner",
    "acl_name": "ACL",
    "r_object_type": "Type",
    "r_folder_path": "Path",
    "a_content_date": "Date of the content",
    "r_creation_date": "Created",
    "r_creator_name": "Created by",
    "r_modify_date": "Changed",
    "r_modifier": "Changed by",
    "r_version_label": "Version",
    "i_latest_flag": "Latest version",
    "r_log_entry": "About this version",
    "r_lock_owner": "Checked out by",
    "r_lock_date": "Checked out",
    "r_index_status": "Reading of its text",
    "r_object_id": "Id",
    "i_chronicle_id": "Id of the first version",
    "i_antecedent_id": "Id of the version before",
}

HIDDEN = frozenset({"i_folder_id", "i_ancestor_id", "log_entry", *object_types.COMPUTED})
"""Built-in properties that say nothing to people, or nothing that the page does not say otherwise."""


class ShownProperty(msgspec.Struct, frozen=True):
    """A property as the page shows it."""

    heading: str
    values: list[str]


def shown(cx: Connection, view: RepositoryView, stored: StoredObject, names: RepositoryNames) -> list[ShownProperty]:
    acl_name = collections.object_bodies(cx, view, [stored])[0].acl_name
    values = inventory.values(stored, view.catalogue, acl_name)
    custom = [name for name in values if name not in HEADINGS and name not in HIDDEN]
    listed = []
    for name in (*HEADINGS, *custom):
        if not values.get(name) or (name == "r_full_content_size" and stored.content is None):
            continue
        definition = view.catalogue.property(name)
        heading = HEADINGS.get(name) or definition.label or spelling.write_property(name, names)
        listed.append(ShownProperty(heading, [_written(name, definition.kind, value) for value in values[name]]))
    return listed


def _written(name: str, kind: str, value: Value) -> str:
    if name == "a_content_type":
        return choices.format_label(str(value))
    if name == "r_full_content_size" and isinstance(value, int):
        return frame.amount(value)
    if kind == "date" and isinstance(value, int):
        return timestamp(value, precision="seconds").replace("T", " ").replace("Z", " UTC")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
