"""What do scopes tell of a user (OpenID Connect Core 5.1, 5.4; facts 3.4, 3.5)?"""

from collections.abc import Collection
from typing import Any

from sqlalchemy.engine import Connection

from muniment.directory.entries import attributes, entries, memberships
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.ground.clock import SECOND

_PROFILE = {"given_name": "givenName", "family_name": "sn", "middle_name": "initials", "locale": "preferredLanguage"}
_TEXTS = ("displayName", "cn", "mail", *_PROFILE.values())

SUPPORTED = (
    "sub",
    "name",
    *_PROFILE,
    "preferred_username",
    "updated_at",
    "uid",
    "pid",
    "email",
    "grp",
    "role",
    "groupids",
    "roleids",
)


def of_user(cx: Connection, names: DirectoryNames, user: Entry, scopes: Collection[str]) -> dict[str, Any]:
    """``scopes`` have neutral names. The subject is the user's ``entryUUID``, which no later user gets."""
    told: dict[str, Any] = {"sub": user.uuid}
    reads = "profile" in scopes or "email" in scopes
    texts = attributes.first_texts_of_attributes(cx, [user.id], _TEXTS).get(user.id, {}) if reads else {}
    if "profile" in scopes:
        user_id = entries.shown_id(names, user)
        told |= {
            "name": texts.get("displayName") or texts.get("cn") or user.name,
            "preferred_username": user_id,
            "updated_at": user.modified // SECOND,
            "uid": user_id,
            "pid": entries.shown_partition(names, user),
        }
        told |= {claim: texts[name] for claim, name in _PROFILE.items() if name in texts}
    if "email" in scopes and "mail" in texts:
        told["email"] = texts["mail"]
    return told | _memberships(cx, names, user, scopes)


def _memberships(cx: Connection, names: DirectoryNames, user: Entry, scopes: Collection[str]) -> dict[str, list[str]]:
    """Groups and roles that contain the user, however deep: by name, and by their identities."""
    claims = {"groups": "grp", "roles": "role", "groupids": "groupids", "roleids": "roleids"}
    wanted = [scope for scope in claims if scope in scopes]
    if not wanted:
        return {}
    around = memberships.groups_of(cx, user.id)
    return {
        claims[scope]: [
            entry.uuid if scope.endswith("ids") else entries.shown_id(names, entry)
            for entry in around
            if entry.kind == ("group" if scope.startswith("group") else "role")
        ]
        for scope in wanted
    }
