"""Which packs hold mostly contents that no row names any more? Move the contents still named, and drop these packs.

The counts of uses (``stored_contents``) tell which are named (decisions 0040, 0073). A pack whose contents move now is
dropped at the next compaction, so that who read a row before the move can read the content.

If the process is killed, it leaves copies that no row names, or a pack that a later compaction drops.
"""

from collections.abc import Iterator

import structlog

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.refusals import ContentDamaged
from muniment.repository.store.content.contract import ContentStore, Pack, StoredContent
from muniment.repository.store.objects.contents import content_references, stored_contents

log = structlog.get_logger("muniment.content")

_AT_A_TIME = 200


def steps(database: Database, store: ContentStore, before: Instant) -> Iterator[int]:
    """Drop packs without used contents; move used contents that fill less than half of a pack.

    Packs written since ``before`` are left alone. Each step moves a few hundred contents, and yields their number; 0
    follows each pack.

    The caller may stop iterating after any step. Raises NotStored, Busy, OSError.
    """
    for pack in store.packs(before):
        with database.read() as cx:
            live = stored_contents.amount_in(cx, pack)
        if live.objects == 0:
            if store.drop(pack):
                log.info("a pack is dropped", pack=pack.first[:24], bytes=pack.size)
        elif (live.bytes + live.objects * pack.overhead) * 2 < pack.size:
            yield from _move(database, store, pack)
        yield 0


def _move(database: Database, store: ContentStore, pack: Pack) -> Iterator[int]:
    last_key: str | None = ""
    while last_key is not None:
        with database.read() as cx:
            portion = stored_contents.portion_of(cx, pack, last_key, _AT_A_TIME)
        last_key = portion[-1].key if portion else None
        intact, contents = list[StoredContent](), list[bytes]()
        for content in portion:
            try:
                contents.append(b"".join(store.read(content)))
            except ContentDamaged as damaged:  # or the content has lost its last use; then the pack is dropped later
                log.warning("a content stays in its pack", key=content.key, reason=damaged.sentence)
            else:
                intact.append(content)
        # If the commit fails, nobody knows whether rows name the copies. So the copies stay. Those that no row names
        # are dropped with their pack.
        pairs = list(zip(intact, store.put_all(contents), strict=True)) if intact else []
        while pairs:
            with database.begin() as cx:
                pairs = [pair for pair in pairs if content_references.rename_some(cx, *pair)]
        yield len(intact)
