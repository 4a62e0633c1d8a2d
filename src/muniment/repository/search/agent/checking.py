"""Does the index hold exactly the documents that the repository's objects make?

A digest for each range of counters is compared, and a range that differs is split down to single objects. If the
snapshot has not seen an object's last change, the object is compared again later, so that the agent stays the only
writer (docs/decisions/0076).
"""

import hashlib
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.search.agent import indexing
from muniment.repository.search.index.contract import DocumentDigest, Index, Snapshot
from muniment.repository.search.index.document import Document
from muniment.repository.store.change_log import changes
from muniment.repository.store.repositories import Repository

Fault = Literal["missing", "extra", "stale", "doubled"]
"""A document is ``missing``, ``extra`` if there should be none, ``stale`` if it is not what the object makes, or
``doubled``.
"""

MOST_NAMED = 100

COUNTS = (
    *("ranges", "objects", "documents", "missing", "extra", "stale", "doubled", "waiting", "unindexed"),
    *("noted", "repaired"),
)

SEARCH_FIELDS = "search fields"
"""A difference names this part if a search by type, ACL, owner or former version finds a document wrongly or misses it,
or if the document cannot be read.
"""

_MOST_DOCUMENTS = 5000
_MOST_OPEN = 1000

_AT_A_TIME = 250
_POLL_SECONDS = 0.05
_INDEXABLE = re.compile(r"[0-9a-f]{16}")

_encoder = msgspec.msgpack.Encoder(order="deterministic")


class Difference(msgspec.Struct, frozen=True):
    """One object whose document is not what the database makes of it.

    ``parts`` are fields and properties that differ; ``repaired`` says that the document was later found right.
    """

    object_id: str
    fault: Fault
    parts: tuple[str, ...] = ()
    repaired: bool = False


class Report(msgspec.Struct, frozen=True):
    """The findings of one check, as of ``position`` in the change log.

    ``noted`` objects are to be indexed again, ``repaired`` ones of these were later right. ``waiting`` were not
    compared, because the index had not seen their last change; ``unindexed`` cannot be indexed, for the reason in their
    index status.
    """

    began: Instant
    ended: Instant | None = None
    position: changes.Position = changes.START
    ranges: int = 0
    objects: int = 0
    documents: int = 0
    missing: int = 0
    extra: int = 0
    stale: int = 0
    doubled: int = 0
    waiting: int = 0
    unindexed: int = 0
    noted: int = 0
    repaired: int = 0
    differences: tuple[Difference, ...] = ()

    @property
    def remaining(self) -> int:
        return self.missing + self.extra + self.stale + self.doubled - self.repaired

    @property
    def sound(self) -> bool:
        return self.remaining == 0


class Course(msgspec.Struct):
    """How far a check has come, for a process that continues it.

    Objects are compared up to the counter ``after``, None after the last range. ``suspects`` are to be compared one by
    one, ``changed`` have changes that the index has not seen, ``noted`` are to be indexed again.
    """

    report: Report
    repairs: bool = False
    after: int | None = -1
    suspects: list[str] = []
    changed: list[str] = []
    noted: dict[str, Difference] = {}

    @property
    def over(self) -> bool:
        return self.after is None and not (self.suspects or self.changed or self.noted)


