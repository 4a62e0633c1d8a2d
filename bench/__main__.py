"""Measure us beside bare endpoints, bare engines and other people's servers, and write docs/benchmarks.md.

Timings never decide the exit code: a row that misses its target is shown as missed. It is 1 only when a row broke.
"""

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from bench import (
    footprint_rows,
    growth_rows,
    meaning_rows,
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
from bench.load import wrk_version
from bench.page import Line
from bench.peers import Missing
from bench.run import Run


class Group(NamedTuple):
    """Rows that share the servers they start. ``asked_for`` means that only ``--only`` runs them: they take long."""

    rows: tuple[str, ...]
    measure: Callable[[Run], Iterable[Line]]
    asked_for: bool = False


GROUPS = (
    Group(("tokeninfo-bare",), token_rows.bare),
    Group(("tokeninfo", "refresh"), token_rows.peers),
    Group(("password",), token_rows.password),
    Group(search_rows.ROWS, search_rows.search),
    Group(search_page_rows.ROWS, search_page_rows.search_page),
    Group((typed_rows.ROW,), typed_rows.typed),
    Group(meaning_rows.ROWS, meaning_rows.meaning),
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
    Group(("growth",), growth_rows.growth, asked_for=True),
    Group(meaning_rows.MADE_UP_ROWS, meaning_rows.growth, asked_for=True),
    Group((size_rows.CHILDREN_GROWTH,), size_rows.children_growth, asked_for=True),
    Group((size_rows.RATE_GROWTH,), size_rows.import_rate_growth, asked_for=True),
)
"""The rows in the order of the page."""

ROWS = tuple(row for group in GROUPS for row in group.rows)


def main() -> int:
    """Run the chosen rows one after the other, and keep their figures."""
    reading = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    reading.add_argument(
        "--only",
        nargs="+",
        choices=ROWS,
        metavar="ROW",
        help=f"some of: {', '.join(ROWS)}; all but those of a million, which take long, otherwise",
    )
    reading.add_argument("--quick", action="store_true", help="little of everything: to see it work; keeps no figures")
    reading.add_argument("--rounds", type=int, default=3, help="rounds of each side, interleaved; the median counts")
    reading.add_argument("--seconds", type=float, default=5, help="length of a round")
    asked = reading.parse_args()
    chosen = frozenset(asked.only or (row for group in GROUPS if not group.asked_for for row in group.rows))
    # A run that is told to stop ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(wrk_version())
    began = time.monotonic()
    lines: list[Line] = []
    broken = False
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as scratch:
        Path(scratch).chmod(0o755)
        rounds, seconds = (1, 2) if asked.quick else (asked.rounds, asked.seconds)
        run = Run(Path(scratch), chosen, asked.quick, rounds, seconds)
        for group in GROUPS:
            wanted = [row for row in group.rows if row in chosen]
            if not wanted:
                continue
            print(f"{time.monotonic() - began:6.0f} s  {', '.join(wanted)}", flush=True)
            try:
                lines.extend(group.measure(run))
            except Missing as why:
                lines += [page.skipped(row, row, "", str(why)) for row in _lacking(wanted, lines)]
            except Exception as error:  # noqa: BLE001 - the other rows are still worth their time
                traceback.print_exc()
                broken = True
                lines += [page.broken(row, error) for row in _lacking(wanted, lines)]
    page.keep(lines, ROWS, quick=asked.quick)
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    return 1 if broken else 0


def _lacking(rows: Iterable[str], lines: Iterable[Line]) -> list[str]:
    """Name the rows of a group of which no line has come so far."""
    measured = {line.row for line in lines}
    return [row for row in rows if row not in measured]


if __name__ == "__main__":
    sys.exit(main())
