"""What a library taken over by a file can reach on the network: nothing, not even a port of this machine."""

import socket
import sys
from collections.abc import Iterator

import pytest

from muniment.repository.store.extraction.confined import process
from muniment.repository.store.extraction.confined.process import Reader
from muniment.repository.store.extraction.findings import Unreadable
from tests.unit.repository.store.extraction.confined.test_sandbox import LIMITS, PLANTED, do, needs_filter


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    monkeypatch.setattr(process, "_PROGRAM", (sys.executable, "-I", "-c", PLANTED))
    with Reader(LIMITS) as opened:
        yield opened


@pytest.fixture
def port() -> Iterator[str]:
    """A port of this machine where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield str(listening.getsockname()[1])


@needs_filter
def test_nothing_outside_can_be_reached(reader: Reader, port: str) -> None:
    """failures B9"""
    outcomes = do(reader, "network", name=port).split("; ")
    assert len(outcomes) >= 7
    assert [outcome for outcome in outcomes if "Error" not in outcome and "gaierror" not in outcome] == []


def test_either_ban_is_enough(reader: Reader, port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = []
    for lifted in ("forbid_everything_else", "leave_the_network"):
        reader.close()
        half = PLANTED.replace(
            "main()",
            "from muniment.repository.store.extraction.confined import sandbox\n"
            f"sandbox.{lifted} = lambda: False\nmain()",
        )
        monkeypatch.setattr(process, "_PROGRAM", (sys.executable, "-I", "-c", half))
        try:
            refused.append(do(reader, "network", name=port))
        except Unreadable:
            continue  # This system offers only the other one.
    assert refused, "this system offers neither"
    assert all("tcp: OSError" in outcomes for outcomes in refused)
