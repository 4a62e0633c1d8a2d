"""How does a text name an ACL: by its id, by a bare name, or as owner/name?

An id is 16 hexadecimal digits that begin with ``45`` (docs/interface.md, ours 4); such a text is never a name.
"""

import re
from typing import NamedTuple

import msgspec

from muniment.ground.naming import disguise, is_storable
from muniment.repository.refusals import WrongValue

LONGEST = 120
LONGEST_DESCRIPTION = 1000
"""The longest name of an ACL, in characters."""

_ID = re.compile(r"45[0-9a-fA-F]{14}")
_LIKE_AN_ID = re.compile(r"[0-9a-fA-F]{16}")
_LONGEST_OWNER = 400


class AclName(NamedTuple):
    """An id, or a name with or without an owner."""

    shown_id: str = ""
    owner: str = ""
    name: str = ""


class AclQuota(msgspec.Struct, frozen=True):
    """How many ACLs one user may own in a repository, and how many entries these have together."""

    acls: int = 1000
    entries: int = 50_000


def read(text: str) -> AclName | None:
    """Return None for any other text. An owner may contain a slash, a name may not."""
    if is_id(text):
        return AclName(shown_id=text.lower())
    owner, slash, name = text.rpartition("/")
    if slash and not (0 < len(owner) <= _LONGEST_OWNER and owner.isprintable()):
        return None
    return AclName(owner=owner, name=name) if is_name(name) else None


def write(owner: str, name: str) -> str:
    return f"{owner}/{name}"


def check(name: str) -> None:
    """Raise WrongValue if no new ACL may have this name."""
    if _LIKE_AN_ID.fullmatch(name):
        raise WrongValue("An ACL's name may not look like an id: 16 hexadecimal digits.")
    if not is_name(name):
        raise WrongValue("An ACL's name has 1 to 120 printable characters, no '/' and no space at either end.")
    if what := disguise(name):
        raise WrongValue(f"An ACL's name may not hold {what}.")


def check_description(text: str) -> None:
    """Raise WrongValue unless an ACL may have this description."""
    if len(text) > LONGEST_DESCRIPTION or not is_storable(text):
        raise WrongValue(f"The description of an ACL is a text of at most {LONGEST_DESCRIPTION} characters.")


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def is_name(text: str) -> bool:
    if _LIKE_AN_ID.fullmatch(text):
        return False
    return 0 < len(text) <= LONGEST and text == text.strip() and "/" not in text and text.isprintable()
