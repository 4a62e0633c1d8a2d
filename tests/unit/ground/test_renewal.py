import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from muniment.ground import renewal
from muniment.ground.renewal import Renewable


class Pair:
    """A file that fits its neighbour if both have the same text."""

    def __init__(self, folder: Path) -> None:
        self.files = [folder / "lock", folder / "key"]
        self.made = 0
        self.replace("first", "first")
        self.renewable = Renewable(self.files, self._make, "put a pair there")

    def replace(self, *texts: str) -> None:
        for file, text in zip(self.files, texts, strict=True):
            file.write_text(text)

    def _make(self) -> str:
        self.made += 1
        lock, key = (file.read_text() for file in self.files)
        if lock != key:
            raise ValueError("The key does not fit.")
        return lock


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setattr(renewal, "LOOK_SECONDS", 0.0)
    return Pair(tmp_path)


def test_what_was_replaced_is_read_once_and_used(pair: Pair) -> None:
    pair.replace("second", "second")
    assert [pair.renewable.newest() for _ in range(3)] == ["second"] * 3
    assert pair.made == 2


def test_a_pair_that_does_not_fit_leaves_the_former_and_is_told_of_once(pair: Pair) -> None:
    with capture_logs() as lines:
        pair.replace("second", "third")
        assert pair.renewable.newest() == "first"
        assert lines == [], "the other file may be on its way"
        assert [pair.renewable.newest() for _ in range(3)] == ["first"] * 3
        assert [(line["event"], line["to_do"], line["reason"]) for line in lines] == [
            ("replaced files cannot be used", "put a pair there", "The key does not fit.")
        ]
        pair.replace("third", "third")
        assert pair.renewable.newest() == "third"
        pair.replace("fourth", "fifth")
        assert [pair.renewable.newest() for _ in range(3)] == ["third"] * 3
        assert len(lines) == 2


def test_a_file_that_is_gone_leaves_what_was_read(pair: Pair) -> None:
    with capture_logs() as lines:
        pair.files[1].unlink()
        assert [pair.renewable.newest() for _ in range(3)] == ["first"] * 3
        assert len(lines) == 1
    pair.replace("second", "second")
    assert pair.renewable.newest() == "second"


def test_a_copy_with_an_old_date_and_another_target_of_a_link_are_noticed(pair: Pair, tmp_path: Path) -> None:
    dates = pair.files[0].stat()
    pair.replace("other", "other")
    for file in pair.files:
        os.utime(file, ns=(dates.st_atime_ns, dates.st_mtime_ns))
    assert pair.renewable.newest() == "other"
    (tmp_path / "elsewhere").write_text("third")
    for file in pair.files:
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "link").rename(file)
    assert pair.renewable.newest() == "third"


def test_the_files_are_looked_at_from_time_to_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("muniment.ground.renewal.time.monotonic", lambda: now)
    pair = Pair(tmp_path)
    pair.replace("second", "second")
    assert pair.renewable.newest() == "first"
    now += renewal.LOOK_SECONDS
    assert pair.renewable.newest() == "second"


def test_without_files_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewal, "LOOK_SECONDS", 0.0)
    trust = renewal.renewable_trust("")
    assert trust.newest() is trust.newest()


def test_a_file_without_certificates_is_refused_at_first(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(OSError, match=r"PEM|CERTIFICATE|SSL"):
        renewal.renewable_trust(str(tmp_path / "ca.pem"))
