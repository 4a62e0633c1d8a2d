"""Measure us beside bare endpoints, bare engines and other people's servers, and write docs/benchmarks.md.

With --beside, measure us beside another commit of ours, and write nothing. Timings never decide the exit code: a row
that misses its target is shown as missed. It is 1 only when a row broke.
"""

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import (
    beside,
    cluster_rows,
    directory_rows,
    footprint_rows,
    growth_rows,
    meaning_rows,
    oauth_rows,
    object_rows,
    page,
    postgres_rows,
    search_page_rows,
    search_rows,
    size_rows,
    token_rows,
    typed_rows,
    write_rows,
)
from bench.checkout import checked_out
from bench.load import wrk_version
from bench.page import Line
from bench.peers import Missing
from bench.run import Run


class Group(NamedTuple):
    """Rows that share the servers they start. ``asked_for`` means that only ``--only`` runs them: they take long.

    ``here_only`` rows cannot be measured at another commit: this one's modules fill their data folders.
    """

    rows: tuple[str, ...]
    measure: Callable[[Run], Iterable[Line]]
    asked_for: bool = False
    here_only: bool = False


GROUPS = (
    Group(("tokeninfo-bare",), token_rows.bare),
    Group(("tokeninfo", "refresh"), token_rows.peers),
    Group(("password",), token_rows.password),
    Group(oauth_rows.PEER_ROWS, oauth_rows.peers, here_only=True),
    Group((oauth_rows.JWT,), oauth_rows.jwt, here_only=True),
    Group((oauth_rows.ROTATION,), oauth_rows.rotation, here_only=True),
    Group((directory_rows.LIST,), directory_rows.lists, here_only=True),
    Group((directory_rows.CREATE,), directory_rows.creation, here_only=True),
    Group((directory_rows.CREATE_POSTGRESQL,), directory_rows.creation_postgresql, here_only=True),
    Group((directory_rows.MEMBERSHIP,), directory_rows.membership, here_only=True),
    Group((directory_rows.MEMBERSHIP_POSTGRESQL,), directory_rows.membership_postgresql, here_only=True),
    Group(search_rows.ROWS, search_rows.search),
    Group(search_page_rows.ROWS, search_page_rows.search_page),
    Group((typed_rows.ROW,), typed_rows.typed),
    Group(meaning_rows.ROWS, meaning_rows.meaning, here_only=True),
    Group((object_rows.METADATA,), object_rows.metadata),
    Group((object_rows.BASIC,), object_rows.basic),
    Group(("import",), write_rows.importing),
    Group(("posts",), write_rows.posts),
    Group(("lag",), write_rows.lag),
    Group(("versions",), write_rows.versions),
    Group((size_rows.CHILDREN,), size_rows.children),
    Group((size_rows.RATE,), size_rows.import_rate),
    Group(("memory",), footprint_rows.memory),
    Group(("streams",), footprint_rows.streams),
    Group(postgres_rows.ROWS, postgres_rows.on_postgresql),
    Group(cluster_rows.ROWS, cluster_rows.on_opensearch, asked_for=True, here_only=True),
    Group((directory_rows.LIST_GROWTH,), directory_rows.lists_growth, asked_for=True, here_only=True),
    Group(
        (directory_rows.LIST_GROWTH_POSTGRESQL,),
        directory_rows.lists_growth_postgresql,
        asked_for=True,
        here_only=True,
    ),
    Group(("growth",), growth_rows.growth, asked_for=True, here_only=True),
    Group(meaning_rows.MADE_UP_ROWS, meaning_rows.growth, asked_for=True, here_only=True),
    Group((size_rows.CHILDREN_GROWTH,), size_rows.children_growth, asked_for=True),
    Group((size_rows.RATE_GROWTH,), size_rows.import_rate_growth, asked_for=True),
)
"""The rows in the order of the page."""

ROWS = tuple(row for group in GROUPS for row in group.rows)


def main() -> int:
    """Run the chosen rows one after the other, and keep their figures or set them beside those of another commit."""
    reading = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    reading.add_argument(
        "--only",
        nargs="+",
        choices=ROWS,
        metavar="ROW",
        help=f"some of: {', '.join(ROWS)}; all but those of a million and of our index "
        "in OpenSearch, which take long, otherwise",
    )
    reading.add_argument("--quick", action="store_true", help="little of everything: to see it work; keeps no figures")
    reading.add_argument("--rounds", type=int, default=3, help="rounds of each side, interleaved; the median counts")
    reading.add_argument("--seconds", type=float, default=5, help="length of a round")
    reading.add_argument(
        "--beside",
        metavar="REV",
        help="measure the server of this commit too, in turns with ours, and print the ratios; starts nothing else, "
        f"keeps no figures; all rows but {', '.join(row for group in GROUPS if group.here_only for row in group.rows)}",
    )
    reading.add_argument(
        "--stale",
        action="store_true",
        help="measure nothing: mark the rows of commits before the newest tag as stale, and no others",
    )
    asked = reading.parse_args()
    if asked.stale:
        page.mark_stale(ROWS)
        return 0
    chosen = frozenset(asked.only or (row for group in GROUPS if not group.asked_for for row in group.rows))
    # A run that is told to stop ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(wrk_version())
    began = time.monotonic()
    mine: list[Line] = []
    theirs: list[Line] = []
    loops: list[float] = []
    whole = True
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="muniment-bench-")))
        scratch.chmod(0o755)
        rounds, seconds = (1, 2) if asked.quick else (asked.rounds, asked.seconds)
        run = Run(scratch, chosen, asked.quick, rounds, seconds)
        other = stack.enter_context(checked_out(asked.beside, scratch)) if asked.beside else None
        if other is None:
            # Also of a run that is told to stop.
            stack.callback(lambda: page.keep(mine, ROWS, loops, quick=asked.quick))
        for group in GROUPS:
            wanted = [row for row in group.rows if row in chosen]
            if not wanted or (other is not None and group.here_only):
                continue
            loops.append(page.loop_seconds())
            print(f"{time.monotonic() - began:6.0f} s  {', '.join(wanted)} (loop {loops[-1]:.2f} s)", flush=True)
            measure = partial(_measured, group, wanted)
            found = [measure(run)] if other is None else beside.both(run, other, measure)
            for into, (lines, unbroken) in zip((mine, theirs), found, strict=False):
                into += lines
                whole = whole and unbroken
    if other is not None:
        print("\n" + "\n".join(beside.table(mine, theirs, other.commit)))
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    return 0 if whole else 1


def _measured(group: Group, wanted: Sequence[str], run: Run) -> tuple[list[Line], bool]:
    """Measure the wanted rows of a group, and print their lines as they come. Say as well whether none broke."""
    lines: list[Line] = []
    try:
        for line in group.measure(run):
            if not run.alone:
                print(page.told(line), flush=True)
            elif line.figure is not None:
                print(f"    {run.checkout.commit if run.checkout else 'ours'} | {line.work}: {line.ours}", flush=True)
            lines.append(line)
    except Missing as why:
        lines += [page.skipped(row, row, "", str(why)) for row in _lacking(wanted, lines)]
    except Exception as error:  # noqa: BLE001 - the other rows are still worth their time
        traceback.print_exc()
        return [*lines, *(page.broken(row, error) for row in _lacking(wanted, lines))], False
    return lines, True


def _lacking(rows: Iterable[str], lines: Iterable[Line]) -> list[str]:
    """Name the rows of a group of which no line has come so far."""
    measured = {line.row for line in lines}
    return [row for row in rows if row not in measured]


if __name__ == "__main__":
    sys.exit(main())
