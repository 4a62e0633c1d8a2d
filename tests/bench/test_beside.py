"""Two commits of ours are measured in turns, and what got worse is marked."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bench import beside, checkout, ours, page
from bench.checkout import Checkout
from bench.page import ROOT
from bench.run import Run

OTHER = Checkout("abc1234", Path("/nowhere"), Path("/nowhere/python"))


def test_two_commits_measure_in_turns_and_nothing_beside_them_is_measured(tmp_path: Path) -> None:
    done: list[str] = []

    def measure(run: Run) -> str:
        name = "ours" if run.checkout is None else run.checkout.commit
        done.append(f"{name} begins in {run.folder('data').parent.name}")
        run.interleaved(lambda: done.append(name), lambda: done.append("a peer"))
        run.measure_in_turn(done.append, f"{name} again", "a bare endpoint")
        return name

    run = Run(tmp_path, frozenset(), quick=False, rounds=2, seconds=1)
    assert beside.both(run, OTHER, measure) == ["ours", "abc1234"]
    assert done == [
        "ours begins in side-0",
        "abc1234 begins in side-1",
        "ours",
        "abc1234",
        "ours",
        "ours again",
        "abc1234",
        "abc1234 again",
        "ours again",
        "abc1234 again",
        "ours again",
        "abc1234 again",
    ]


def test_one_commit_goes_on_when_the_other_has_ended(tmp_path: Path) -> None:
    def measure(run: Run) -> int:
        rounds: list[int] = []
        if run.checkout is None:
            run.interleaved(lambda: rounds.append(1))
        return len(rounds)

    run = Run(tmp_path, frozenset(), quick=False, rounds=3, seconds=1)
    assert beside.both(run, OTHER, measure) == [3, 0]


def test_a_run_that_is_told_to_stop_ends_what_both_commits_have_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    ended: list[str] = []
    join = threading.Thread.join

    def told_to_stop(thread: threading.Thread, timeout: float | None = None) -> None:
        monkeypatch.setattr(threading.Thread, "join", join)
        raise KeyboardInterrupt

    def measure(run: Run) -> None:
        name = "ours" if run.checkout is None else run.checkout.commit
        begun.append(name)
        try:
            run.interleaved(lambda: None)
        finally:
            ended.append(name)

    monkeypatch.setattr(threading.Thread, "join", told_to_stop)
    with pytest.raises(KeyboardInterrupt):
        beside.both(Run(tmp_path, frozenset(), quick=False, rounds=10**9, seconds=1), OTHER, measure)
    assert sorted(begun) == sorted(ended)


def test_the_table_marks_what_is_worse_by_three_tenths_from_its_side() -> None:
    def lines(rate: float, time: float) -> list[page.Line]:
        return [
            page.compared("rates", "reads", "a bare endpoint", [rate], []),
            page.skipped("rates", "reads", "a peer", "no peers"),
            page.compared("times", "waits", "", [time], [], unit=" ms"),
        ]

    assert beside.table(lines(100, 1.2), lines(131, 1), "abc1234")[2:] == [
        "| rates | reads | 100.0/s | 131.0/s | 0.76x | **worse** |",
        "| times | waits | 1.20 ms | 1.00 ms | 1.20x |  |",
    ]
    broken = page.broken("rates", ValueError("a fault"))
    assert beside.table(lines(140, 1.4), [broken], "abc1234")[2:] == [
        "| rates | reads | 140.0/s |  |  |  |",
        "| times | waits | 1.40 ms |  |  |  |",
        "| rates | rates |  |  |  | Broke: ValueError: a fault |",
    ]
    assert [line.rpartition("x | ")[2] for line in beside.table(lines(140, 1.4), lines(100, 1), "abc1234")[2:]] == [
        "better |",
        "**worse** |",
    ]


def test_a_commit_is_run_from_its_checkout_which_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    (project / "src" / "muniment").mkdir(parents=True)
    (project / "requirements.lock").write_text("")
    module = project / "src" / "muniment" / "__init__.py"
    identity = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    for when in ("then", "now"):
        module.write_text(f"WHEN = {when!r}\n")
        for command in ("init -q", "add .", f"commit -q -m {when}"):
            subprocess.run(["git", *identity, *command.split()], cwd=project, check=True)
    monkeypatch.setattr(checkout, "ROOT", project)
    monkeypatch.setenv("PYTHONPATH", str(project / "src"))
    with checkout.checked_out("HEAD~1", tmp_path) as found:
        said = subprocess.check_output(found.command("-c", "import muniment, httpx; print(muniment.WHEN)"), text=True)
        assert said == "then\n"
    assert not found.folder.exists()
    with pytest.raises(RuntimeError, match="no-such-commit"), checkout.checked_out("no-such-commit", tmp_path):
        pass


def test_another_commit_makes_and_fills_its_data_folder_itself(tmp_path: Path) -> None:
    cheap = ("directory.hash_memory_kib=8192", "directory.hash_passes=1")
    here = Checkout("abc1234", ROOT, Path(sys.executable))
    data = ours.prepare_at(here, tmp_path / "data", *cheap)
    assert (data.checkout, data.overrides, (data.folder / "directory.db").exists()) == (here, cheap, True)
    assert ours.command(data, "serve")[:5] == ["env", "-u", "PYTHONPATH", sys.executable, "-m"]
    ours.join_many(data, 10)