class Checker:
    """Compares one repository with its index, a step at a time, in short transactions."""

    def __init__(self, database: Database, repository: Repository, index: Index, course: Course) -> None:
        self.course = course
        self._database, self._repository, self._index = database, repository, index
        self._asked_at: changes.Position | None = None

    def step(self, now: Instant) -> bool:
        """Return False if the check must wait until the index has seen more of the change log.

        Raises IndexUnavailable, and IndexBehind if lines that the index has not seen are gone.
        """
        course = self.course
        if course.suspects:
            portion, course.suspects = course.suspects[:_AT_A_TIME], course.suspects[_AT_A_TIME:]
            self._judge(portion, now)
            return True
        if course.after is None or len(course.changed) + len(course.noted) >= _MOST_OPEN:
            return self._ask_again(now)
        self._compare_range(course.after)
        return True

    def give_up(self) -> None:
        """Changed objects count as waiting, and noted ones as not repaired."""
        course = self.course
        self._count(waiting=len(course.changed))
        for difference in course.noted.values():
            self._name(difference)
        course.changed, course.noted = [], {}

    def finish(self, now: Instant) -> Report:
        self.course.report = msgspec.structs.replace(self.course.report, ended=now)
        return self.course.report

    def _compare_range(self, after: int) -> None:
        course, snapshot = self.course, self._index.snapshot()
        with self._database.read() as cx:
            changes.pending(cx, self._repository.id, snapshot.position, ())
            batch, to = indexing.document_batch(cx, self._repository, after)
        count, unindexed = len(batch.done_ids), len(batch.ids_not_indexed | batch.refusals.keys())
        expected = sorted(snapshot.digest(document) for document in batch.documents)
        actual = snapshot.digests(after, to, _MOST_DOCUMENTS)
        if len(actual) == _MOST_DOCUMENTS:  # there may be more: the rest belongs to the next range
            to = actual[-1].counter
            expected = expected[: bisect_left(expected, to + 1, key=_counter)]
            count, unindexed = len(expected), 0
        course.suspects += sorted(differing(expected, actual))
        course.after = to
        course.report = msgspec.structs.replace(course.report, position=snapshot.position)
        self._count(ranges=1, objects=count, documents=len(actual), unindexed=unindexed)

    def _ask_again(self, now: Instant) -> bool:
        course = self.course
        position = self._index.snapshot().position
        if position == self._asked_at:
            return False
        self._asked_at = position
        course.report = msgspec.structs.replace(course.report, position=position)
        former_count = len(course.changed) + len(course.noted)
        object_ids, course.changed = course.changed, []
        self._judge(object_ids, now)
        for object_id, verdict in self._verdicts(list(course.noted)):
            if verdict == "changed":
                continue
            difference = course.noted.pop(object_id)
            self._name(msgspec.structs.replace(difference, repaired=verdict is None))
            self._count(repaired=verdict is None)
        return len(course.changed) + len(course.noted) < former_count

    def _judge(self, object_ids: Sequence[str], now: Instant) -> None:
        course = self.course
        reported_ids = {*course.noted, *(difference.object_id for difference in course.report.differences)}
        repairs: list[Difference] = []
        for object_id, verdict in self._verdicts([each for each in object_ids if each not in reported_ids]):
            if verdict == "changed":
                course.changed.append(object_id)
            elif verdict is not None:
                self._count(**{verdict.fault: 1})
                if course.repairs and _INDEXABLE.fullmatch(object_id):
                    repairs.append(verdict)
                else:
                    self._name(verdict)
        if repairs:
            with self._database.begin() as cx:
                ids = [difference.object_id for difference in repairs]
                changes.note_all(cx, self._repository.id, ids, "again", now)
            course.noted |= {difference.object_id: difference for difference in repairs}
            self._count(noted=len(repairs))
            self._asked_at = None

    def _verdicts(self, object_ids: Sequence[str]) -> Iterator[tuple[str, "Difference | Literal['changed'] | None"]]:
        """Yield the difference, None, or ``changed`` if the snapshot has not seen the object's last change."""
        remaining = list(dict.fromkeys(object_ids))
        while remaining:
            batch_ids = remaining[:_AT_A_TIME]
            snapshot = self._index.snapshot()
            with self._database.read() as cx:
                batch = indexing.of_objects(cx, self._repository, batch_ids)
                changed_ids = changes.pending(cx, self._repository.id, snapshot.position, batch_ids)
            expected = {document.key: document for document in batch.documents}
            without_document = batch.ids_not_indexed | batch.refusals.keys()
            actual: dict[str, list[DocumentDigest]] = {}
            for each in snapshot.digests_of(batch.done_ids):
                actual.setdefault(each.key, []).append(each)
            for object_id in filter(batch.done_ids.__contains__, batch_ids):
                if object_id in changed_ids:
                    yield object_id, "changed"
                else:
                    may_lack = object_id in without_document
                    yield object_id, _difference(snapshot, object_id, expected.get(object_id), actual, lacks=may_lack)
            remaining = [object_id for object_id in remaining if object_id not in batch.done_ids]

    def _count(self, **counts_by_name: int) -> None:
        report = self.course.report
        counts = {name: getattr(report, name) + number for name, number in counts_by_name.items()}
        self.course.report = msgspec.structs.replace(report, **counts)

    def _name(self, difference: Difference) -> None:
        report = self.course.report
        if len(report.differences) < MOST_NAMED:
            self.course.report = msgspec.structs.replace(report, differences=(*report.differences, difference))


