"""Do a folder's pages, or a long import, get slower the more there is already?

Each row has a smaller size that ``make bench`` runs. A size of a million runs only if somebody asks for it.
"""

import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import sqlalchemy as sa

from bench import load, ours, page
from bench.checkout import as_it_was
from bench.load import Figures, Request, bearer
from bench.ours import ACLS, Data, Site
from bench.page import Line, at_least, at_most
from bench.passages import passages
from bench.run import Run
from muniment.installation import initialise
from muniment.repository.store import repositories
from muniment.repository.store.objects import table
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Principals

CHILDREN, CHILDREN_GROWTH = "children", "children-growth"
RATE, RATE_GROWTH = "import-rate", "import-rate-growth"

FLAT = at_most(1.2)
STEADY = at_least(0.5)

_FEW = 100
_FOLDER = "Children"
_MANY = 5_000
_PAGE, _STRIDE = 20, 1_000
_PARTS = 10
_BYTES_OF_FILE = 16_000
"""What a file of the import and all that is made of it may take on the disk, with room to spare."""

_IMPORT_SECONDS = 7_200


def children(run: Run) -> list[Line]:
    """A folder's pages, of 100 and of 100,000 children."""
    return _children(run, CHILDREN, run.size(100_000, 2_000))


def children_growth(run: Run) -> list[Line]:
    """A folder's pages, of 100 and of a million children."""
    return _children(run, CHILDREN_GROWTH, run.size(1_000_000, 2_000))


def _children(run: Run, row: str, many: int) -> list[Line]:
    folders: list[tuple[Data, str]] = []
    for count in (_FEW, many):
        began = time.monotonic()
        data = run.prepare(run.folder(f"{row}-{count}") / "data")
        folders.append((data, _fill(data, count)))
        print(f"    {count:,} children in {time.monotonic() - began:.0f} s", flush=True)
    (few, few_id), (lots, lots_id) = folders
    # The objects are copies of rows, which no index knows, and which the index agent is not to find.
    alone = "repository.index_check_seconds=0.0"
    with ours.serving(few, alone) as small, ours.serving(lots, alone) as large:
        asked = [_pages(small, few_id, _FEW), _pages(large, lots_id, many)]
        return [
            _flat(run, row, work, many, (large, asked[1][at]), (small, asked[0][at]))
            for at, work in enumerate(("first page of a folder", "page in the middle of a folder, by its cursor"))
        ]


def _flat(run: Run, row: str, work: str, many: int, large: tuple[Site, Request], small: tuple[Site, Request]) -> Line:
    def ask(side: tuple[Site, Request]) -> Figures:
        site, request = side
        return load.run([request], ["passage-"], [site.program], seconds=run.seconds, connections=1)

    figures = run.measure_in_turn(ask, large, small)
    return page.compared(
        row,
        f"{work}, {_PAGE} entries, {many:,} children, 1 client, p50",
        f"the same page of a folder with {_FEW} children",
        [one.p50 for one in figures[0]],
        [one.p50 for one in figures[1]],
        unit=" ms",
        target=FLAT,
        our_cpu=page.cpu(one.cpu for one in figures[0]),
        their_cpu=page.cpu(one.cpu for one in figures[1]),
        remark="The caller may see three children of four, under forty ACLs; both servers run at one time.",
    )


@as_it_was
def _fill(data: Data, count: int) -> str:
    """Put so many documents without content into a cabinet, and return its id.

    The first document of each ACL is made as a caller makes one. The others are copies of its row.
    """
    opened = data.opened()
    with opened.database("repository") as database:
        with database.begin() as cx:
            held = repositories.find(cx, initialise.REPOSITORY)
            view = RepositoryView.read(cx, held, Principals("admin@directory.admin", administrator=True))
            given = {"object_name": _FOLDER, "acl_name": acls.PUBLIC}
            cabinet = creation.create(cx, view, "cabinet", given, None, None, opened.now).id
            patterns = []
            for number in range(ACLS):
                of_document = {"object_name": f"passage-{number:07}.txt", "acl_name": f"acl-{number}"}
                made = creation.create(cx, view, "document", of_document, cabinet, None, opened.now)
                row = cx.execute(sa.select(table.objects).where(table.objects.c.id == made.id)).mappings().one()
                patterns.append(dict(row))
            last = cx.execute(sa.select(sa.func.max(table.objects.c.seq))).scalar_one()
        for begin in range(ACLS, count, _MANY):
            with database.begin() as cx:
                rows = []
                for number in range(begin, min(begin + _MANY, count)):
                    pattern, seq = patterns[number % ACLS], last + 1 + number
                    object_id = object_ids.make(cx, view.catalogue, pattern["type"], seq)
                    rows.append({**pattern, "seq": seq, "id": object_id, "name": f"passage-{number:07}.txt"})
                cx.execute(table.objects.insert(), rows)
    return cabinet


