"""An archive that is given up within an entry is let go without a word."""

import gc
import random
import sys

import pytest

from muniment.repository.store.content.archive import Archive


@pytest.mark.slow
def test_an_archive_that_is_given_up_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored = list[object]()
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    archive = Archive()
    entry = archive.add("page.bin", 9 << 20, 0, (random.Random(1).randbytes(3 << 20) for _ in range(3)))
    assert next(entry)
    cycle: list[object] = [archive, entry]  # as the traceback of what cuts an answer off is
    cycle.append(cycle)
    del archive, entry, cycle
    gc.collect()
    assert not ignored
