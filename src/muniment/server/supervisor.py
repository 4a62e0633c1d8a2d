"""Start the processes of one server together, restart one that fails, and stop them together.

The supervisor has one thread, because a fork copies no others (docs/decisions/0059).
"""

import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from muniment.installation.exit_codes import as_failure
from muniment.server import memory

log = structlog.get_logger("muniment.supervisor")

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_STEADY_SECONDS = 60.0
_GRACE_SECONDS = 5
_SECOND_SIGNAL_SECONDS = 0.5
"""A signal so soon after another is the same request to stop."""

_PR_SET_PDEATHSIG = 1
_SIGNALS = signal.SIGTERM, signal.SIGINT, signal.SIGCHLD


@dataclass(frozen=True)
class Role:
    """``work`` calls ``ready`` once it can work, and returns soon after ``stop`` is set.

    If a ``vital`` process exits, the server ends with exit code 1. Others, and those that a signal killed, are started
    again.
    """

    name: str
    work: Callable[[threading.Event, Callable[[], None]], None]
    vital: bool = False


@dataclass
class _Child:
    role: Role
    process: int = 0
    started_at: float = 0.0
    ready: bool = False
    pipe: int = -1
    pause: float = _FIRST_PAUSE
    due_at: float = 0.0


def supervise(roles: Sequence[Role], stop_seconds: float, when_ready: Callable[[], None]) -> int:
    """If a process ends before ``when_ready`` and is not ready itself, all end and the exit code is 1.

    The pause doubles, up to a limit, each time a process soon fails again. Processes that have not ended 5 seconds
    after ``stop_seconds`` are killed; a second signal kills them at once, unless it comes within half a second.
    """
    return _Supervisor(roles, stop_seconds, when_ready).run()


