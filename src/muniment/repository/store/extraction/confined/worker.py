"""The worker process: it loads the libraries once. It forks a child for each file: so no file can see another, memory
does not grow, and a file that breaks its reader breaks nothing else.

`process.Reader` starts it by ``python -I -m`` with this module's name, and ``<socket> <parent> <limits>``.
"""

import contextlib
import encodings
import importlib
import os
import pkgutil
import socket
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter

import msgspec

from muniment.repository.store.extraction.confined import sandbox
from muniment.repository.store.extraction.confined.messages import Ended, ReadAnswer, Ready, Request
from muniment.repository.store.extraction.findings import Limits, Unreadable, Unsupported
from muniment.repository.store.extraction.readers import readers
from muniment.repository.store.extraction.tika import tika_answers

_SOURCE, _TARGET = 60, 61
_UNFENCED = "The file was not read: this system offers no way to keep its reader off the network."


def main(arguments: list[str]) -> None:
    channel = socket.socket(fileno=int(arguments[0]))
    limits = msgspec.json.decode(arguments[2], type=Limits)
    os.nice(10)
    offline = sandbox.leave_the_network()
    # Not earlier: the kernel forgets this setting when a process enters a new user namespace.
    sandbox.die_with_parent(int(arguments[1]))
    _load_codecs()
    readers.warm_up()
    # From now on no module can be loaded: an import must fail cleanly, not at the sandbox's filter.
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter]
    channel.send(msgspec.json.encode(Ready(offline)))
    while True:
        message, descriptors, _flags, _address = socket.recv_fds(channel, 1 << 16, 2)
        if not message:
            return
        process_id = os.getpid()
        child = os.fork()
        if child == 0:
            _child(process_id, msgspec.json.decode(message, type=Request), descriptors, limits, offline)
        for descriptor in descriptors:
            os.close(descriptor)
        _pid, status = os.waitpid(child, 0)
        channel.send(msgspec.json.encode(Ended(os.waitstatus_to_exitcode(status))))


def _child(parent: int, request: Request, descriptors: list[int], limits: Limits, offline: bool) -> None:
    code = 1
    try:
        sandbox.die_with_parent(parent)
        # Only these two descriptors stay open, and the standard three, which are /dev/null.
        source, target = os.dup2(descriptors[0], _SOURCE), os.dup2(descriptors[1], _TARGET)
        os.closerange(3, _SOURCE)
        os.closerange(_TARGET + 1, 4096)
        sandbox.limit(limits)
        fenced = sandbox.forbid_everything_else() or offline
        answer, pieces = _read(source, request, limits) if fenced else (ReadAnswer("failed", _UNFENCED), [])
        with os.fdopen(target, "wb") as out:
            out.write(msgspec.json.encode(answer) + b"\n")
            out.writelines(pieces)
        code = 0
    finally:
        os._exit(code)


def _read(source: int, request: Request, limits: Limits) -> tuple[ReadAnswer, list[bytes]]:
    try:
        file = os.fdopen(source, "rb")
        if request.is_answer:
            result = tika_answers.read(file, limits)
        else:
            result = readers.read(file, request.name, request.media_type, limits)
    except Unreadable as refusal:
        return ReadAnswer("failed", str(refusal)), []
    except Unsupported as refusal:
        return ReadAnswer("unsupported", str(refusal)), []
    except MemoryError:
        return ReadAnswer(
            "poisoned", f"Reading it needs more than the {limits.memory >> 20} MiB of memory allowed."
        ), []
    except RecursionError:
        return ReadAnswer("failed", "The file is nested too deep to be read."), []
    except BaseException as error:  # noqa: BLE001 - a library may raise anything, one in Rust no mere Exception
        return ReadAnswer("poisoned", f"Its reader failed: {type(error).__name__}: {str(error)[:300]}"), []
    properties = {name: list(values) for name, values in result.properties.items()}
    text = result.text.encode()
    kept = tuple((each.name, len(each.content)) for each in result.kept)
    answer = ReadAnswer("read", result.note, properties, result.scanned, len(text), kept)
    return answer, [text, *(each.content for each in result.kept)]


def _load_codecs() -> None:
    for module in pkgutil.iter_modules(encodings.__path__):
        with contextlib.suppress(ImportError):
            importlib.import_module(f"encodings.{module.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
