"""At least a thousand real files, imported by the command line and read by a running agent, answer these searches.

`real/searches.json` holds words, counts and file names, checked by hand against the files; where a newer release of the
packages may say something more, only what surely stays is expected. The files are made by `bench/documents.py` and kept
in `var/real-documents`, or where MUNIMENT_REAL_DOCUMENTS says.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from muniment.database.connections import Database
from muniment.ground import clock
from muniment.installation import backends, initialise, settings
from muniment.installation.layout import Installation
from muniment.repository.options import RepositoryNames
from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.answering.results import HitPage
from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.spelling import as_xml
from muniment.repository.search.aql.tree import Fulltext, Query, QueryLimits
from muniment.repository.store import repositories
from muniment.repository.store.permissions.principals import Principals
from tests.e2e.processes import ENVIRONMENT, QUICK, initialised, muniment

HERE = Path(__file__).parent / "real"
ROOT = Path(__file__).parents[2]
NEEDED = ("apt-get", "dpkg-deb", "soffice")
OFFICE = {".docx", ".odt", ".rtf", ".xlsx", ".pptx"}
LEAST_READ = 1000


class Expected(msgspec.Struct, forbid_unknown_fields=True):
    """A search, and what is sure of its answer.

    ``found`` is the whole of it, ``among`` a part; ``first`` must come within the first ten; ``least`` and ``most``
    bound the total; each of ``kinds`` is the kind of some hit, ``only`` that of all. With ``pages``, every office file
    is found together with the page it was made of.
    """

    says: str
    q: str = ""
    aql: str = ""
    found: list[str] | None = None
    among: list[str] = []
    first: list[str] = []
    least: int = 1
    most: int | None = None
    kinds: list[str] = []
    only: list[str] = []
    pages: bool = False
    excerpts: dict[str, str] = {}


@pytest.mark.campaign
@pytest.mark.timeout(2400)
@pytest.mark.skipif(
    any(shutil.which(program) is None for program in NEEDED), reason=f"one of {', '.join(NEEDED)} is not installed"
)
def test_a_thousand_real_documents_are_read_and_found(tmp_path: Path) -> None:
    documents, data = made(), tmp_path / "data"
    initialised(data)
    with agent(data, tmp_path / "agent.log"):
        said = command(data, "import", str(documents), "--cabinet", "Documents", "--acl", "public")
        counted = re.search(r"Text: (\d+) read.* (\d+) failed, (\d+) waiting", said)
        assert counted, said
        read, failed, waiting = map(int, counted.groups())
        assert (read >= LEAST_READ, failed, waiting) == (True, 0, 0), said
        assert "sound" in command(data, "index", "check")
    searches = msgspec.json.decode((HERE / "searches.json").read_bytes(), type=list[Expected])
    wrong = [what for search in searches for what in differences(answered(data, search), search)]
    assert not wrong, "\n".join(["", *wrong])


def made() -> Path:
    """Give the folder of documents, made if it is not there yet."""
    folder = Path(os.environ.get("MUNIMENT_REAL_DOCUMENTS") or ROOT / "var" / "real-documents")
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "documents.py"), str(folder)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@contextmanager
def agent(data: Path, log: Path) -> Iterator[None]:
    """Let index agent and extractor run."""
    spelled = [word for setting in (*QUICK, "repository.extraction_processes=2") for word in ("--set", setting)]
    with log.open("wb") as lines:
        running = subprocess.Popen(
            [sys.executable, "-m", "muniment", "--data", str(data), *spelled, "agent"],
            stdout=lines,
            stderr=lines,
            env=ENVIRONMENT,
            start_new_session=True,
        )
    try:
        yield
        assert running.poll() is None, log.read_text()
        running.terminate()
        assert running.wait(60) == 0, log.read_text()
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait(30)


def command(data: Path, *words: str) -> str:
    """Run one command to its end; give what it printed."""
    done = muniment(data, *words, seconds=1500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def answered(data: Path, search: Expected) -> HitPage:
    """Ask the index as it was left, as the administrator."""
    installation = Installation(data, settings.read(None, {}, ()))
    if search.aql:
        query = as_xml.read((HERE / search.aql).read_bytes(), RepositoryNames(), QueryLimits())
    else:
        query = Query(condition=Fulltext(keywords.read(search.q, QueryLimits())))
    database = Database(installation.database_url("repository"))
    try:
        with database.read() as cx:
            repository = repositories.find(cx, initialise.REPOSITORY)
        reader = backends.reader(installation, repository)
        try:
            administrator = Principals("admin@directory.admin", administrator=True)
            question = SearchQuestion(query, 1, 2000, include_total=True)
            snapshot = reader.snapshot()
            with database.read() as cx:
                return results.search(Inquiry(cx, snapshot, repository, administrator, clock.now(), question=question))
        finally:
            reader.close()
    finally:
        database.close()


def differences(page: HitPage, search: Expected) -> list[str]:
    """Say what is not as it must be."""
    names = [hit.title for hit in page.hits]
    kinds = {Path(name).suffix for name in names}
    summaries = {hit.title: hit.summary for hit in page.hits}
    said = []
    if page.total != len(names):
        said.append(f"the total is {page.total}, with {len(names)} hits")
    if search.found is not None and sorted(names) != sorted(search.found):
        said.append(f"found {sorted(names)}")
    if missing := set(search.among) - set(names):
        said.append(f"not found: {sorted(missing)}")
    if late := set(search.first) - set(names[:10]):
        said.append(f"not among the first ten: {sorted(late)}, but {names[:10]}")
    if search.found != [] and not search.least <= len(names) <= (search.most or len(names)):
        said.append(f"{len(names)} hits")
    if not set(search.kinds) <= kinds:
        said.append(f"kinds {sorted(kinds)}")
    if search.only and not kinds <= set(search.only):
        said.append(f"kinds {sorted(kinds)}")
    if search.pages:
        office = [Path(name) for name in names if Path(name).suffix in OFFICE]
        said += [] if office else ["no office file is found"]
        said += [f"{name} without its page" for name in office if f"{name.stem}.html" not in names]
    said += [
        f"excerpt of {name}: {summaries.get(name)!r}"
        for name, piece in search.excerpts.items()
        if piece not in summaries.get(name, "")
    ]
    return [f"{search.says} ({search.aql or search.q}): {each}" for each in said]