def check(
    database: Database,
    repository: Repository,
    index: Index,
    clock: Callable[[], Instant],
    *,
    repairs: bool = False,
    patience: float = 0.0,
    progress: Callable[[Report], None] = lambda _report: None,
) -> Report:
    """With ``repairs``, objects that differ are noted, to be indexed again.

    Objects that wait for the agent are compared again, until there is no progress for ``patience`` seconds.

    Raises IndexBehind, IndexUnavailable.
    """
    checker = Checker(database, repository, index, Course(Report(clock()), repairs))
    moved_at = time.monotonic()
    while not checker.course.over:
        if checker.step(clock()):
            moved_at = time.monotonic()
            progress(checker.course.report)
        elif time.monotonic() - moved_at >= patience:
            checker.give_up()
        else:
            time.sleep(_POLL_SECONDS)
    return checker.finish(clock())


def differing(expected: Sequence[DocumentDigest], actual: Sequence[DocumentDigest]) -> set[str]:
    """Split ranges, ordered by counter, whose digests differ, down to one counter."""
    if _range_digest(expected) == _range_digest(actual):
        return set()
    counters = sorted({each.counter for each in (*expected, *actual)})
    if len(counters) == 1:
        return {each.key for each in (*expected, *actual)}
    middle = counters[len(counters) // 2]
    at, actual_at = bisect_left(expected, middle, key=_counter), bisect_left(actual, middle, key=_counter)
    return differing(expected[:at], actual[:actual_at]) | differing(expected[at:], actual[actual_at:])


def _range_digest(digests: Sequence[DocumentDigest]) -> bytes:
    return hashlib.blake2b(_encoder.encode(digests), digest_size=16).digest()


def _counter(digest: DocumentDigest) -> int:
    return digest.counter


def _difference(
    snapshot: Snapshot,
    object_id: str,
    expected: Document | None,
    actual: Mapping[str, Collection[DocumentDigest]],
    *,
    lacks: bool,
) -> Difference | None:
    """With ``lacks``, it is no difference if the snapshot lacks the object."""
    digests = list(actual.get(object_id, ()))
    if expected is None:
        return Difference(object_id, "extra") if digests else None
    if not digests:
        return None if lacks else Difference(object_id, "missing")
    if len(digests) > 1:
        return Difference(object_id, "doubled")
    if not digests[0].consistent:
        return Difference(object_id, "stale", (SEARCH_FIELDS,))
    if digests[0] == snapshot.digest(expected):
        return None
    # The digest may also differ because an earlier release has written an equal document in another form.
    parts = _parts(expected, next(snapshot.documents([object_id])))
    return Difference(object_id, "stale", parts) if parts else None


def _parts(expected: Document, actual: Document) -> tuple[str, ...]:
    fields = [
        name
        for name in Document.__struct_fields__
        if name != "values" and _encoder.encode(getattr(expected, name)) != _encoder.encode(getattr(actual, name))
    ]
    properties = [
        name
        for name in sorted(expected.values.keys() | actual.values.keys())
        if _encoder.encode(expected.values.get(name)) != _encoder.encode(actual.values.get(name))
    ]
    return (*fields, *properties)
