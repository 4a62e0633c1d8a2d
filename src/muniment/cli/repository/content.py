"""Commands about the bytes of documents: compare them with the database, move them from one store to the other."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache, partial
from typing import Annotated, TypeAlias

import typer

from muniment.cli import terminal
from muniment.cli.repository.repositories import select_repositories
from muniment.cli.running import Group, RepositoryOption
from muniment.database.connections import Database
from muniment.installation import backends
from muniment.installation.backends import ContentKind
from muniment.installation.backups import making
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.installation.layout import Installation
from muniment.repository.bulk import transfer
from muniment.repository.bulk.transfer import TransferOutcome, TransferRecord
from muniment.repository.store.content.contract import ContentStore, StoredContent
from muniment.repository.store.objects import inventory, table
from muniment.repository.store.objects.contents import content_references, further_contents, stored_contents

_IsWhole: TypeAlias = Callable[[StoredContent], bool]

content_commands = Group(help="The bytes of documents.")

_AT_A_TIME = 500
_MOST_VERIFIED = 100_000
_MOST_NAMED = 20


@content_commands.acts("check", recorded=False)
def content_check(data: DataFolder, repository_name: RepositoryOption = "") -> int:
    """Read every content and compare it with what was stored. The exit code is 1 if one is missing or altered."""
    sound = True
    with data.database("repository") as database:
        store = backends.content(data.installation)
        # Many objects may have the same content. Each content is read once, as long as its result is remembered.
        is_whole = lru_cache(_MOST_VERIFIED)(lambda content: store.verify(content.key, content.sha256))
        for repository in select_repositories(database, repository_name):
            whole_count, advice = 0, list[str]()
            with terminal.Counting(f"Reading {repository.name}", None) as progress:
                for verify, remedy in _VERIFICATIONS:
                    for object_id, good in verify(database, is_whole, repository.id):
                        whole_count += good
                        advice += [] if good else [f"  {object_id}: {remedy}"]
                        progress.reach(whole_count + len(advice))
            sound = sound and not advice
            terminal.line(
                f"{repository.name}: {'NOT SOUND' if advice else 'sound'}: {whole_count} whole, "
                f"{len(advice)} missing or altered"
            )
            for line in advice:
                terminal.line(f"{line}, or bring its file (not a pack) back from a backup")
    return Exit.OK if sound else Exit.FAILED


@content_commands.acts("move")
def content_move(
    data: DataFolder,
    to: Annotated[ContentKind, typer.Option("--to", help="The store that gets the content.")],
    remove_source: Annotated[
        bool,
        typer.Option(
            "--remove-source",
            help="Remove all content from the other store, once the settings name this one and all content is in it.",
        ),
    ] = False,
) -> int:
    """Copy all content to another store. With --remove-source, remove all content from the former store instead.

    A server may run meanwhile, but not during the last copy. Each copy is read back and compared. A move that was
    interrupted goes on where it stopped.
    """
    if to == "s3" and not data.settings.repository.s3.bucket:
        raise Failure(
            "The settings name no bucket: set repository.s3.endpoint and the other settings of the store.", Exit.REFUSED
        )
    present = data.settings.repository.content_store
    if present == to and not remove_source:
        raise Failure(
            f"The settings name {to!r} as the content store already, so new content goes there. "
            "--remove-source removes all content from the other store.",
            Exit.REFUSED,
        )
    if present != to and remove_source:
        raise Failure(
            f"The settings name {present!r} as the content store, so nothing is removed from it. First move all "
            f"content, then set repository.content_store = {to!r}.",
            Exit.REFUSED,
        )
    record = TransferRecord(data.installation.content_move, _place(data.installation, to))
    with data.database("repository") as database, record:
        source = backends.content(data.installation, "files" if to == "s3" else "s3")
        target = backends.content(data.installation, to)
        if remove_source:
            return _remove_source(data, database, source, target, record)
        return _copy(data, database, source, target, record, to)


def _copy(
    data: DataFolder,
    database: Database,
    source: ContentStore,
    target: ContentStore,
    record: TransferRecord,
    to: ContentKind,
) -> int:
    sync = partial(making.bring_to_disk, data.path) if to == "files" else lambda: None
    copied_count = 0
    with ExitStack() as stack:
        try:
            stack.enter_context(data.lock())
            is_served = False
        except Failure as failure:
            if failure.code != Exit.IN_USE:
                raise
            is_served = True
        while True:
            counts = _Counts(database)
            with terminal.Counting("Copying content", _total(database)) as bar:
                for step in transfer.copy_all(database, source, target, record, sync):
                    counts.add(step)
                    bar.advance()
            copied_count += counts.copied
            if is_served or not counts.copied:
                break
    place = _place(data.installation, to)
    terminal.line(f"{place}: {copied_count} contents copied, {counts.there + (copied_count if is_served else 0)} there")
    if counts.damaged:
        were = "was" if len(counts.damaged) == 1 else "were"
        terminal.line(f"The {counts.damaged_contents} missing or altered, and {were} not copied:")
        for object_id in counts.damaged[:_MOST_NAMED]:
            terminal.line(f"  {object_id}: replace its content")
    if is_served:
        terminal.line(
            "A server uses the data folder, and may write more. Stop it, and every server on other machines, then give "
            "this command again: it copies what is new."
        )
    else:
        terminal.line(
            f"Nothing is left to copy. Now set repository.content_store = {to!r} wherever a server of this repository "
            f"runs, and start it. Nothing was removed from the other store: 'content move --to {to} --remove-source' "
            "does that later."
        )
    return Exit.FAILED if counts.damaged else Exit.OK


class _Counts:
    """A pass's contents by outcome, and the ids of the objects whose content is damaged."""

    def __init__(self, database: Database) -> None:
        self.there = self.copied = 0
        self.damaged = list[str]()
        self._database = database

    @property
    def damaged_contents(self) -> str:
        """The subject and the verb of a sentence."""
        number = len(self.damaged)
        return "content of 1 object is" if number == 1 else f"contents of {number} objects are"

    def add(self, step: transfer.TransferStep) -> None:
        self.there += step.outcome == TransferOutcome.THERE
        self.copied += step.outcome == TransferOutcome.COPIED
        if step.outcome == TransferOutcome.DAMAGED:
            with self._database.read() as cx:
                self.damaged += content_references.object_ids(cx, step.content.key)


