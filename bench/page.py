"""What was measured, a line a comparison: kept from run to run, and written into docs/benchmarks.md."""

import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from bench.load import wrk_version
from bench.peers import cache

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
MARKS = ("<!-- make bench writes from here -->", "<!-- to here -->")


class Line(msgspec.Struct, kw_only=True):
    """One comparison. ``ratio`` is None where there is none (``remark`` says why), ``met`` where nothing is asked."""

    row: str
    work: str
    beside: str
    must: str = ""
    ratio: float | None = None
    met: bool | None = None
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
    must: float | None = None,
    our_cpu: str = "",
    their_cpu: str = "",
    versions: str = "",
    remark: str = "",
) -> Line:
    """Write and print a line of two figures, the medians of interleaved rounds; the ratio is ours over theirs.

    Of rates more is better, of times (unit ms) less.
    """
    less = unit == " ms"
    mine, other = statistics.median(ours), statistics.median(theirs)
    ratio = mine / other
    asked = "" if must is None else f"<= {must:g}x" if less else f">= {must:g}x"
    met = None if must is None else ratio <= must if less else ratio >= must
    line = Line(
        row=row,
        work=work,
        beside=beside,
        must=asked,
        ratio=ratio,
        met=met,
        ours=shown(mine) + unit,
        theirs=shown(other) + unit,
        our_cpu=our_cpu,
        their_cpu=their_cpu,
        versions=versions,
        remark=remark,
    )
    print(f"    {work} | {beside}: {line.ours} | {line.theirs} | {ratio:.2f}x {asked}", flush=True)
    return line


def skipped(row: str, work: str, beside: str, must: str, why: str) -> Line:
    """Write a line for what could not be measured here."""
    return Line(row=row, work=work, beside=beside, must=must, remark=f"Skipped: {' '.join(why.split())[:400]}")


def broken(row: str, error: BaseException) -> Line:
    """Write a line for a row that broke: that is a fault of ours, in the product or here."""
    return Line(
        row=row, work=row, beside="", remark=f"Broke: {type(error).__name__}: {' '.join(str(error).split())[:400]}"
    )


def cpu(milliseconds: Iterable[float]) -> str:
    """Spell processor time a request."""
    return f"{statistics.median(milliseconds):.2f} ms"


def shown(value: float) -> str:
    """Spell a figure with as many digits as mean something."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def keep(lines: Sequence[Line], rows: Sequence[str], *, quick: bool) -> None:
    """Keep the lines of the rows that were run now, and write the page of all that was ever measured here.

    Quick rounds are for seeing that everything works: they are printed, never written.
    """
    print()
    print("\n".join(table(lines)))
    if quick:
        print("\nQuick rounds: docs/benchmarks.md stays as it is.")
        return
    file = cache() / "measured.json"
    kept = msgspec.json.decode(file.read_bytes(), type=Measured) if file.exists() else Measured()
    when = f"{datetime.now(UTC):%Y-%m-%d}, {_commit()}"
    for row in {line.row for line in lines}:
        kept.rows[row] = [line for line in lines if line.row == row]
        for line in kept.rows[row]:
            line.when = when
    file.write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
    page = PAGE.read_text()
    head, rest = page.split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    every = [line for row in rows for line in kept.rows.get(row, [])]
    PAGE.write_text(f"{head}{MARKS[0]}\n{_written(every)}\n{MARKS[1]}{tail}")
    print(f"\nWritten to {PAGE.relative_to(ROOT)}")


def _written(lines: Sequence[Line]) -> str:
    runs = sorted({line.when for line in lines if line.when})
    marked = {when: "*" * number for number, when in enumerate(runs)} if len(runs) > 1 else {}
    said = [_machine(), ""]
    if len(runs) == 1:
        said[0] += f" Measured {runs[0]}."
    else:
        said[0] += (
            " Measured " + "; ".join(f"{when}{' ' + mark if mark else ''}" for when, mark in marked.items()) + "."
        )
    said += [*table(lines, marked), ""]
    remarks = [f"- **{line.work}**, beside {line.beside}: {line.remark}" for line in lines if line.remark]
    peers = sorted({line.versions for line in lines if line.versions})
    said += ["### Remarks of the run", "", *remarks, "", "### Versions", "", *(f"- {one}" for one in peers)]
    return "\n".join(said)


def table(lines: Sequence[Line], marked: dict[str, str] | None = None) -> list[str]:
    """Write the lines as a table of Markdown; ``marked`` says which sign stands for which run."""
    head = ("Work", "Beside", "Must reach", "Ratio", "Met", "Ours", "Theirs", "CPU ours", "CPU theirs")
    written = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for line in lines:
        ratio = "" if line.ratio is None else f"{line.ratio:.2f}x"
        met = {True: "yes", False: "**no**", None: ""}[line.met]
        met = next((word for word in ("skipped", "broke") if line.remark.lower().startswith(f"{word}:")), met)
        work = line.work + (marked or {}).get(line.when, "").replace("*", r"\*")
        cells = (work, line.beside, line.must, ratio, met, line.ours, line.theirs, line.our_cpu, line.their_cpu)
        written.append("| " + " | ".join(cells) + " |")
    return written


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


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"commit {said.stdout.strip()}" if said.returncode == 0 else f"release {version('muniment')}"
