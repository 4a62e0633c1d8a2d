"""Check an object in: as the next minor or major version, or the first of a branch.

Source: docs/interface.md, ours 17.
"""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import NotCheckedOut, QuotaExceeded, Superseded, VersionConflict
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import objects, version_tree
from muniment.repository.store.objects.contents import further_contents, usage
from muniment.repository.store.objects.decisions import checkouts, contents
from muniment.repository.store.objects.folders import unique_names
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties import stored_values, version
from muniment.repository.store.objects.properties.properties import Given, milliseconds
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions import acl_entries
from muniment.repository.store.permissions.principals import Permission, Principals

MOST_VERSIONS = 10_000


class CheckIn(msgspec.Struct, frozen=True):
    """The plan of a check-in.

    ``content`` is the new main content, and ``further`` are the contents beside it. Without ``content``, the new
    version shares all contents of the version that is checked out, except those at the places of ``further``.
    ``media_type`` is the media type of ``content``, and
    ``text`` is its text, if that is known. The new version gets the symbolic ``labels``, and other versions of its tree
    lose them; a label stays with a version of which the caller may make no versions. With ``make_current``, the label
    ``CURRENT`` is one of them. With ``retain_lock``, the caller has the
    new version checked out at once. ``expected`` is the revision that the caller has seen.
    """

    policy: version.Policy
    properties: Mapping[str, Given]
    content: StoredContent | None = None
    further: Sequence[tuple[further_contents.ContentPlace, str, StoredContent]] = ()
    text: queue.ExtractedText | None = None
    media_type: str = ""
    comment: str = ""
    labels: tuple[str, ...] = ()
    make_current: bool = True
    retain_lock: bool = False
    expected: int | None = None


def check(stored: StoredObject, permission: Permission, principals: Principals, what: CheckIn) -> None:
    """Raises NotPermitted (if the caller lacks the permission Version), VersionConflict, WrongValue (a folder),
    NotCheckedOut, CheckedOut, and Superseded if the version has a next one on its branch and the check-in does not
    begin a new branch.
    """
    checkouts.check(stored, permission, "check this object in")
    if what.expected is not None and stored.revision != what.expected:
        raise VersionConflict("The object has changed since the version you named: read it again.")
    if stored.version.lock is None:
        raise NotCheckedOut("The object is not checked out: check it out first.")
    objects.refuse_others(stored, principals)
    if stored.version.superseded and what.policy != "branch-version":
        raise Superseded("The version has a next one on its branch already: it can only be checked in as a branch.")


def check_in(
    cx: Connection,
    view: RepositoryView,
    object_id: str,
    what: CheckIn,
    now: Instant,
    quota: usage.StorageQuota = usage.StorageQuota(),  # noqa: B008 - it does not change
) -> StoredObject:
    """Make the next version of an object that the caller has checked out, and end that check-out.

    ``quota`` limits the owner, unless the caller is an administrator.

    Raises what ``check`` raises, and UnknownObject, UnknownProperty, UnknownAcl, NotWritable, NameTaken, QuotaExceeded.
    """
    principals = view.principals
    _serialize(cx, view, object_id)
    stored, permission = objects.read(cx, view.repository, object_id, principals, lock=True)
    check(stored, permission, principals, what)
    content, shares = what.content, what.content is None
    kept: list[tuple[further_contents.ContentPlace, str, StoredContent]] = []
    if shares:
        content, replaced = stored.content, {place for place, _, _ in what.further}
        kept = [
            (each.place, each.media_type, each.content)
            for each in further_contents.further_contents_of(cx, stored.id)
            if each.place not in replaced
        ]
    tree = _tree(cx, stored)
    number = version.next_number(stored.version.number, what.policy, {each.labels[0] for each in tree})
    labels = _take_labels(
        cx, view, stored, tree, (*what.labels, version.CURRENT) if what.make_current else what.labels, now
    )
    draft = msgspec.structs.replace(
        stored,
        **_columns(cx, view, stored, what, now),
        created=now,
        creator=principals.id,
        modified=now,
        modifier=principals.id,
        revision=1,
        content=content,
        version=version.Version(
            chronicle_id=stored.chronicle_id,
            antecedent_id=stored.id,
            labels=(number, *labels),
            former=version.CURRENT not in labels,
            comment=what.comment,
            lock=version.Lock(principals.id, principals.key, now) if what.retain_lock else None,
        ),
    )
    antecedent = msgspec.structs.replace(
        version_tree.without(stored.version, labels),
        chronicle_id=stored.chronicle_id,
        superseded=stored.version.superseded or what.policy != "branch-version",
        lock=None,
    )
    version_tree.put(cx, stored, antecedent, now)
    if version.CURRENT in labels and (draft.name != stored.name or stored.former):
        unique_names.claim_again(cx, view, draft, draft.name)
    owner_quota = None if principals.administrator else quota
    shared = {content.key} if shares and content is not None else ()
    (new,) = objects.keep_new(cx, view, [draft], [what.text], now, owner_quota, shared=shared)
    contents.add_to_new(cx, new, kept, now, owner_quota, shared=True)
    contents.add_to_new(cx, new, what.further, now, owner_quota, present=len(kept))
    return new


