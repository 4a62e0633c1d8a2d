"""The bench's page says what was met, what was missed and what was never measured."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from bench import page


def test_a_target_is_met_from_its_side_and_the_aim_is_said_apart() -> None:
    rates = page.compared("r", "work", "peer", [10, 30, 20], [5, 40, 10], target=page.at_least(1.5, 3))
    times = page.compared("r", "work", "peer", [4, 9, 5], [1, 1, 1], unit=" ms", target=page.at_most(3, 2))
    aimed = page.compared("r", "work", "peer", [2], [2], unit=" ms", target=page.at_most(1.2, 1))
    assert (rates.ratio, rates.met, rates.aimed, rates.must, rates.aim) == (2.0, True, False, ">= 1.5x", ">= 3x")
    assert (times.ratio, times.met, times.aimed, times.must, times.aim) == (5.0, False, False, "<= 3x", "<= 2x")
    assert (aimed.met, aimed.aimed) == (True, True)
    assert "| yes |" in page.table([rates])[2]
    assert "| yes, aim |" in page.table([aimed])[2]


def test_a_missed_target_and_a_skipped_peer_are_seen_in_the_table() -> None:
    missed = page.compared("r", "slow work", "peer", [1], [2], target=page.at_least(1))
    skipped = page.skipped("r", "other work", "peer", "no network", page.at_least(2))
    broken = page.broken("r", ValueError("a fault"))
    rows = page.table([missed, skipped, broken])[2:]
    assert ["**no**" in rows[0], "skipped" in rows[1], "broke" in rows[2]] == [True, True, True]
    assert ">= 2x" in rows[1]
    assert "yes" not in "".join(rows)


def test_a_row_is_stale_when_a_newer_tag_has_other_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=Ana", "-c", "user.email=ana@example.org", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()

    def committed(file: str, text: str) -> str:
        (folder / file).write_text(text)
        git("add", ".")
        git("commit", "-q", "-m", text)
        return f"2026-11-23, loop 0.17 to 0.34 s, commit {git('describe', '--always')}"

    monkeypatch.setattr(page, "ROOT", folder)
    git("init", "-q")
    old = committed("src/code.py", "first")
    assert not page.is_stale(old)
    git("tag", "v1")
    later, same = committed("src/code.py", "second"), committed("page.md", "the figures of the second")
    assert not any(page.is_stale(each) for each in (old, later, same)), "the tag has the code of the first"
    git("tag", "-m", "the release", "v2")
    assert [page.is_stale(each) for each in (old, f"{old}-dirty", later, same)] == [True, True, False, False]
    git("clone", "-q", "--depth", "1", folder.as_uri(), str(tmp_path / "shallow"))
    with monkeypatch.context() as there:
        there.setattr(page, "ROOT", tmp_path / "shallow")
        assert not page.is_stale(old), "a clone without history does not know"

    monkeypatch.setattr(page, "PAGE", folder / "page.md")
    monkeypatch.setattr(page, "KEPT", folder / "measured.json")
    lines = [page.Line(row=when, work=f"work of {when}", beside="", when=when) for when in (old, later)]
    page.KEPT.write_bytes(msgspec.json.encode(page.Measured({line.row: [line] for line in lines})))
    page.PAGE.write_text(f"{page.MARKS[0]}\nOn 2 cores. Measured then.\n{page.MARKS[1]}\n")
    page.mark_stale([old, later])
    head = page.PAGE.read_text().splitlines()[1]
    assert head.startswith("On 2 cores. Measured (a) 2026-11-23, loop 0.17 to 0.34 s, commit ")
    found = page.runs_and_rows(page.PAGE.read_text())
    assert {when: [row.endswith(", stale)") for row in rows] for when, rows in found.items()} == {
        old: [True],
        later: [False],
    }
