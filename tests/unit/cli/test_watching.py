"""A watched folder is followed: whatever is dropped there, changed, renamed or deleted is soon in the repository."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muniment.repository.bulk.importing import settling, watching
from tests.unit.cli.test_commands import QUICK
from tests.unit.cli.test_importing import Place
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], initialise: Callable[[Path], Path]) -> Place:
    return Place(tmp_path, capsys, initialise)


@contextmanager
def following(place: Place, *arguments: str, polling: bool = False) -> Iterator[Path]:
    """Watch the folder in a process of its own until the block ends; gives the file with its output."""
    log = place.data.parent / "log"
    command = [sys.executable, "-m", "muniment", "--data", str(place.data), *QUICK]
    environment = {**os.environ, "WATCHFILES_FORCE_POLLING": "true" if polling else "false"}
    with log.open("w") as output:
        work = subprocess.Popen(
            [*command, "import", str(place.folder), "--watch", *arguments],
            stdout=output,
            stderr=output,
            env=environment,
        )
        try:
            until(lambda: work.poll() is not None or "imported" in log.read_text(), log.read_text)
            yield log
            assert work.poll() is None, log.read_text()
            work.send_signal(signal.SIGINT)
            assert work.wait(60) == 0, log.read_text()
        finally:
            work.kill()
            work.wait()
    assert log.read_text().endswith("Stopped.\n")


@pytest.mark.parametrize(
    "polling", [pytest.param(False, id="notices"), pytest.param(True, id="polling", marks=pytest.mark.campaign)]
)
def test_what_happens_in_a_watched_folder_happens_in_the_repository(place: Place, polling: bool) -> None:
    place.write("a.txt", "one")
    place.write("b.txt", "two")
    place.write("c.txt", "three")
    with following(place, "--mirror", polling=polling) as log:
        assert set(place.tree()) == {"Papers", "Papers/a.txt", "Papers/b.txt", "Papers/c.txt"}
        before = place.tree()["Papers/b.txt"].id
        place.write("deep/er/d.txt", "four")
        place.write("a.txt", "ONE!")
        until(lambda: "Papers/deep/er/d.txt" in place.tree(), log.read_text)
        until(lambda: "1 replaced" in log.read_text(), log.read_text)
        assert place.content("Papers/a.txt") == "ONE!"
        (place.folder / "b.txt").rename(place.folder / "deep/b.txt")
        (place.folder / "c.txt").unlink()
        until(lambda: "Papers/deep/b.txt" in place.tree(), log.read_text)
        assert place.tree()["Papers/deep/b.txt"].id == before
        until(lambda: "Papers/c.txt" not in place.tree(), log.read_text)
        assert len(list((place.data / "content/packs").iterdir())) == 1, "one store for all passes"


def test_an_error_of_one_file_does_not_end_the_watch(place: Place) -> None:
    with following(place) as log:
        os.mkfifo(place.folder / "pipe")
        until(lambda: "pipe: not a regular file" in log.read_text(), log.read_text)
        place.write("a.txt", "one")
        until(lambda: "Papers/a.txt" in place.tree(), log.read_text)


def test_a_file_that_grows_is_taken_when_it_is_quiet(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass leaves it, says so, and the next pass after a quiet second takes it: the clock here is the test's."""
    file = place.write("a.txt", "one")
    place.write("old.txt", "old")
    os.utime(place.folder / "old.txt", (1, 1))
    os.utime(file, (5000, 5000))
    now = 5000 * 1_000_000 + 999_999
    monkeypatch.setattr("muniment.ground.clock.now", lambda: now)
    due: list[bool] = []

    def two_passes(folder: Path, is_due: object, polls: object) -> Iterator[None]:
        nonlocal now
        yield
        assert callable(is_due)
        due.append(is_due())
        assert set(place.tree()) == {"Papers", "Papers/old.txt"}
        now += 1
        yield
        due.append(is_due())
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "passes", two_passes)
    printed = place.load("--watch")
    assert "1 still being written" in printed
    assert due == [True, False]
    assert "Papers/a.txt" in place.tree()


def test_a_watch_of_a_folder_that_goes_away_ends_and_deletes_nothing(place: Place) -> None:
    place.write("a.txt", "one")
    ended = iter([None])

    def rest() -> Iterator[None]:
        for _ in watching.passes(place.folder, lambda: False, lambda: None):
            yield next(ended)

    passes = rest()
    next(passes)
    (place.folder / "a.txt").unlink()
    place.folder.rmdir()
    with pytest.raises(watching.FolderGone):
        watching_goes_on(passes)


def watching_goes_on(passes: Iterator[None]) -> None:
    for _ in passes:
        pass


def test_a_folder_that_cannot_be_looked_at_ends_the_watch_with_its_reason(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount whose server is gone: it is not polled for ever, and it is not taken for too many folders."""

    def broken(path: object, **_: object) -> os.stat_result:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected", str(path))

    passes = watching.passes(place.folder, lambda: False, lambda: pytest.fail("It is looked at in turn."))
    next(passes)
    monkeypatch.setattr(os, "stat", broken)
    with pytest.raises(watching.FolderGone, match="cannot be looked at: Transport endpoint"):
        next(passes)
    monkeypatch.undo()


def test_a_file_is_taken_when_its_writer_has_closed_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a writer pauses: a torso is never imported. A file that stays open for ten minutes is."""
    now = 5000 * 1_000_000
    monkeypatch.setattr("muniment.ground.clock.now", lambda: now)
    trees: list[set[str]] = []
    file, log = place.write("scan.pdf", "torso"), place.write("open.log", "line")
    for each in (file, log):
        os.utime(each, (5000, 5000))
    scan, open_log = os.open(file, os.O_WRONLY | os.O_APPEND), os.open(log, os.O_WRONLY)

    def passes(folder: Path, is_due: object, polls: object) -> Iterator[None]:
        nonlocal now
        now += 30 * 1_000_000
        yield
        trees.append(set(place.tree()))
        os.write(scan, b" and the rest")
        os.close(scan)
        os.utime(file, (5030, 5030))
        now += 30 * 1_000_000
        yield
        trees.append(set(place.tree()))
        now += 600 * 1_000_000
        yield
        trees.append(set(place.tree()))
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "passes", passes)
    place.load("--watch")
    os.close(open_log)
    assert trees == [
        {"Papers"},
        {"Papers", "Papers/scan.pdf"},
        {"Papers", "Papers/scan.pdf", "Papers/open.log"},
    ]
    assert place.content("Papers/scan.pdf") == "torso and the rest"


def test_a_quiet_time_can_be_set_and_unfinished_downloads_are_left_out(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 5000 * 1_000_000
    monkeypatch.setattr("muniment.ground.clock.now", lambda: now)
    # A network disk: nobody says whether a file is closed.
    monkeypatch.setattr(settling, "is_being_written", lambda _descriptor: False)
    unfinished = ("a.pdf.part", "b.CRDOWNLOAD", "c.partial", "~$d.docx", "e.tmp", "f.download/inner.txt")
    for name in ("g.txt", "partial.txt", *unfinished):
        os.utime(place.write(name, "words"), (4990, 4990))
    trees: list[set[str]] = []

    def passes(folder: Path, is_due: object, polls: object) -> Iterator[None]:
        nonlocal now
        for _ in range(2):
            yield
            trees.append(set(place.tree()))
            now += 25 * 1_000_000
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "passes", passes)
    place.load("--watch", "--quiet", "30")
    assert trees == [{"Papers"}, {"Papers", "Papers/g.txt", "Papers/partial.txt"}]
    place.load("--quiet", "30", code=2)