def _remove_source(
    data: DataFolder, database: Database, source: ContentStore, target: ContentStore, record: TransferRecord
) -> int:
    counts, count = _Counts(database), 0
    with data.lock():  # a server may still run with the former settings
        with terminal.Counting("Verifying content", _total(database)) as bar:
            for step in transfer.verify_all(database, target, record):
                counts.add(step)
                bar.advance()
        if counts.damaged:
            for object_id in counts.damaged[:_MOST_NAMED]:
                terminal.line(f"  {object_id}: its content is missing or altered in the new store")
            raise Failure(
                f"Nothing was removed: in the store that the settings name, the {counts.damaged_contents} not whole.",
                Exit.FAILED,
            )
        with terminal.Counting("Removing content", None) as bar:
            for _key in transfer.clear(source):
                count += 1
                bar.advance()
        if data.settings.repository.content_store == "s3":
            shutil.rmtree(data.installation.content, ignore_errors=True)
        record.remove()
    terminal.line(
        f"{counts.there} contents are whole; {count} packs and single contents were removed from the other store"
    )
    return Exit.OK


def _total(database: Database) -> int:
    with database.read() as cx:
        return stored_contents.amount(cx).objects


def _place(installation: Installation, kind: ContentKind) -> str:
    s3 = installation.settings.repository.s3
    return str(installation.content) if kind == "files" else f"{s3.endpoint}/{s3.bucket}/{s3.prefix}"


def _verify_objects(database: Database, is_whole: _IsWhole, repository_id: int) -> Iterator[tuple[str, bool]]:
    last_seq: int | None = 0
    while last_seq is not None:
        with database.read() as cx:
            page = inventory.next_objects(cx, repository_id, last_seq, _AT_A_TIME)
            further = list(further_contents.of_all(cx, [stored.id for stored in page]))
        for stored in page:
            content, good = stored.content, False
            while content is not None:
                good = is_whole(content)
                current = content if good else _current_content(database, repository_id, stored)
                if current == content:
                    yield stored.id, good
                    break
                content = current
        for each in further:
            good = is_whole(each.content)
            with database.read() as cx:
                present = None if good else further_contents.find(cx, each.object_id, each.place)
            if good or (present is not None and present.content == each.content):
                yield each.object_id, good
        last_seq = page[-1].seq if page else None


def _verify_wastebasket(database: Database, is_whole: _IsWhole, repository_id: int) -> Iterator[tuple[str, bool]]:
    """A damaged content is passed over if its object does not have it any more."""
    for object_id, content in content_references.of_wastebasket(database, repository_id):
        good = is_whole(content)
        if not good:
            with database.read() as cx:
                if not content_references.uses(cx, object_id, content.key):
                    continue
        yield object_id, good


def _current_content(database: Database, repository_id: int, stored: table.StoredObject) -> StoredContent | None:
    """Since the object was read, its content may have been replaced, deleted, or moved into another pack."""
    with database.read() as cx:
        page = inventory.next_objects(cx, repository_id, stored.seq - 1, 1)
        return page[0].content if page and page[0].id == stored.id else None


_VERIFICATIONS = (
    (_verify_objects, "replace its content"),
    (_verify_wastebasket, "restore it from the wastebasket and replace its content"),
)
"""The wastebasket comes last, so an object that is deleted during the check is found there."""
