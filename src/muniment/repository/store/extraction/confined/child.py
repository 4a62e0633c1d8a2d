"""A process that is to be confined: how is it started with a socket to it, and ended?"""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence

import msgspec

from muniment.repository.store.extraction.findings import Limits


class ChildProcess:
    """It belongs to the thread that starts it: the kernel ends the process when that thread ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def close(self) -> None:
        """End the process, even while it computes."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _start(
        self,
        program: Sequence[str],
        kind: socket.SocketKind,
        environment: Mapping[str, str],
        limits: Limits,
        *further: str,
    ) -> socket.socket:
        """The arguments of the program are ``<socket> <parent> <limits>`` and the ``further`` ones."""
        self.close()
        channel, worker_end = socket.socketpair(socket.AF_UNIX, kind)
        with worker_end:
            given = [str(worker_end.fileno()), str(os.getpid()), msgspec.json.encode(limits).decode(), *further]
            self._process = subprocess.Popen(
                [*program, *given],
                pass_fds=[worker_end.fileno()],
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._channel = channel
        return channel
