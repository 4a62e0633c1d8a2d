"""Processor time in passes over many characters, measured beside it: a slow or busy machine takes longer for both."""

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def measure(work: Callable[[], object], over: int = 1_000_000, clock: Callable[[], float] = time.process_time) -> float:
    """Say how many passes over so many characters would take the processor time of some work, in all threads.

    ``clock`` gives the processor time of whoever does the work; otherwise that is this process.
    """
    gc.disable()  # what other tests left on the heap must not be counted
    try:
        before = _pass(over)
        began = clock()
        work()
        took = clock() - began
        return took / max(before, _pass(over))
    finally:
        gc.enable()


def own_time(process: int) -> float:
    """Say how many seconds of processor time a process has taken."""
    return sum(_times(process)[:2]) / _TICKS


def childrens_time(process: int) -> float:
    """Say how many seconds of processor time its children took that have ended."""
    return sum(_times(process)[2:]) / _TICKS


def _times(process: int) -> list[int]:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in fields[11:15]]


def _pass(over: int) -> float:
    text, commas = "," * over, 0
    began = time.process_time()
    for character in text:
        commas += character == ","
    return time.process_time() - began
