"""The messages between the embedder and its confined process: each is its length in 4 bytes, and then its bytes."""

import socket
import struct

import msgspec

MOST_BYTES = 4_000_000
"""The most bytes that a message may have."""

_LENGTH = struct.Struct(">I")


class Hello(msgspec.Struct, frozen=True):
    """The process has loaded the model. ``fenced`` says whether it is kept off the network."""

    fenced: bool


def send(channel: socket.socket, message: bytes) -> None:
    channel.sendall(_LENGTH.pack(len(message)) + message)


def receive(channel: socket.socket) -> bytes | None:
    """Receive a message; None after the last one. Raises OSError, also for a message that is too long or cut off."""
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
