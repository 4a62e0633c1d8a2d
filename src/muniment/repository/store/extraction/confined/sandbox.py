"""How is a process confined so that it can only compute and answer over one pipe?

By resource limits; by a network namespace that reaches nothing, if the system permits one; and by a seccomp filter
(Linux, x86_64 and aarch64) that allows only the system calls of computing: no connection, file, process or signal to
another.
"""

import ctypes
import fcntl
import os
import platform
import resource
import signal
import struct
from collections.abc import Sequence

from muniment.repository.store.extraction.confined.system_calls import ALWAYS, IN_PART
from muniment.repository.store.extraction.findings import Limits

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_CLONE_NEWNET, _CLONE_NEWUSER, _CLONE_THREAD = 0x40000000, 0x10000000, 0x10000
_AF_UNIX, _SOCK_STREAM, _FIONBIO, _PR_SET_NAME = 1, 1, 0x5421, 15
_AT_EMPTY_PATH = 0x1000
_DESCRIPTOR_COMMANDS = (
    *(fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC),
    *(fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL, fcntl.F_SETFL),
)
"""F_SETOWN and F_SETSIG are left out: with both, a write to a pipe sends any signal to any process of the same user."""

_LOAD, _EQUAL, _ANY_BIT, _MASK, _RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_ENOSYS = 38
_OPEN_FILES = 64

_libc = ctypes.CDLL(None, use_errno=True)


_PROCESSORS = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def die_with_parent(parent: int) -> None:
    """``parent`` is its process id."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def leave_the_network() -> bool:
    """Return False if the system permits no namespace of its own."""
    return any(_libc.unshare(flags) == 0 for flags in (_CLONE_NEWNET, _CLONE_NEWUSER | _CLONE_NEWNET))


def limit(limits: Limits) -> None:
    """Limit address space, processor time and open files; forbid writes to files, and core dumps. The kernel counts
    processes per user, so their number has no limit: the filter forbids new ones.
    """
    mapped_bytes = int(_own_statistics().split()[0]) * resource.getpagesize()
    space = mapped_bytes + limits.memory
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def forbid_everything_else() -> bool:
    """Return False if the kernel or the processor supports no filter.

    A call that is not allowed fails with `ENOSYS`, as on a kernel that lacks it, or ends the process.
    """
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    processor = platform.machine()
    if processor not in _PROCESSORS or struct.calcsize("P") != 8:
        return False
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    program = b"".join(_program(*_PROCESSORS[processor], os.getpid()))
    buffer = ctypes.create_string_buffer(program, len(program))
    description = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    return bool(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.create_string_buffer(description), 0, 0) == 0)


def _program(column: int, audit: int, process_id: int) -> list[bytes]:
    no, yes = _step(_RETURN, _ERRNO | _ENOSYS), _step(_RETURN, _ALLOW)
    steps = [_step(_LOAD, 4), _step(_EQUAL, audit, 1, 0), _step(_RETURN, _KILL), _step(_LOAD, 0)]
    # The x32 numbers of x86_64 are higher than all of these, and are refused like every number that is not listed.
    for numbers in ALWAYS.values():
        if (number := numbers[column]) is not None:
            steps += [_step(_EQUAL, number, 0, 1), yes]
    for name, tests in _conditions(process_id).items():
        inner = [step for test in tests for step in (*test, no)] + [yes]
        steps += [_step(_EQUAL, IN_PART[name][column], 0, len(inner)), *inner]
    return [*steps, no]


def _conditions(process_id: int) -> dict[str, list[list[bytes]]]:
    return {
        "fcntl": [_one_of(1, _DESCRIPTOR_COMMANDS)],
        "clone": [[_argument(0), _step(_ANY_BIT, _CLONE_THREAD, 1, 0)]],
        "socketpair": [
            [_argument(0), _step(_EQUAL, _AF_UNIX, 1, 0)],
            [_argument(1), _step(_MASK, 0xF), _step(_EQUAL, _SOCK_STREAM, 1, 0)],
        ],
        "tgkill": [[_argument(0), _step(_EQUAL, process_id, 1, 0)]],
        # A process may read its own limits, but may not set them.
        "prlimit64": [
            [_argument(0), _step(_EQUAL, 0, 1, 0)],
            [_argument(2), _step(_EQUAL, 0, 1, 0)],
            [_argument(2, upper=True), _step(_EQUAL, 0, 1, 0)],
        ],
        "ioctl": [[_argument(1), _step(_EQUAL, _FIONBIO, 1, 0)]],
        "prctl": [[_argument(0), _step(_EQUAL, _PR_SET_NAME, 1, 0)]],
        "newfstatat": [[_argument(3), _step(_ANY_BIT, _AT_EMPTY_PATH, 1, 0)]],
    }


def _one_of(number: int, values: Sequence[int]) -> list[bytes]:
    return [_argument(number), *(_step(_EQUAL, value, len(values) - at, 0) for at, value in enumerate(values))]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _argument(number: int, upper: bool = False) -> bytes:
    return _step(_LOAD, 16 + 8 * number + 4 * upper)


def _own_statistics() -> str:
    with open("/proc/self/statm", encoding="ascii") as file:
        return file.read()
