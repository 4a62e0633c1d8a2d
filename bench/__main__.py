"""Measure us beside bare endpoints, bare engines and other people's servers, and write docs/benchmarks.md.

Timings never decide the exit code: a row that misses its target is shown as missed. It is 1 only when a row broke.
"""

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from bench import footprint_rows, growth_rows, page, repository_rows, token_rows
from bench.load import wrk_version
from bench.page import Line
from bench.peers import Missing
from bench.run import Run

Measure = Callable[[Run, set[str]], list[Line]]

GROUPS: tuple[tuple[tuple[str, ...], Measure], ...] = (
    (("tokeninfo-bare",), lambda run, _: token_rows.bare(run)),
    (("tokeninfo", "refresh"), token_rows.peers),
    (("password",), lambda run, _: token_rows.password(run)),
    (("search",), lambda run, _: repository_rows.search(run)),
    (("import",), lambda run, _: repository_rows.importing(run)),
    (("lag",), lambda run, _: repository_rows.lag(run)),
    (("memory",), lambda run, _: footprint_rows.memory(run)),
    (("streams",), lambda run, _: footprint_rows.streams(run)),
    (("growth",), lambda run, _: growth_rows.growth(run)),
)
"""The rows in the order of the page; rows of one group share the servers they start."""

ROWS = tuple(row for rows, _ in GROUPS for row in rows)


def main() -> int:
    """Run the chosen rows one after the other, and keep their figures."""
    reading = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    reading.add_argument("--only", nargs="+", choices=ROWS, metavar="ROW", help=f"some of: {', '.join(ROWS)}")
    reading.add_argument("--quick", action="store_true", help="little of everything: to see it work; keeps no figures")
    reading.add_argument("--rounds", type=int, default=3, help="rounds of each side, interleaved; the median counts")
    reading.add_argument("--seconds", type=float, default=5, help="length of a round")
    asked = reading.parse_args()
    chosen = set(asked.only or ROWS)
    # A run that is told to stop ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(wrk_version())
    began = time.monotonic()
    lines: list[Line] = []
    broken = False
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as scratch:
        Path(scratch).chmod(0o755)
        run = Run(Path(scratch), asked.quick, 1 if asked.quick else asked.rounds, 2 if asked.quick else asked.seconds)
        for rows, measure in GROUPS:
            wanted = chosen & set(rows)
            if not wanted:
                continue
            print(f"{time.monotonic() - began:6.0f} s  {', '.join(rows)}", flush=True)
            try:
                lines += measure(run, wanted)
            except Missing as why:
                lines += [page.skipped(row, row, "", "", str(why)) for row in sorted(wanted)]
            except Exception as error:  # noqa: BLE001 - the other rows are still worth their time
                traceback.print_exc()
                broken = True
                lines += [page.broken(row, error) for row in sorted(wanted)]
    page.keep(lines, ROWS, quick=asked.quick)
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
