"""Whom does a name without a partition mean?

It means the user or group of ``default_partition``, and nobody else: it decides about rights, so it may not mean one
bearer today and another one tomorrow. A name is shown without its partition only if it means the same when it is sent
back. Source: docs/interface.md, ours 9.
"""

from muniment.ground.naming import fold_name
from muniment.repository.options import RepositoryOptions

PROPERTIES = frozenset(
    {"owner_name", "r_creator_name", "r_modifier", "r_lock_owner", "acl_domain", "user_name", "group_name"}
)
"""The properties whose values are users or groups."""

_EVERYBODY = ("owner", "world")
"""Accessors that are no users. With the prefix of the built-in types before them, they are the same."""


def full_name(name: str, options: RepositoryOptions) -> str:
    """Return the id that a name means. A text that is no bare name stays as it is."""
    partition, kind = options.default_partition, fold_name(name.removeprefix(options.names.type_prefix))
    if not partition or not name or "@" in name or kind in _EVERYBODY or fold_name(name) in _EVERYBODY:
        return name
    return f"{name}@{partition}"


def shown_name(person_id: str, options: RepositoryOptions) -> str:
    """Return the name by which an id is shown: the bare name if that means this id."""
    name, _, partition = person_id.rpartition("@")
    if not name or fold_name(partition) != fold_name(options.default_partition):
        return person_id
    return name if full_name(name, options) != name else person_id


def full_acl_name(text: str, options: RepositoryOptions) -> str:
    """Return the text that names an ACL, with the whole id of the owner if it names the owner."""
    owner, slash, name = text.rpartition("/")
    return f"{full_name(owner, options)}{slash}{name}"


def full_value(name: str, text: str, options: RepositoryOptions) -> str:
    """Return what a property of this neutral name is compared with if a caller compares it with this text."""
    if name in PROPERTIES:
        return full_name(text, options)
    return full_acl_name(text, options) if name == "acl_name" else text
