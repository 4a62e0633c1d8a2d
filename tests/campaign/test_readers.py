"""Only refusals come out of a reader, each in linear time and within memory: by generated and by guided bytes."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import passes
from tests.campaign.readers import LONGEST, READERS, read_one
from tests.properties.lengths import examples

GUIDED_SECONDS = 6
"""How long atheris works on one reader."""

_MOST = 150
"""How many passes over the longest input one read may take: about a second where a pass takes 7 ms."""

_MEMORY = 64 * 2**20
_UNITS = (
    b"[", b'{"a":', b'"a",', b"<a>", b"<a/>", b"(", b'"', b"a ", b"NOT ", b"a*", b"&", b"a=b&", b"%41", b"\\", b",",
    b"=", b"--x\r\n", b"\r\n", b"W/", b";", b"q=", b":", b"9", b"-", b" ", "\u0301".encode(), b"\xff", b"a@",
)  # fmt: skip


def changed(name: str) -> st.SearchStrategy[bytes]:
    """What the reader reads, in pieces, repeated, cut and joined with any bytes."""
    seeds = READERS[name].seeds
    pieces = st.one_of(
        st.sampled_from(sorted({seed[at : at + 8] for seed in seeds for at in range(0, len(seed), 3)})),
        st.binary(max_size=8),
        st.text(max_size=4).map(str.encode),
    )
    built = st.lists(pieces, max_size=12).map(b"".join)
    return st.one_of(
        built,
        st.builds(_within, st.sampled_from(list(seeds)), st.integers(0, 10_000), built),
    )


def _within(seed: bytes, at: int, other: bytes) -> bytes:
    return seed[: at % len(seed)] + other + seed[at % len(seed) :]


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=examples(30, 1500), deadline=None)
@given(st.data())
def test_any_bytes_are_read_or_refused(name: str, data: st.DataObject) -> None:
    read_one(name, data.draw(changed(name)))


@pytest.mark.campaign
@pytest.mark.parametrize("name", READERS)
def test_the_longest_input_of_any_kind_is_read_or_refused_in_time_and_memory(name: str) -> None:
    """failures A14, failures B7, B8: what is long, deep or repeated costs no more than what is read."""
    seed = READERS[name].seeds[0]
    shapes = [seed * (LONGEST // len(seed)), seed + b"\x00" * LONGEST]
    shapes += [unit * (LONGEST // len(unit)) for unit in _UNITS]
    shapes += [shape[: LONGEST // 2] + seed for shape in shapes]
    for shape in shapes[:: examples(3, 1)]:
        cost = _cost(name, shape)
        assert cost < _MOST or min(cost, _cost(name, shape)) < _MOST, (shape[:40], cost)
    for shape in shapes[:: examples(7, 1)]:  # what is traced takes ten times as long
        tracemalloc.start()
        read_one(name, shape)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < _MEMORY, (shape[:40], peak)


def _cost(name: str, shape: bytes) -> float:
    """Measure the processor time of one read, in passes over as many characters measured beside it."""
    return passes.measure(lambda: read_one(name, shape), LONGEST)


@pytest.fixture(scope="module")
def guided() -> Iterator[Callable[[str, Path, list[str]], int]]:
    """Start ``coverage_guided``, and yield a function that runs one reader there and gives the status of its end."""
    # A process inherits the peak memory of the one that starts it, and libFuzzer takes that for its own. So a shell
    # starts it, which is small.
    command = ["/bin/sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-m", "tests.campaign.coverage_guided"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:

        def run(name: str, printed: Path, options: list[str]) -> int:
            assert process.stdin is not None
            assert process.stdout is not None
            print(json.dumps([name, str(printed), options]), file=process.stdin, flush=True)
            answered, _, _ = select.select([process.stdout], [], [], GUIDED_SECONDS * 4 + 60)
            assert answered, f"{name} has not ended: {printed} has what it printed"
            return int(process.stdout.readline())

        yield run
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.campaign
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris has a wheel for Linux on x86-64 alone")
@pytest.mark.parametrize("name", READERS)
def test_bytes_that_reach_new_code_are_read_or_refused(
    guided: Callable[[str, Path, list[str]], int], name: str, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    for number, seed in enumerate(READERS[name].seeds):
        (kept / str(number)).write_bytes(seed)
    options = (f"-max_total_time={GUIDED_SECONDS}", "-timeout=60", "-rss_limit_mb=1024", "-max_len=20000", "-seed=1")
    printed = tmp_path / "printed"
    status = guided(name, printed, [*options, f"-artifact_prefix={tmp_path}/", str(kept)])
    told = printed.read_text("utf-8", "replace")
    found = [file.read_bytes()[:2000] for file in tmp_path.iterdir() if file.is_file() and file != printed]
    assert status == 0, f"{told[-3000:]}\n{found}"
    done = re.search(r"Done (\d+) runs", told)
    assert done, told[-2000:]
    assert int(done[1]) > 1000
    print(f"{name}: {done[1]} inputs, {len(list(kept.iterdir()))} of them kept")
