"""Keep the measured figures from run to run, a line for each comparison, and write them into docs/benchmarks.md."""

import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from string import ascii_lowercase

import msgspec

from bench.load import wrk_version

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
KEPT = Path(__file__).parent / "measured.json"
"""The lines of every row's last run. The file is in the project, so that a run of some rows keeps the others' lines."""

MARKS = ("<!-- make bench writes from here -->", "<!-- to here -->")

_MEASURED = " Measured "
_STEPS = 5_000_000


class Target(msgspec.Struct, frozen=True):
    """The ratio that a comparison must reach, and the better one that it aims at: both at least, or both at most."""

    must: float
    aim: float | None = None
    at_most: bool = False

    def reached(self, ratio: float, wanted: float) -> bool:
        """Say whether the ratio is as good as the wanted one."""
        return ratio <= wanted if self.at_most else ratio >= wanted

    def spelled(self, wanted: float | None) -> str:
        """Spell one of the two ratios."""
        return "" if wanted is None else f"{'<=' if self.at_most else '>='} {wanted:g}x"


def at_least(must: float, aim: float | None = None) -> Target:
    """A target of which more is better: rates."""
    return Target(must, aim)


def at_most(must: float, aim: float | None = None) -> Target:
    """A target of which less is better: times and memory."""
    return Target(must, aim, at_most=True)


class Line(msgspec.Struct, kw_only=True):
    """One comparison. ``ratio`` is None where there is none (``remark`` says why), ``met`` where nothing is asked.

    ``aimed`` says whether the aim is reached, None where there is none. ``figure`` is ours as a number.
    """

    row: str
    work: str
    beside: str
    must: str = ""
    aim: str = ""
    ratio: float | None = None
    met: bool | None = None
    aimed: bool | None = None
    figure: float | None = None
    ours: str = ""
    theirs: str = ""
    our_cpu: str = ""
    their_cpu: str = ""
    versions: str = ""
    remark: str = ""
    when: str = ""


class Measured(msgspec.Struct):
    """Every line measured so far, by row."""

    rows: dict[str, list[Line]] = {}


def compared(
    row: str,
    work: str,
    beside: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    unit: str = "/s",
    target: Target | None = None,
    our_cpu: str = "",
    their_cpu: str = "",
    versions: str = "",
    remark: str = "",
) -> Line:
    """Write a line of two figures, the medians of interleaved rounds; the ratio is ours over theirs.

    Where theirs were not measured there is ours alone.
    """
    mine = statistics.median(ours)
    other = statistics.median(theirs) if theirs else None
    ratio = None if other is None else mine / other
    return Line(
        row=row,
        work=work,
        beside=beside,
        must="" if target is None else target.spelled(target.must),
        aim="" if target is None else target.spelled(target.aim),
        ratio=ratio,
        met=None if target is None or ratio is None else target.reached(ratio, target.must),
        aimed=None if target is None or target.aim is None or ratio is None else target.reached(ratio, target.aim),
        figure=mine,
        ours=shown(mine) + unit,
        theirs="" if other is None else shown(other) + unit,
        our_cpu=our_cpu,
        their_cpu=their_cpu,
        versions=versions,
        remark=remark,
    )


def told(line: Line) -> str:
    """Write a line for those who watch the run."""
    asked = f"must be {line.must}, aim {line.aim or 'none'}: {_met(line)}" if line.must else _met(line)
    ratio = "" if line.ratio is None else f"{line.ratio:.2f}x "
    return f"    {line.work} | {line.beside}: {line.ours} | {line.theirs} | {ratio}{asked}".rstrip()


def skipped(row: str, work: str, beside: str, why: str, target: Target | None = None) -> Line:
    """Write a line for what could not be measured here."""
    return Line(
        row=row,
        work=work,
        beside=beside,
        must="" if target is None else target.spelled(target.must),
        aim="" if target is None else target.spelled(target.aim),
        remark=why_skipped(why),
    )


def why_skipped(why: str) -> str:
    """Write the remark of a line for what could not be measured."""
    return f"Skipped: {' '.join(why.split())[:400]}"


def broken(row: str, error: BaseException) -> Line:
    """Write a line for a row that broke: that is a fault of ours, in the product or here."""
    return Line(
        row=row, work=row, beside="", remark=f"Broke: {type(error).__name__}: {' '.join(str(error).split())[:400]}"
    )


def cpu(milliseconds: Iterable[float]) -> str:
    """Spell processor time a request, if any was measured."""
    found = list(milliseconds)
    return f"{statistics.median(found):.2f} ms" if found else ""


