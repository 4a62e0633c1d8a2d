"""Which ACL does a caller mean by a text, and by which text is an object's ACL shown to that caller?

The text is one that ``acl_look_up`` knows, or the id of an object that carries the ACL: only one's own object, unless
an administrator asks. So callers can name an unnamed ACL without learning which other objects carry it.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.repository.refusals import UnknownAcl
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.table import StoredObject, objects, wastebasket
from muniment.repository.store.permissions import acl_look_up, acls, unnamed_acls
from muniment.repository.store.permissions.acl_look_up import ShownAcl
from muniment.repository.store.permissions.principals import Principals


def shown_name(cx: Connection, stored: StoredObject, principals: Principals) -> str:
    """If the caller may assign the ACL, they can send this text."""
    return shown_acls(cx, [stored], principals)[stored.id].text


def shown_acls(cx: Connection, several: Sequence[StoredObject], principals: Principals) -> dict[str, ShownAcl]:
    """Return what ``shown_name`` returns for each of these objects, and the owner of its ACL, by the object's id.

    Entries without a named ACL have the object's owner.
    """
    acls_shown = acl_look_up.shown_acls(cx, {stored.acl_id for stored in several}, principals)
    return {
        stored.id: shown_acl if shown_acl.text else shown_acl._replace(text=stored.id, owner=stored.owner)
        for stored, shown_acl in [(stored, acls_shown[stored.acl_id]) for stored in several]
    }


def find_assignable(cx: Connection, repository_id: int, text: str, principals: Principals) -> int:
    """Raises UnknownAcl."""
    folded_id = text.lower()
    if not object_ids.may_be_of(folded_id, "object"):
        return acls.find_assignable(cx, repository_id, text, principals)
    columns = sa.select(objects.c.acl_id, objects.c.owner_key)
    row = cx.execute(columns.where(objects.c.id == folded_id, objects.c.repository_id == repository_id)).first()
    if row is None or not (principals.administrator or principals.is_(row.owner_key)):
        raise UnknownAcl(f"There is no ACL {text!r}.")
    return int(row.acl_id)


def remove_unused(cx: Connection) -> int:
    """Remove some unnamed ACLs that no object or folder, in the wastebasket too, refers to; return how many."""

    def is_used(acl_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        columns = [table.c[name] for table in (objects, wastebasket) for name in ("acl_id", "default_acl_id")]
        return sa.or_(*(sa.exists(sa.select(sa.literal(1)).where(column == acl_id)) for column in columns))

    return unnamed_acls.remove_unused(cx, is_used)