def _pages(site: Site, folder_id: str, count: int) -> tuple[Request, Request]:
    """Prepare to ask for the first page of a folder, and for one in its middle."""
    headers = (bearer(site.signed_in()["access_token"]), ("Accept", "application/atom+xml"))
    address = f"{site.repository}/folders/{folder_id}/objects"
    first = Request("GET", f"{address}?items-per-page={_PAGE}", "", headers)
    stride = min(_STRIDE, count // 5)
    following, seen = f"{address}?items-per-page={stride}", 0
    # The caller sees three of four, so half of all lies behind two thirds of what they see.
    while seen < count // 2:
        following = _next(site.ask(Request("GET", following, "", headers)))
        seen += stride * 4 // 3
    parts = urlsplit(following)
    parameters = {**dict(parse_qsl(parts.query)), "items-per-page": str(_PAGE)}
    return first, Request("GET", f"{address}?{urlencode(parameters)}", "", headers)


def _next(feed: httpx.Response) -> str:
    """Return the address of the page after this one."""
    links = feed.text.split("<link ")
    (link,) = [each for each in links if 'rel="next"' in each]
    return link.partition('href="')[2].partition('"')[0].replace("&amp;", "&")


def import_rate(run: Run) -> list[Line]:
    """The rate of an import of 100,000 files, from its first tenth to its last."""
    return _import_rate(run, RATE, run.size(100_000, 10_000))


def import_rate_growth(run: Run) -> list[Line]:
    """The rate of an import of a million files, from its first tenth to its last."""
    return _import_rate(run, RATE_GROWTH, run.size(1_000_000, 10_000))


def _import_rate(run: Run, row: str, count: int) -> list[Line]:
    work = f"import of {count:,} texts of about 1 kB into one repository: the slowest tenth of it"
    beside = "its first tenth"
    folder = run.folder(row)
    if shutil.disk_usage(folder).free < count * _BYTES_OF_FILE:
        needed = f"{count * _BYTES_OF_FILE / 2**30:.0f} GiB are needed on the disk of {folder}"
        return [page.skipped(row, work, beside, needed, STEADY)]
    _write_files(folder / "files", count)
    data = run.prepare(folder / "data")
    with ours.serving(data) as site:
        used = site.program.cpu_seconds()
        rates, took = _rates(data, folder, count)
        used = site.program.cpu_seconds() - used
    return [
        page.compared(
            row,
            work,
            beside,
            [min(rates[1:])],
            [rates[0]],
            target=STEADY,
            remark=(
                f"Files a second by tenths: {', '.join(f'{rate:,.0f}' for rate in rates)}; {took / 60:.1f} minutes in "
                f"all. The server runs with the default settings and indexes meanwhile ({used:.0f} s of its CPU), and "
                "the import waits whenever the index is too far behind."
            ),
        )
    ]


def _rates(data: Data, folder: Path, count: int) -> tuple[list[float], float]:
    """Import the files, and return the files a second of each tenth, and how many seconds all took."""
    command = ours.command(data, "import", str(folder / "files"), "--acl", "public", "--no-wait")
    moments: list[tuple[float, int]] = []
    began = time.perf_counter()
    with (
        (folder / "import.log").open("wb") as log,
        sqlite3.connect(f"file:{data.folder / 'repository.db'}?mode=ro", uri=True) as driver,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            while process.poll() is None and time.perf_counter() - began < _IMPORT_SECONDS:
                moments.append((time.perf_counter(), _objects(driver)))
                time.sleep(0.05)
        finally:
            late = process.poll() is None
            process.kill()
        moments.append((time.perf_counter(), _objects(driver)))
    if late or process.returncode or moments[-1][1] < count:
        text = (folder / "import.log").read_text(errors="replace")
        raise load.WrongAnswers(f"the import ended with {moments[-1][1]:,} objects: {text.strip()[-500:]}")
    return by_parts(moments, count), moments[-1][0] - began


def by_parts(moments: Sequence[tuple[float, int]], count: int) -> list[float]:
    """Return the files a second of each tenth. The first tenth begins when the first files are there."""
    begun = next(at for at, (_, made) in enumerate(moments) if made > 1)
    rates = []
    before, made_before = moments[begun]
    for part in range(1, _PARTS + 1):
        moment, made = next((when, made) for when, made in moments[begun:] if made >= count * part // _PARTS)
        rates.append((made - made_before) / max(moment - before, 1e-3))
        before, made_before = moment, made
    return rates


def _objects(driver: sqlite3.Connection) -> int:
    """Count the objects that were ever made."""
    found = driver.execute("SELECT seq FROM sqlite_sequence WHERE name = 'objects'").fetchone()
    return int(found[0]) if found else 0


def _write_files(folder: Path, count: int) -> None:
    """Write so many files, 1,000 in a folder, no two of them equal."""
    texts = _texts(count)
    for number in range(count):
        if number % 1000 == 0:
            place = folder / f"{number // 1000:04}"
            place.mkdir(parents=True)
        (place / f"text-{number}.txt").write_text(next(texts), encoding="utf-8")


def _texts(count: int) -> Iterator[str]:
    some = passages(min(count, 50_000))
    for number in range(count):
        yield f"{number} {some[number % len(some)][:1000]}"
