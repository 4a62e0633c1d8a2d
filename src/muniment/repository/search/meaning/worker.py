"""The confined process: it loads the model, shuts itself in, and then turns texts into vectors.

`process.EmbeddingProcess` starts it, with ``<socket> <parent> <limits> <folder>``. Texts come from strangers, to
libraries that are not ours: so the process can only compute and answer, or without seccomp at least reach no network.
"""

import os
import socket
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter
from pathlib import Path

import msgspec

from muniment.repository.search.meaning import messages
from muniment.repository.search.meaning.encoder import Encoder, as_bytes
from muniment.repository.store.extraction.confined import sandbox
from muniment.repository.store.extraction.findings import Limits

_WARMING = "A process that has read one text can read another one without loading anything."


def main(arguments: list[str]) -> None:
    channel = socket.socket(fileno=int(arguments[0]))
    limits = msgspec.json.decode(arguments[2], type=Limits)
    os.nice(15)
    offline = sandbox.leave_the_network()
    sandbox.die_with_parent(int(arguments[1]))
    encoder = Encoder(Path(arguments[3]))
    as_bytes(encoder.vectors([_WARMING] * 20))
    sandbox.limit(limits)
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter]
    fenced = sandbox.forbid_everything_else() or offline
    messages.send(channel, msgspec.json.encode(messages.Hello(fenced)))
    while fenced and (request := messages.receive(channel)) is not None:
        texts = msgspec.json.decode(request, type=list[str])
        messages.send(channel, as_bytes(encoder.vectors(texts)))


if __name__ == "__main__":
    main(sys.argv[1:])
