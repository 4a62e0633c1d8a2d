"""What was measured: kept by release, held against the targets, and written into docs/benchmarks.md."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench import page
from bench.quality.measure import BARE, BOTH, JOINED, TOP, TYPED, Asked, Scores, SetMeasured

KEPT = Path(__file__).parent / "measured.json"
"""The figures of every release. The file is in the project, so that a run of some sets keeps the others' figures."""

MARKS = ("<!-- make quality writes from here -->", page.MARKS[1])


class Target(NamedTuple):
    """The nDCG@10 that a set must reach when asked in one way, and the better one that it aims at."""

    name: str
    way: str
    must: float
    aim: float


TARGETS = (
    Target("cranfield", TYPED, 0.53, 0.55),
    Target("npl", TYPED, 0.435, 0.44),
    Target("cranfield", JOINED, 0.54, 0.55),
    Target("npl", JOINED, 0.435, 0.44),
    Target("cranfield", BOTH, 0.565, 0.58),
    Target("npl", BOTH, 0.44, 0.45),
)

WORDLESS = ("cranfield", 0.005)
"""A set, and the share of its excerpts that may lack a content word of the query."""


class Release(msgspec.Struct):
    """The figures of one release: of each set the last ones, with the day and the commit."""

    release: str
    sets: dict[str, SetMeasured] = {}
    when: dict[str, str] = {}


class Row(NamedTuple):
    """A target and what was measured; ``beside`` is the bare engine's figure."""

    what: str
    must: str
    aim: str
    figure: str
    halves: str
    beside: str
    met: bool
    aimed: bool


def rows(sets: Iterable[SetMeasured]) -> list[Row]:
    """Hold the sets against the targets. Targets of sets that were not measured are left out."""
    by_name = {one.name: one for one in sets}
    found = []
    for target in TARGETS:
        ways = _ways(by_name[target.name]) if target.name in by_name else {}
        if target.way in ways:
            asked = ways[target.way]
            found.append(
                Row(
                    f"{target.name}, nDCG@10, {target.way}",
                    f">= {target.must:g}",
                    f">= {target.aim:g}",
                    _figure(asked.whole.ndcg),
                    f"{_figure(asked.odd.ndcg)}, {_figure(asked.even.ndcg)}",
                    _figure(ways[BARE].whole.ndcg),
                    asked.whole.ndcg >= target.must,
                    asked.whole.ndcg >= target.aim,
                )
            )
    if by_name:
        nothing = sum(_ways(one)[TYPED].nothing for one in by_name.values())
        bare = sum(_ways(one)[BARE].nothing for one in by_name.values())
        queries = sum(one.queries for one in by_name.values())
        what = f"{', '.join(by_name)}: queries that find nothing, {TYPED}"
        found.append(Row(what, "0", "0", f"{nothing} of {queries}", "", str(bare), nothing == 0, nothing == 0))
    name, must = WORDLESS
    if name in by_name:
        asked = _ways(by_name[name])[TYPED]
        share = asked.wordless / max(1, asked.excerpts)
        what = f"{name}: excerpts of the first {TOP} hits without a content word, {TYPED}"
        figure = f"{asked.wordless} of {asked.excerpts} ({share:.1%})"
        found.append(Row(what, f"<= {must:.1%}", "0", figure, "", "", share <= must, asked.wordless == 0))
    return found


def table(of: Sequence[Row]) -> list[str]:
    """Write rows as a table of Markdown."""
    head = ("What", "Must reach", "Aim", "Measured", "Met", "Odd queries, even queries", "Bare engine")
    return _table(head, ((*row[:4], page.met(row.met, row.aimed), row.halves, row.beside) for row in of))


def figures(releases: Iterable[Release]) -> list[str]:
    """Write all figures as a table of Markdown, the sets of each release one below the other."""
    measures = ("nDCG@10", "MAP", "R@100")
    head = ("Release", "Set", "Asked", *measures, "Without hits", f"{', '.join(measures)} of odd; of even queries")
    return _table(head, (cells for release in releases for cells in _cells(release)))


def show(sets: Sequence[SetMeasured]) -> bool:
    """Print the figures beside their targets; say whether every target is reached."""
    found = rows(sets)
    print("\n".join(["", *figures([_now(sets)]), "", *table(found)]))
    return all(row.met for row in found)


def keep(sets: Sequence[SetMeasured], *, quick: bool) -> bool:
    """Show the figures, keep them as those of this release, and write the page; say whether every target is reached.

    Quick figures, those of a part of each set, are only printed, and no target is held against them.
    """
    now = _now(sets)
    if quick:
        print("\n".join(["", *figures([now])]))
        print("\nA part of each set: no target counts, and docs/benchmarks.md stays as it is.")
        return True
    is_reached = show(sets)
    releases = msgspec.json.decode(KEPT.read_bytes(), type=list[Release]) if KEPT.exists() else []
    release = next((one for one in releases if one.release == now.release), None)
    if release is None:
        release = Release(now.release)
        releases.insert(0, release)
    release.sets |= now.sets
    release.when |= dict.fromkeys(now.sets, f"{datetime.now(UTC):%Y-%m-%d}, {page.commit()}")
    KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(releases)) + b"\n")
    page.PAGE.write_text(page.between(page.PAGE.read_text(), MARKS, written(releases)))
    print(f"\nWritten to {page.PAGE.relative_to(page.ROOT)}")
    return is_reached


def written(releases: Sequence[Release]) -> list[str]:
    """Write what stands on the page: the latest release beside its targets, then the figures of all."""
    last = releases[0]
    days = "; ".join(f"{name} {when}" for name, when in last.when.items())
    about = f"Release {last.release}, tantivy-py {version('tantivy')}, ir-measures {version('ir-measures')}: {days}."
    return [about, "", *table(rows(last.sets.values())), "", "All figures by release:", "", *figures(releases)]


def _now(sets: Sequence[SetMeasured]) -> Release:
    return Release(version("muniment"), {one.name: one for one in sets})


def _ways(one: SetMeasured) -> dict[str, Asked]:
    return {asked.way: asked for asked in one.ways}


def _cells(release: Release) -> Iterator[tuple[str, ...]]:
    for one in release.sets.values():
        for asked in one.ways:
            name = f"{one.name} ({one.documents:,} documents, {one.queries} queries)"
            yield (
                release.release,
                name,
                asked.way,
                *_figures(asked.whole),
                str(asked.nothing),
                f"{', '.join(_figures(asked.odd))}; {', '.join(_figures(asked.even))}",
            )


def _figures(scores: Scores) -> tuple[str, str, str]:
    return _figure(scores.ndcg), _figure(scores.map), _figure(scores.recall)


def _figure(value: float) -> str:
    return f"{value:.4f}"


def _table(head: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    lines = (head, ["---"] * len(head), *cells)
    return ["| " + " | ".join(one.replace("|", "\\|") for one in line) + " |" for line in lines]