def _serialize(cx: Connection, view: RepositoryView, object_id: str) -> None:
    """Lock the tree until the transaction ends; read the object afterwards.

    Raises UnknownObject.
    """
    if cx.dialect.name == "postgresql":
        seen, _ = objects.read(cx, view.repository, object_id, view.principals)
        version_tree.serialize(cx, seen.chronicle_id)


def _tree(cx: Connection, stored: StoredObject) -> list[version_tree.Member]:
    """Raises QuotaExceeded if it has ``MOST_VERSIONS`` already."""
    if stored.version.chronicle_id is None:
        alone = stored.version
        return [version_tree.Member(stored.id, stored.seq, stored.id, None, alone.labels, alone.former)]
    tree = version_tree.members(cx, [stored.chronicle_id])
    if len(tree) >= MOST_VERSIONS:
        raise QuotaExceeded(f"An object has at most {MOST_VERSIONS} versions: delete some first.")
    return tree


def _take_labels(
    cx: Connection,
    view: RepositoryView,
    stored: StoredObject,
    tree: Sequence[version_tree.Member],
    labels: tuple[str, ...],
    now: Instant,
) -> tuple[str, ...]:
    """Take the labels that the caller may take, and return them; the caller takes them from ``stored`` itself."""
    others = [each for each in version_tree.bearing(cx, tree, labels) if each.id != stored.id]
    rights = acl_entries.permissions(cx, {(each.acl_id, each.owner_key) for each in others}, view.principals)
    out_of_reach = {each.id for each in others if rights[(each.acl_id, each.owner_key)] < Permission.VERSION}
    kept = {label for each in others if each.id in out_of_reach for label in each.version.labels}
    taken = tuple(label for label in labels if label not in kept)
    for each in others:
        if each.id not in out_of_reach:
            version_tree.put(cx, each, version_tree.without(each.version, taken), now)
    return taken


def _columns(
    cx: Connection, view: RepositoryView, stored: StoredObject, what: CheckIn, now: Instant
) -> dict[str, object]:
    """Raises UnknownProperty, UnknownAcl, WrongValue, NotWritable."""
    of_content: dict[str, object] = {"media_type": what.media_type} if what.media_type else {}
    dated = {} if what.content is None else {"content_date": milliseconds(now)}
    if not what.properties:
        return {"properties": stored.properties, **of_content, **dated}
    new = objects.read_new(cx, view, stored, what.properties)
    fields = objects.columns_of(cx, view, new, now)
    return {
        **dated,
        **fields,
        "properties": stored_values.decode(stored_values.encode({**stored.properties, **new})),
        **of_content,
    }
