"""The gate before every password check."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.directory.passwords import Gate, hash_now
from muniment.web.refusals import Overloaded

QUICK = {"memory_kib": 8192, "passes": 1}


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path / "slots", slots=2, queue=4, **QUICK)
    yield made
    made.close()


def test_the_right_password_is_right_and_any_other_is_wrong(gate: Gate) -> None:
    stored = hash_now("né secret", **QUICK)
    assert gate.check(stored, "né secret").result(30)
    assert gate.check(stored, "ne\u0301 secret").result(30), "composition does not count"
    assert not gate.check(stored, "NÉ secret").result(30)


def test_a_hash_of_the_gate_is_checked_by_the_gate(gate: Gate) -> None:
    stored = gate.hash("a").result(30)
    assert stored.startswith("$argon2id$v=19$m=8192,t=1,p=1$")
    assert gate.check(stored, "a").result(30)


def test_no_stored_password_is_never_right_and_costs_as_much(tmp_path: Path) -> None:
    gate = Gate(tmp_path, slots=1, queue=4, memory_kib=65_536, passes=3)
    stored = hash_now("a", memory_kib=65_536, passes=3)

    def seconds(stored: str | None) -> float:
        begun = time.perf_counter()
        assert not gate.check(stored, "b").result(30)
        return time.perf_counter() - begun

    seconds(None)
    real, dummy = (min(seconds(stored) for _ in range(5)), min(seconds(None) for _ in range(5)))
    gate.close()
    assert 0.5 < dummy / real < 2


def test_a_damaged_stored_hash_is_wrong_and_nothing_worse(gate: Gate) -> None:
    assert not gate.check("rubbish", "a").result(30)


def test_when_too_many_wait_the_next_is_told_so_and_the_waiting_are_served(tmp_path: Path) -> None:
    gate = Gate(tmp_path, slots=1, queue=3, memory_kib=65_536, passes=2)
    stored = hash_now("a", **QUICK)
    waiting, refused = [], 0
    for _ in range(50):
        try:
            waiting.append(gate.check(stored, "a"))
        except Overloaded:
            refused += 1
    assert refused > 0
    assert all(future.result(30) for future in waiting)
    assert gate.check(stored, "a").result(30)
    gate.close()


def test_one_who_left_the_queue_is_not_checked(gate: Gate) -> None:
    with gate._slots.one(), gate._slots.one():
        # One place in the queue stays free: those who left give theirs back only when their turn comes.
        futures = [gate.check(None, "a") for _ in range(3)]
        left = [future.cancel() for future in futures]
    assert gate.check(hash_now("b", **QUICK), "b").result(30)
    assert all(left)


def test_a_closed_gate_lets_nobody_in(gate: Gate) -> None:
    gate.close()
    gate.close()
    with pytest.raises(Overloaded):
        gate.check(None, "a")


def test_all_processes_together_hash_no_more_than_the_slots_at_a_time(tmp_path: Path) -> None:
    """failures A26"""
    first = Gate(tmp_path, slots=1, queue=4, **QUICK)
    second = Gate(tmp_path, slots=1, queue=4, **QUICK)
    with first._slots.one():
        waiting = second.check(None, "a")
        time.sleep(0.1)
        assert not waiting.done(), "the only slot is taken"
    assert waiting.result(30) is False
    first.close()
    second.close()


def test_the_slot_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    holder = (
        "import sys, time; from pathlib import Path; from muniment.directory.passwords import Gate\n"
        "gate = Gate(Path(sys.argv[1]), 1, 1, 8192, 1)\n"
        "with gate._slots.one(): print('held', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", holder, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    gate = Gate(tmp_path, slots=1, queue=1, **QUICK)
    waiting = gate.check(None, "a")
    time.sleep(0.1)
    assert not waiting.done()
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    assert waiting.result(30) is False
    gate.close()
