"""May the caller use the object that a row of another table names?"""

import sqlalchemy as sa

from muniment.repository.store.objects.table import objects
from muniment.repository.store.permissions import acl_entries
from muniment.repository.store.permissions.principals import Permission, Principals


def permits(object_id: sa.ColumnElement[str], principals: Principals, least: Permission) -> sa.ColumnElement[bool]:
    """Make the condition that the caller has this permission on an existing object; its owner always has Read."""
    each = objects.alias()
    exists = sa.exists().where(each.c.id == object_id)
    if principals.administrator:
        return exists
    allowed = acl_entries.highest(each.c.acl_id, each.c.owner_key, principals) >= int(least)
    if least <= Permission.READ:
        allowed = sa.or_(each.c.owner_key == principals.key, allowed)
    return exists.where(allowed)
