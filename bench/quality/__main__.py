"""Measure how good the hits are on judged sets, and write docs/benchmarks.md.

The exit code is 0 if every target is reached, 1 if one is missed or a set cannot be measured, 77 without a folder
or without ir-measures.
"""

import argparse
import dataclasses
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import msgspec

from bench import ours
from bench.peers import Missing, opensearch
from bench.quality import judged, measure, report
from bench.quality.callers import Unreadable
from bench.quality.judged import BadSet
from muniment.repository.search.meaning import model

SKIPPED = 77
"""The exit code of a run that had nothing to measure, as automake has it for tests."""

_QUICK = (20, 300)
"""How many queries, and at least how many documents, a quick run takes of each set."""


def main() -> int:
    """Measure every set of the folder one after the other, and keep their figures."""
    reading = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    reading.add_argument("sets", nargs="?", default="", help="a folder with a folder for each set (docs/benchmarks.md)")
    reading.add_argument("--quick", action="store_true", help="a part of each set: to see it work; keeps no figures")
    reading.add_argument(
        "--opensearch",
        action="store_true",
        help="by words alone, with our index in an OpenSearch, which is installed and started; keeps no figures",
    )
    asked = reading.parse_args()
    if not asked.sets:
        print(
            "Skipped: there are no judged sets here. Give the folder that holds them: make quality SETS=folder\n"
            f"In it each set is a folder of {judged.DOCUMENTS}, {judged.QUERIES} and {judged.JUDGEMENTS}; "
            "docs/benchmarks.md says what these hold.",
            file=sys.stderr,
        )
        return SKIPPED
    if find_spec("ir_measures") is None:
        print(
            "Skipped: ir-measures is not installed. It has wheels for Linux on x86-64 and for macOS.", file=sys.stderr
        )
        return SKIPPED
    # A run that is told to stop ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    try:
        sets = judged.read_all(Path(asked.sets))
        measure_one = _measured_in_opensearch if asked.opensearch else _measured
        measured = [measure_one(one.part(*_QUICK) if asked.quick else one) for one in sets]
    except (BadSet, Missing, Unreadable) as error:
        print(error, file=sys.stderr)
        return 1
    if asked.opensearch and not asked.quick:
        reached = report.show(measured)
    else:
        reached = report.keep(measured, quick=asked.quick)
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    return 0 if reached else 1


def _measured(one: judged.JudgedSet) -> measure.SetMeasured:
    with _scratch(one) as scratch:
        data = ours.prepare(scratch / "data")
        with ours.serving(data, *measure.SETTINGS) as site:
            without_meaning, ids = measure.measured(site, one)
        if not _has_model():
            return without_meaning
        data = dataclasses.replace(data, overrides=(*data.overrides, measure.BY_MEANING))
        with ours.serving(data, *measure.SETTINGS) as site:
            ways = measure.by_meaning(site, one, ids)
    return msgspec.structs.replace(without_meaning, ways=[*without_meaning.ways, *ways])


def _measured_in_opensearch(one: judged.JudgedSet) -> measure.SetMeasured:
    with _scratch(one) as scratch, opensearch.serving(scratch) as peer:
        data = ours.prepare(scratch / "data", *peer.keeps_our_index)
        with ours.serving(data, *measure.SETTINGS) as site:
            return measure.measured(site, one)[0]


@contextmanager
def _scratch(one: judged.JudgedSet) -> Iterator[Path]:
    print(f"{one.name}: {len(one.documents):,} documents, {len(one.queries)} queries", flush=True)
    if one.unjudged:
        print(f"    {one.unjudged} more queries have no relevant document and are left out", flush=True)
    with tempfile.TemporaryDirectory(prefix="muniment-quality-") as scratch:
        yield Path(scratch)


def _has_model() -> bool:
    try:
        model.check()
    except model.ModelMissing as error:
        print(f"    Skipped: the searches by meaning. {error}", flush=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
