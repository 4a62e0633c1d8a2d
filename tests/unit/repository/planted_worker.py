"""The worker process with a reader planted in it that does what a taken-over library might: the file says what."""

import contextlib
import ctypes
import fcntl
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import BinaryIO

from muniment.repository.store.extraction.confined import worker
from muniment.repository.store.extraction.findings import Extracted, Limits
from muniment.repository.store.extraction.readers import readers


def main() -> None:
    readers.read = _obey
    worker.main(sys.argv[1:])


def _obey(file: BinaryIO, name: str, media_type: str, limits: Limits) -> Extracted:
    os.environ["ADDRESS"] = name
    return Extracted(str(_DEEDS[file.read().decode()](limits)), "")


def _tried(what: str, deed: Callable[[], object]) -> str:
    try:
        deed()
    except OSError as error:
        return f"{what}: {type(error).__name__}"
    except RuntimeError as error:
        return f"{what}: {type(error).__name__} {error}"
    return f"{what}: done"


def _syscall(number: int, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")


def _network(limits: Limits) -> str:
    return "; ".join(
        (
            _tried("tcp", lambda: socket.create_connection(("127.0.0.1", int(os.environ["ADDRESS"])), 1)),
            _tried("socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
            _tried("socket6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM)),
            _tried("unix", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)),
            _tried("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
            _tried("datagram pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)),
            _tried("name", lambda: socket.getaddrinfo("localhost", 80)),
        )
    )


def _files(limits: Limits) -> str:
    return "; ".join(
        (
            _tried("read", lambda: open("/etc/passwd").read()),
            _tried("write", lambda: open("/tmp/planted", "w").write("x")),
            _tried("list", lambda: os.listdir("/")),
            _tried("remove", lambda: os.remove("/tmp/nothing")),
            _tried("rename", lambda: os.rename("/tmp/nothing", "/tmp/else")),
            _tried("folder", lambda: os.mkdir("/tmp/planted-folder")),
            _tried("own file", lambda: os.write(60, b"x")),
            _tried("stat", lambda: os.stat("/etc/passwd")),
        )
    )


def _signal_by_pipe(process_id: int) -> None:
    """Have the kernel send a signal when a pipe of our own can be read (fcntl(2), F_SETOWN and F_SETSIG)."""
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, process_id)
    fcntl.fcntl(reading, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writing, b"x")


def _processes(limits: Limits) -> str:
    return "; ".join(
        (
            _tried("fork", os.fork),
            _tried("exec", lambda: os.execv("/bin/true", ["true"])),
            _tried("spawn", lambda: os.posix_spawn("/bin/true", ["true"], {})),
            _tried("kill", lambda: os.kill(os.getppid(), signal.SIGTERM)),
            _tried("signal by a pipe", lambda: _signal_by_pipe(os.getppid())),
            _tried("session", os.setsid),
            _tried("limit", lambda: resource.setrlimit(resource.RLIMIT_CPU, (99, 99))),
            _tried("trace", lambda: _syscall(101, 0, 0, 0, 0)),
            _tried("namespace", lambda: _syscall(272, 0x20000000)),
        )
    )


def _eat(limits: Limits) -> int:
    eaten = bytearray()
    while True:
        eaten += bytes(16 << 20)


def _burn(limits: Limits) -> None:
    while True:
        pass


def _swallow_memory_errors(limits: Limits) -> None:
    while True:
        with contextlib.suppress(MemoryError):
            _eat(limits)


def _raise(limits: Limits) -> None:
    raise ValueError("a library's own bug")


def _lie(limits: Limits) -> None:
    os.write(61, b'{"outcome":"surprise","note":1}\n' + b"\xff" * 100)
    os._exit(0)


def _flood(limits: Limits) -> None:
    while True:
        os.write(61, b"x" * 65536)


def _trickle(limits: Limits) -> None:
    while True:
        os.write(61, b"x")
        time.sleep(0.02)


_DEEDS: dict[str, Callable[[Limits], object]] = {
    "words": lambda limits: "words",
    "network": _network,
    "files": _files,
    "processes": _processes,
    "environment": lambda limits: sorted(os.environ),
    "descriptors": lambda limits: [number for number in range(1024) if _is_open(number)],
    "hang": lambda limits: time.sleep(1000),
    "burn": _burn,
    "eat": _eat,
    "swallow": _swallow_memory_errors,
    "crash": lambda limits: ctypes.string_at(1),
    "abort": lambda limits: os.abort(),
    "leave": lambda limits: os._exit(3),
    "raise": _raise,
    "lie": _lie,
    "flood": _flood,
    "trickle": _trickle,
    "recurse": lambda limits: _recurse(),
    "write size": lambda limits: resource.getrlimit(resource.RLIMIT_FSIZE),
    "parent": lambda limits: os.getppid(),
}


def _recurse() -> int:
    return 1 + _recurse()


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
