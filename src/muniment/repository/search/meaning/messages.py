"""The messages between the embedder and its process: a length in 4 bytes, then the bytes."""

import socket
import struct

import msgspec

MOST_BYTES = 4_000_000

_LENGTH = struct.Struct(">I")


class Hello(msgspec.Struct, frozen=True):
    """The model is loaded; if ``fenced``, off the network."""

    fenced: bool


def send(channel: socket.socket, message: bytes) -> None:
    channel.sendall(_LENGTH.pack(len(message)) + message)


def receive(channel: socket.socket) -> bytes | None:
    """Return None after the last one. Raises OSError, also for one too long or cut off."""
    header = _read(channel, _LENGTH.size)
    if not header:
        return None
    (length,) = _LENGTH.unpack(header)
    if length > MOST_BYTES:
        raise OSError("The message is longer than is allowed.")
    message = _read(channel, length)
    if len(message) < length:
        raise OSError("The message is cut off.")
    return message


def _read(channel: socket.socket, length: int) -> bytes:
    read = bytearray()
    while len(read) < length:
        piece = channel.recv(length - len(read))
        if not piece and not read:
            return b""
        if not piece:
            raise OSError("The message is cut off.")
        read += piece
    return bytes(read)
