"""Which file became which object? And may this process import the folder?"""

from pathlib import Path

import pytest

from muniment.ground.clock import SECOND
from muniment.repository.bulk.importing import record
from muniment.repository.bulk.importing.record import ImportRecord
from muniment.repository.refusals import InUse
from muniment.repository.store.leases import HeldLease
from tests.clock import Clock
from tests.shelf import Shelf


def test_records_are_kept_and_replaced_by_path(shelf: Shelf) -> None:
    first = {"": ImportRecord("0c" + "0" * 14), "a": ImportRecord("09" + "1" * 14, 3, 5, "d1")}
    fresh = ImportRecord("09" + "1" * 14, 4, 6, "d2")
    with shelf.database.begin() as cx:
        record.keep_records(cx, shelf.repository.id, "/papers", first)
        record.keep_records(cx, shelf.repository.id, "/papers", {"a": fresh})
        record.keep_records(cx, shelf.repository.id, "/papers", {})
    with shelf.database.read() as cx:
        kept = record.find(cx, shelf.repository.id, "/papers")
        assert record.find(cx, shelf.repository.id, "/other") == {}
    assert kept == {record.key(""): first[""], record.key("a"): fresh}


def test_an_import_that_rested_too_long_loses_its_folder_to_another_machine(shelf: Shelf, tmp_path: Path) -> None:
    clock = Clock()

    def hold(place: str) -> HeldLease:
        with record.hold(shelf.database, tmp_path / place, shelf.repository.id, "/papers", clock) as held:
            held.keep()
            return held

    with record.hold(shelf.database, tmp_path / "here", shelf.repository.id, "/papers", clock) as here:
        clock.now += 50 * SECOND
        here.keep()
        clock.now += 50 * SECOND
        with pytest.raises(InUse, match=r"being imported already, at .*here"):
            hold("there")
        clock.now += 30 * SECOND
        hold("there")
        with pytest.raises(InUse, match="rested too long"):
            here.keep()
    hold("there")
