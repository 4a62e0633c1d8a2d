"""A small load generator: keep-alive connections that send one prepared request again and again."""

import asyncio
import ssl
import time
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Figures:
    """What one round saw: answers per second, and the middle and the 99th hundredth of their times in milliseconds."""

    rate: float
    p50: float
    p99: float


def request(method: str, address: str, body: bytes = b"", **headers: str) -> bytes:
    """Write an HTTP/1.1 request."""
    parts = urlsplit(address)
    lines = [f"{method} {parts.path}{'?' + parts.query if parts.query else ''} HTTP/1.1", f"Host: {parts.netloc}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def run(address: str, prepared: bytes, expected: bytes, *, seconds: float, connections: int, ca_file: str) -> Figures:
    """Send the request over so many connections for so long; every answer must be a 200 that holds ``expected``."""
    return asyncio.run(_run(address, prepared, expected, seconds, connections, ca_file))


async def _run(
    address: str, prepared: bytes, expected: bytes, seconds: float, connections: int, ca_file: str
) -> Figures:
    parts = urlsplit(address)
    context = ssl.create_default_context(cafile=ca_file)
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def one() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
        while (started := time.perf_counter()) < end:
            writer.write(prepared)
            status, body = await _answer(reader)
            times.append(time.perf_counter() - started)
            if status != 200 or expected not in body:
                raise AssertionError(f"{status}: {body[:300]!r}")
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(connections)))
    elapsed = time.perf_counter() - started
    times.sort()
    return Figures(len(times) / elapsed, 1000 * times[len(times) // 2], 1000 * times[int(len(times) * 0.99)])


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    status = int(head.split(" ", 2)[1])
    if "transfer-encoding: chunked" in head:
        body = b""
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
        return status, body
    length = int(head.split("content-length:", 1)[1].split("\r\n", 1)[0])
    return status, await reader.readexactly(length)
