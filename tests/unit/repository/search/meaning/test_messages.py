"""Messages between a process and the worker that embeds its texts."""

import socket
import struct

import pytest

from muniment.repository.search.meaning import messages


@pytest.mark.parametrize("sent", [b"", b"ab"])
def test_a_message_that_is_cut_off_is_refused(sent: bytes) -> None:
    here, there = socket.socketpair()
    with here, there:
        here.sendall(struct.pack(messages._LENGTH.format, 3) + sent)
        here.shutdown(socket.SHUT_WR)
        with pytest.raises(OSError, match="cut off"):
            messages.receive(there)
