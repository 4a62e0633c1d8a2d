"""What a library taken over by a file can do in the sandbox: nothing; and what a poison file can cost: little."""

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muniment.repository.store.extraction.confined import process
from muniment.repository.store.extraction.confined.process import Reader, Unstarted
from muniment.repository.store.extraction.findings import Limits, Poisoned, Stopped, Unreadable
from tests.waiting import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[6]
PLANTED = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.unit.repository.planted_worker import main; main()"
)
LIMITS = Limits(seconds=2, memory=256 << 20, characters=10_000, depth=3)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """A reader for the whole module: whatever a file does to its worker, the next file is read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "_PROGRAM", (sys.executable, "-I", "-c", PLANTED))
        with Reader(LIMITS) as opened:
            yield opened


@pytest.fixture
def fresh_reader(reader: Reader) -> Iterator[Reader]:
    """A reader whose worker is started by its first file."""
    with Reader(LIMITS) as opened:
        yield opened


def do(reader: Reader, deed: str, goes_on: Callable[[], bool] = lambda: True, name: str = "9") -> str:
    descriptor = os.memfd_create("deed")
    try:
        os.write(descriptor, deed.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        return reader.read(descriptor, name, "", goes_on).text
    finally:
        os.close(descriptor)


needs_filter = pytest.mark.skipif(
    platform.machine() not in {"x86_64", "aarch64"}, reason="the filter of system calls knows x86_64 and aarch64"
)


@needs_filter
def test_no_process_can_be_started_reached_or_changed(reader: Reader) -> None:
    """failures B9"""
    outcomes = do(reader, "processes").split("; ")
    assert len(outcomes) == 9
    assert [outcome for outcome in outcomes if "Error" not in outcome] == []


@needs_filter
def test_no_file_can_be_opened_changed_or_looked_at_not_even_its_own(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """failures B9"""
    own = tmp_path / "own"
    own.write_text("files")
    descriptor = os.open(own, os.O_RDONLY)
    try:
        outcomes = reader.read(descriptor, "", "", lambda: True).text.split("; ")
    finally:
        os.close(descriptor)
    assert len(outcomes) == 8
    assert [outcome for outcome in outcomes if "Error" not in outcome] == []
    assert own.read_text() == "files"


def test_without_a_ban_on_the_network_no_file_is_read(fresh_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    unfenced = PLANTED.replace(
        "main()",
        "from muniment.repository.store.extraction.confined import sandbox; "
        "sandbox.forbid_everything_else = sandbox.leave_the_network = lambda: False; main()",
    )
    monkeypatch.setattr(process, "_PROGRAM", (sys.executable, "-I", "-c", unfenced))
    with pytest.raises(Unreadable, match="no way to keep its reader off the network"):
        do(fresh_reader, "words")


def test_nothing_is_inherited(fresh_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_SECRET", "secret")
    names = do(fresh_reader, "environment")
    assert "ADDRESS" in names
    assert "MUNIMENT" not in names
    assert "PATH" not in names
    with open(__file__, "rb") as other:
        os.set_inheritable(other.fileno(), True)
        assert do(fresh_reader, "descriptors") == "[0, 1, 2, 60, 61]"
    assert do(fresh_reader, "write size") == "(0, 0)"


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("hang", "longer than the 2 seconds"),
        ("burn", "2 seconds of processor time"),
        ("eat", "more than the 256 MiB of memory"),
        ("swallow", "2 seconds|256 MiB"),
        ("crash", "SIGSEGV"),
        ("abort", "SIGABRT"),
        ("leave", "crashed"),
        ("raise", "a library's own bug"),
        ("lie", "cannot be understood"),
        ("flood", "wrote more than is allowed|SIGPIPE"),
    ],
)
def test_a_poison_file_costs_little_and_the_next_one_is_read(
    reader: Reader, deed: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """failures B10: if nobody ended a deed that goes on for good, the test would run into its time limit."""
    assert do(reader, "words") == "words"
    # On a busy machine the processor time of what burns takes longer to pass than its time on the clock.
    grace = {"burn": 30, "hang": 0}.get(deed, process._GRACE)
    with monkeypatch.context() as patch:
        patch.setattr(process, "_GRACE", grace)
        with pytest.raises(Poisoned, match=reason):
            do(reader, deed)
    assert do(reader, "words") == "words"


def test_endless_recursion_is_a_reason_not_a_crash(reader: Reader) -> None:
    with pytest.raises(Unreadable, match="nested too deep"):
        do(reader, "recurse")


@pytest.mark.parametrize("deed", ["hang", "trickle"])
def test_a_file_no_longer_wanted_is_let_go_at_once(reader: Reader, deed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_GRACE", 1000)  # longer than a test may take
    with pytest.raises(Stopped):
        do(reader, deed, lambda: False)
    assert do(reader, "words") == "words"


def test_each_file_has_a_process_of_its_own_and_the_worker_is_replaced(
    fresh_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_FILES", 3)
    assert len({do(fresh_reader, "parent") for _ in range(3)}) == 1
    assert len({do(fresh_reader, "parent") for _ in range(6)}) >= 2


def test_a_worker_that_does_not_start_is_no_fault_of_the_file(
    fresh_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_PROGRAM", (sys.executable, "-I", "-c", "raise SystemExit"))
    with pytest.raises(Unstarted):
        do(fresh_reader, "words")


def test_a_killed_worker_is_replaced(reader: Reader) -> None:
    worker = int(do(reader, "parent"))
    os.kill(worker, signal.SIGKILL)
    until(lambda: not running(worker))
    assert do(reader, "words") == "words"


def test_killing_the_extractor_kills_its_workers(tmp_path: Path) -> None:
    script = f"""
import os, sys, time
from muniment.repository.store.extraction.confined import process
from muniment.repository.store.extraction.findings import Limits
process._PROGRAM = (sys.executable, "-I", "-c", {PLANTED!r})
reader = process.Reader(Limits(60, 256 << 20, 10_000, 3))
def do(deed, goes_on=lambda: True):
    descriptor = os.memfd_create("deed")
    os.write(descriptor, deed)
    os.lseek(descriptor, 0, 0)
    return reader.read(descriptor, "", "", goes_on).text
print(do(b"parent"), flush=True)
do(b"burn")
"""
    extractor = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert extractor.stdout
    worker = int(extractor.stdout.readline())
    extractor.stdout.close()
    children = Path(f"/proc/{worker}/task/{worker}/children")
    until(lambda: children.read_text().strip(), "the child that burns is not there")
    child = int(children.read_text().split()[0])
    extractor.kill()
    extractor.wait()
    until(lambda: not running(worker) and not running(child))


def running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