class _Supervisor:
    def __init__(self, roles: Sequence[Role], stop_seconds: float, when_ready: Callable[[], None]) -> None:
        self._children = [_Child(role) for role in roles]
        self._stop_seconds = stop_seconds
        self._when_ready = when_ready
        self._announced = False
        self._failed = False
        self._signals: list[float] = []
        self._wake_out, self._wake_in = os.pipe()

    def run(self) -> int:
        for end in (self._wake_out, self._wake_in):
            os.set_blocking(end, False)
        previous_handlers = {number: signal.signal(number, self._note) for number in _SIGNALS}
        previous_wakeup = signal.set_wakeup_fd(self._wake_in, warn_on_full_buffer=False)
        try:
            memory.prepare_forks()
            while not self._stopping() and not self._failed:
                self._start_due()
                self._wait(self._next_due())
                self._reap()
            self._stop()
        finally:
            signal.set_wakeup_fd(previous_wakeup)
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)
            os.close(self._wake_in)
            os.close(self._wake_out)
        return 1 if self._failed else 0

    def _note(self, number: int, _frame: object) -> None:
        # ``timeout`` and others send a signal twice: to the process, and to its group.
        now = time.monotonic()
        if number != signal.SIGCHLD and (not self._signals or now - self._signals[-1] >= _SECOND_SIGNAL_SECONDS):
            self._signals.append(now)

    def _stopping(self) -> bool:
        return bool(self._signals)

    def _start_due(self) -> None:
        for child in self._children:
            if not child.process and child.due_at <= time.monotonic() and not self._stopping():
                try:
                    self._fork(child)
                except OSError as error:  # the system has no room for another process; the others go on
                    if not self._announced:
                        raise
                    self._postpone(child, 2 * child.pause, error.strerror)

    def _fork(self, child: _Child) -> None:
        pipe_out, pipe_in = os.pipe()
        _flush()
        # Signals are blocked until the child has its own handlers. Until then a signal would run the parent's handler.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        parent = os.getpid()
        try:
            process = os.fork()
        except OSError:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.close(pipe_out)
            os.close(pipe_in)
            raise
        if process == 0:
            os.close(pipe_out)
            os.close(self._wake_in)
            os.close(self._wake_out)
            for other in self._children:
                if other.pipe >= 0:
                    os.close(other.pipe)
            os._exit(_run_role(child.role, parent, pipe_in))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(pipe_in)
        child.process, child.pipe, child.started_at, child.ready = process, pipe_out, time.monotonic(), False

    def _next_due(self) -> float | None:
        due_times = [child.due_at for child in self._children if not child.process]
        return max(0.0, min(due_times) - time.monotonic()) if due_times else None

    def _wait(self, seconds: float | None) -> None:
        pipes = [child.pipe for child in self._children if child.pipe >= 0]
        readable, _, _ = select.select([self._wake_out, *pipes], [], [], seconds)
        if self._wake_out in readable:
            os.read(self._wake_out, 4096)
        for child in self._children:
            if child.pipe in readable:
                _close_pipe(child)
        if not self._announced and all(child.ready for child in self._children):
            self._announced = True
            self._when_ready()

    def _reap(self) -> None:
        for child in self._children:
            if not child.process:
                continue
            process, status = os.waitpid(child.process, os.WNOHANG)
            if process == 0:
                continue
            lifetime = time.monotonic() - child.started_at
            self._forget(child)
            if self._stopping():
                continue
            could_work = self._announced or child.ready
            if not could_work or (child.role.vital and not os.WIFSIGNALED(status)):
                log.error("process failed" if could_work else "process could not start", process=child.role.name)
                self._failed = True
                continue
            self._postpone(child, _FIRST_PAUSE if lifetime >= _STEADY_SECONDS else 2 * child.pause)

    def _postpone(self, child: _Child, pause: float, reason: str | None = None) -> None:
        child.pause = min(pause, _LONGEST_PAUSE)
        child.due_at = time.monotonic() + child.pause
        why = {} if reason is None else {"reason": reason}
        log.error("process failed", process=child.role.name, again_in_seconds=child.pause, **why)

    def _forget(self, child: _Child) -> None:
        child.process = 0
        if child.pipe >= 0:
            _close_pipe(child)

    def _stop(self) -> None:
        log.info("stopping")
        self._signal_all(signal.SIGTERM)
        deadline = time.monotonic() + self._stop_seconds + _GRACE_SECONDS
        signals = len(self._signals)
        while any(child.process for child in self._children):
            self._wait(max(0.0, deadline - time.monotonic()))
            for child in self._children:
                if child.process and os.waitpid(child.process, os.WNOHANG)[0] != 0:
                    self._forget(child)
            if time.monotonic() >= deadline or len(self._signals) > signals:
                log.warning("stopped by force", processes=[c.role.name for c in self._children if c.process])
                self._signal_all(signal.SIGKILL)
                signals, deadline = len(self._signals), time.monotonic() + 5
        log.info("stopped")

    def _signal_all(self, number: int) -> None:
        for child in self._children:
            if child.process:
                os.kill(child.process, number)


def _close_pipe(child: _Child) -> None:
    child.ready = os.read(child.pipe, 1) == b"1"
    os.close(child.pipe)
    child.pipe = -1


def _run_role(role: Role, parent: int, pipe: int) -> int:
    stop = threading.Event()
    wake_out, wake_in = os.pipe()
    os.set_blocking(wake_in, False)

    def pass_on(_number: int, _frame: object) -> None:
        os.write(wake_in, b"1")

    def listen() -> None:
        os.read(wake_out, 1)
        stop.set()

    def ready() -> None:
        os.write(pipe, b"1")
        os.close(pipe)

    try:
        # A thread sets the Event. A signal handler must not, because it may interrupt the Event's own wait.
        threading.Thread(target=listen, name="stop", daemon=True).start()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, pass_on)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return 1
        role.work(stop, ready)
    except Exception as error:
        failure = as_failure(error)
        if failure is None:
            log.exception("process failed", process=role.name)
        else:
            log.critical("process failed", process=role.name, reason=failure.sentence)
        return 1
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 1
    finally:
        _flush()
    return 0 if stop.is_set() else 1


def _flush() -> None:
    for output in (sys.stdout, sys.stderr):
        with suppress(OSError):  # lost output must not end the work
            output.flush()