def shown(value: float) -> str:
    """Spell a figure with as many digits as mean something."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def loop_seconds() -> float:
    """Count on every core at one time, and return how long the slowest took: neighbours on the machine show in it."""
    code = (
        f"import time; began = time.perf_counter()\nfor _ in range({_STEPS}): pass\nprint(time.perf_counter() - began)"
    )
    command = [sys.executable, "-c", code]
    cores = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(os.cpu_count() or 1)]
    return max(float(each.communicate()[0]) for each in cores)


def keep(lines: Sequence[Line], rows: Sequence[str], loops: Sequence[float], *, quick: bool) -> None:
    """Keep the lines of the rows that were run now, and write the page of all that was ever measured here. ``loops``
    are the ``loop_seconds`` of the run.

    Quick rounds are for seeing that everything works: they are printed, never written.
    """
    print()
    print("\n".join(table(lines)))
    if quick:
        print("\nQuick rounds: docs/benchmarks.md stays as it is.")
        return
    kept = msgspec.json.decode(KEPT.read_bytes(), type=Measured) if KEPT.exists() else Measured()
    slowness = f"loop {min(loops, default=0):.2f} to {max(loops, default=0):.2f} s"
    when = f"{datetime.now(UTC):%Y-%m-%d}, {slowness}, {commit()}"
    for row in {line.row for line in lines}:
        kept.rows[row] = [line for line in lines if line.row == row]
        for line in kept.rows[row]:
            line.when = when
    KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
    _write(kept, rows, _machine())


def mark_stale(rows: Sequence[str]) -> None:
    """Write the page anew without measuring: rows that a newer tag has made stale since then are marked."""
    machine = PAGE.read_text().split(MARKS[0])[1].lstrip().partition(_MEASURED)[0]
    _write(msgspec.json.decode(KEPT.read_bytes(), type=Measured), rows, machine)


def _write(kept: Measured, rows: Sequence[str], machine: str) -> None:
    every = [line for row in rows for line in kept.rows.get(row, [])]
    PAGE.write_text(between(PAGE.read_text(), MARKS, _written(every, machine)))
    print(f"\nWritten to {PAGE.relative_to(ROOT)}")


def between(page: str, marks: tuple[str, str], lines: Sequence[str]) -> str:
    """Replace the lines of a page between the first mark and the second mark that comes next.

    Raises ValueError for a page without them.
    """
    head, rest = page.split(marks[0])
    _, tail = rest.split(marks[1], 1)
    return "\n".join([head + marks[0], *lines, marks[1] + tail])


def _written(lines: Sequence[Line], machine: str) -> list[str]:
    letters = dict(zip(sorted({line.when for line in lines if line.when}), ascii_lowercase, strict=False))
    runs = "; ".join(f"({letter}) {when}" for when, letter in letters.items())
    marked = {when: f"({letter}, stale)" if is_stale(when) else f"({letter})" for when, letter in letters.items()}
    said = [f"{machine}{_MEASURED}{runs}.", "", *table(lines, marked), ""]
    remarks = [f"- **{line.work}**, beside {line.beside}: {line.remark}" for line in lines if line.remark]
    peers = sorted({line.versions for line in lines if line.versions})
    return [*said, "### Remarks of the run", "", *remarks, "", "### Versions", "", *(f"- {one}" for one in peers)]


def runs_and_rows(page: str) -> dict[str, list[str]]:
    """Read from the page when each run was, and the first cells of its rows."""
    head, *rest = page.split(MARKS[0])[1].split(MARKS[1])[0].lstrip().splitlines()
    runs = re.findall(r"\(([a-z])\) (.*?)(?=; \(|\.$)", head.partition(_MEASURED)[2])
    works = [line.split(" | ")[0] for line in rest if line.startswith("| ")]
    return {when: [work for work in works if re.search(rf"\({letter}\b[^)]*\)$", work)] for letter, when in runs}


def is_stale(when: str) -> bool:
    """Say whether a run was at a commit before the newest tag, whose code is another. False where git does not know."""
    commit = when.rpartition(" commit ")[2].removesuffix("-dirty")
    _, tag = _git("describe", "--tags", "--abbrev=0")
    before, _ = _git("merge-base", "--is-ancestor", commit, tag)
    differs, _ = _git("diff", "--quiet", commit, tag, "--", "src")
    return (before, differs) == (0, 1)


def table(lines: Sequence[Line], marked: dict[str, str] | None = None) -> list[str]:
    """Write the lines as a table of Markdown; ``marked`` says which sign stands for which run."""
    head = ("Work", "Beside", "Must reach", "Aim", "Ratio", "Met", "Ours", "Theirs", "CPU ours", "CPU theirs")
    written = [cells(head), "|" + "---|" * len(head)]
    for line in lines:
        ratio = "" if line.ratio is None else f"{line.ratio:.2f}x"
        work = f"{line.work} {(marked or {}).get(line.when, '')}".rstrip()
        figures = (line.ours, line.theirs, line.our_cpu, line.their_cpu)
        written.append(cells((work, line.beside, line.must, line.aim, ratio, _met(line), *figures)))
    return written


def cells(said: Iterable[str]) -> str:
    """Write a row of a table of Markdown."""
    return "| " + " | ".join(said) + " |"


def _met(line: Line) -> str:
    for word in ("skipped", "broke"):
        if line.remark.lower().startswith(f"{word}:"):
            return word
    return met(line.met, line.aimed)


def met(must: bool | None, aim: bool | None) -> str:
    """Spell which of the two is reached; None where nothing is asked."""
    return "yes, aim" if aim else {True: "yes", False: "**no**", None: ""}[must]


def _machine() -> str:
    model = ""
    for found in Path("/proc/cpuinfo").read_text().splitlines():
        if found.startswith("model name"):
            model = found.partition(":")[2].strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"On {os.cpu_count()} cores ({model or platform.machine()}), {memory:.0f} GiB, Linux {platform.release()}, "
        f"CPython {platform.python_version()}, uvicorn {version('uvicorn')}, tantivy-py {version('tantivy')}, "
        f"{wrk_version()}, SQLite."
    )


def commit() -> str:
    """Name the commit that is checked out, or the release where there is no git."""
    failed, named = _git("describe", "--always", "--dirty")
    return f"release {version('muniment')}" if failed else f"commit {named}"


def _git(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()
