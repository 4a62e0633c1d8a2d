"""Requests written byte by byte, for what no HTTP client would send, and a reader of what comes back.

Each connection carries one to four requests: good ones for every kind of address, most of them then damaged in one or
several ways. Whatever comes is answered or cut off within the server's deadlines; what took over a second is asked
again, alone, and counts when the server works that long for it.
"""

import asyncio
import random
import time
from collections.abc import Callable

import msgspec

from muniment.repository.options import RepositoryNames
from tests.campaign.stage import PATIENCE, Answer, Prop, Record, Stage

_CONNECTIONS = 48
_DEADLINES = 1.0
"""Seconds after which the stage's server gives up on a head, and on a body."""

_AT_ONCE = 4096
"""Bytes that the server has read before it answers; of a longer request the rest may meet a closed connection, and the
answer is lost with it (RFC 9112 section 9.6)."""

_ODD = (
    b"\x00", b"\xff", b"\xed\xa0\x80", b"%00", b"%ff", b"%", b"\r", b"\n", b"\r\n", b"\t", b" ", b";", b"\\ud800",
    "é".encode(), "\u202e".encode(), b"..", b"//", b"?", b"#", b"*", b"'", b'"', b"{", b"[", b"<", b"&", b"%2e%2e%2f",
    b"\x1b[2J", b"-1", b"9" * 40, b"\xef\xbb\xbf", b"+",
)  # fmt: skip

_JSON = b"application/json"
_XML = b"application/xml"
_FORM = b"application/x-www-form-urlencoded"


class Request(msgspec.Struct):
    """One request, still in pieces."""

    method: bytes
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""

    def encode(self) -> bytes:
        """Write it down."""
        head = b"".join(name + b": " + value + b"\r\n" for name, value in self.headers)
        return self.method + b" " + self.target + b" HTTP/1.1\r\n" + head + b"\r\n" + self.body


class Sent(msgspec.Struct):
    """What goes over one connection, and what it was made from."""

    route: str
    data: bytes
    count: int
    pieces: int
    heads: bool
    """Whether a request for the head alone is among them: then one answer is read, and the connection ended."""


def round_of(stage: Stage, count: int, number: int) -> Record:
    """Send requests, drawn by ``number``, until ``count`` or somewhat more are answered."""
    return asyncio.run(_round(stage, count, random.Random(number)))


async def _round(stage: Stage, count: int, chance: random.Random) -> Record:
    record = Record()
    late: list[Sent] = []
    while record.sent < count:
        stage.renew()
        batch = [drawn(stage, chance) for _ in range(600)]
        late += await _spoken_by_many(stage, batch, record, _CONNECTIONS)
    for one in await _spoken_by_many(stage, late[:200], Record(), 8):
        before = stage.processor_seconds()
        await _spoken(stage, one, Record())
        if stage.processor_seconds() - before > PATIENCE:
            record.wrong.append(f"over a second, and of processor time when it came alone: {one.data[:2000]!r}")
    return record


async def _spoken_by_many(stage: Stage, batch: list[Sent], record: Record, connections: int) -> list[Sent]:
    """Say all, over so many connections at a time; give those that took too long."""
    late: list[Sent] = []
    waiting = iter(batch)

    async def speak() -> None:
        late.extend([one for one in waiting if await _spoken(stage, one, record) > PATIENCE])

    await asyncio.gather(*(speak() for _ in range(connections)))
    return late


async def _spoken(stage: Stage, sent: Sent, record: Record) -> float:
    """Say it over a connection of its own and note the answers; give the seconds that one of them took too long."""
    opened = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.plain_port, limit=2**22)
    answers, overtaken = 0, False
    began = opened
    try:
        await _write(writer, sent)
        while answers < sent.count:
            began = time.perf_counter()
            async with asyncio.timeout(10):
                answer = await _answer(reader, sent, began)
            if answer is None:
                break
            answers += 1
            record.note(sent.route, answer, repr(sent.data[:3000]))
            if answer.headers.get("connection") == "close":
                break
    except ConnectionError:
        overtaken = sent.pieces > 1 or len(sent.data) > _AT_ONCE
    except asyncio.IncompleteReadError:
        pass
    except TimeoutError:
        record.wrong.append(f"neither answered nor cut off: {sent.data[:3000]!r}")
    finally:
        writer.transport.abort()
    if answers < sent.count:
        # What had no answer is not counted as asked: what follows an answer that ends the connection or an upgrade, a
        # head that never ends, and what was refused before the server had read it all. Other silence is a fault.
        record.statuses[sent.route][0] += 1
        ended = time.perf_counter()
        if not answers and not overtaken and ended - opened < _DEADLINES:
            record.wrong.append(f"cut off without an answer: {sent.data[:3000]!r}")
        return max(0.0, ended - began - _DEADLINES)
    return record.seconds[-1] - (_DEADLINES if answer is not None and answer.status == 408 else 0)


async def _write(writer: asyncio.StreamWriter, sent: Sent) -> None:
    size = -(-len(sent.data) // sent.pieces)
    for at in range(sent.pieces):
        writer.write(sent.data[at * size : (at + 1) * size])
        await writer.drain()
        if at + 1 < sent.pieces:
            await asyncio.sleep(0.005)


async def _answer(reader: asyncio.StreamReader, sent: Sent, began: float) -> Answer | None:
    head = b"HTTP/1.1 100"
    while head.startswith(b"HTTP/1.1 100"):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as ended:
            if ended.partial:
                return Answer(500, {}, b"half an answer: " + ended.partial[:200], 0, ours=False)
            return None
    if not head.startswith(b"HTTP/1.1 "):
        return Answer(500, {}, b"no answer's head: " + head[:200], 0, ours=False)
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status = int(first.split()[1])
    bare = sent.heads or status in (204, 304)
    if headers.get("transfer-encoding", "").lower() == "chunked" and not bare:
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
    else:
        body = b"" if bare else await reader.readexactly(int(headers.get("content-length", 0)))
    return Answer(status, headers, body, time.perf_counter() - began, ours=True)


def drawn(stage: Stage, chance: random.Random) -> Sent:
    """Draw what goes over one connection."""
    count = chance.choice((1, 1, 1, 1, 2, 4))
    asked = [_good(stage, chance) for _ in range(count)]
    route = _route(asked[0])
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        chance.choice(_DAMAGES)(chance.choice(asked), chance)
    data = b"".join(one.encode() for one in asked)
    if chance.random() < 0.15:
        data = _flipped(data, chance)
    heads = any(one.method == b"HEAD" for one in asked)
    return Sent(route, data, 1 if heads else count, chance.choice((1, 1, 1, 1, 1, 2, 5)), heads)


def _route(request: Request) -> str:
    path = request.target.decode("latin-1").partition("?")[0]
    return f"raw {request.method.decode()} /" + "/".join(path.split("/")[1:3])


def _good(stage: Stage, chance: random.Random) -> Request:
    method, target, kind, body = chance.choice(_GOOD)
    headers = [(b"Host", b"127.0.0.1")]
    if body or method in ("POST", "PUT"):
        headers.append((b"Content-Type", kind))
    if chance.random() < 0.8 and not target.startswith(f"{_D}/login"):
        who = "administrator" if "activate" in target else chance.choice(("writer", "writer", "reader"))
        headers.append((b"Authorization", f"Bearer {stage.bearer(who)}".encode()))
    if "console" in target:
        stage.filled(Prop.TICKET_CSRF)
        headers.append((b"Cookie", stage.cookies["console"].encode()))
    elif "/login" in target:
        stage.filled(Prop.CSRF)
        headers.append((b"Cookie", stage.cookies["login"].encode()))
    headers += chance.sample(_EXTRA, chance.choice((0, 0, 1, 2)))
    written = stage.filled(body).encode()
    if body or method in ("POST", "PUT"):
        headers.append((b"Content-Length", str(len(written)).encode()))
    return Request(method.encode(), stage.filled(target).encode().replace(b" ", b"%20"), headers, written)


_D, _R = "/dirws", f"/rest/repositories/{Prop.REPOSITORY}"
_SEARCH = (
    f'<search xmlns="{RepositoryNames().vocab_namespace}"><types><type>document</type></types>'
    '<expression-set operator="AND"><expressions>'
    "<fulltext>pump station</fulltext></expressions></expression-set></search>"
)
_OBJECT = '{"properties": {"object_name": "raw", "title": "pump"}}'
_SAVED = '{"properties": {"object_name": "raw"}, "query-document": "{\\"types\\": [\\"document\\"]}"}'
_VALUES = '{"external-variables": [{"id": "v1", "variable-value": "pump OR *"}]}'
_ACL = '{"name": "raw", "permitted": [{"accessor": "everyone@demo", "basic-permission": "Read"}]}'
_RELATION = (
    f'{{"properties": {{"relation_name": "peer", "parent_id": "{Prop.DOCUMENT}", "child_id": "{Prop.FOLDER}"}}}}'
)
_COMMENT = '{"properties": {"content": "Who has the keys?"}}'
_ASSISTANCE = '{"included-properties": ["title"], "dependencies": {"subject": "pumps"}}'
_ARCHIVE = f'{{"hrefs": ["http://127.0.0.1{_R}/objects/{Prop.DOCUMENT}"]}}'
_BATCH = (
    f'{{"transactional": true, "operations": [{{"id": "1", "request": {{"uri": "{_R}/objects/{Prop.DOCUMENT}"}}}}, '
    f'{{"id": "2", "request": {{"uri": "{_R}/cabinets", "method": "POST", "entity": "{{}}"}}}}]}}'
)
_DQL = "select%20object_name%20from%20document%20where%20title%20like%20'pump%25'"
_PASSWORD_FORM = f"grant_type=password&client_id={Prop.CLIENT}&username={Prop.VICTIM}&password=x&scope={Prop.SCOPE}"
_GOOD: tuple[tuple[str, str, bytes, str], ...] = (
    ("GET", "/", b"", ""),
    ("GET", "/health/ready", b"", ""),
    ("GET", "/docs/settings.md", b"", ""),
    ("GET", "/nowhere", b"", ""),
    ("GET", f"{_D}/login?RFA={Prop.RESOURCE}", b"", ""),
    ("POST", f"{_D}/login", _FORM, _PASSWORD_FORM),
    ("POST", f"{_D}/login", _FORM, f"csrf={Prop.CSRF}&username={Prop.VICTIM}&password=x&RFA="),
    (
        "POST",
        f"{_D}/login",
        _FORM,
        f"grant_type=refresh_token&client_id={Prop.CLIENT}&refresh_token={Prop.REFRESH_TOKEN}",
    ),
    *(
        (
            "POST",
            f"{_D}/v1/authentication/oauth/tokeninfo",
            _JSON,
            f'{{"token": "{Prop.TOKEN}", "resource_id": "{Prop.RESOURCE}"}}',
        ),
    )
    * 3,
    ("DELETE", f"{_D}/v1/authentication/oauth/{Prop.DEAD_TOKEN}", b"", ""),
    ("OPTIONS", f"{_D}/v1/authentication/oauth/{Prop.DEAD_TOKEN}", b"", ""),
    ("POST", f"{_D}/rest/resources/{Prop.RESOURCE}/activate", b"", ""),
    ("GET", f"{_D}/console", b"", ""),
    ("GET", f"{_D}/console/system-attributes", b"", ""),
    (
        "POST",
        f"{_D}/console/system-attributes",
        _FORM,
        f"action=change&name=campaign.raw&value=x&csrf={Prop.TICKET_CSRF}",
    ),
    ("GET", "/rest/repositories", b"", ""),
    ("GET", _R, b"", ""),
    ("GET", f"{_R}/search?q=pump&include-total=true&items-per-page=3", b"", ""),
    ("GET", f"{_R}/search?link={Prop.LINK}&page=2", b"", ""),
    *(("POST", f"{_R}/search?include-total=true", _XML, _SEARCH),) * 3,
    ("POST", f"{_R}/objects", _JSON, _OBJECT),
    ("POST", f"{_R}/objects?object-name=raw.txt", b"text/plain", "raw content"),
    ("POST", f"{_R}/cabinets", _JSON, _OBJECT),
    ("POST", f"{_R}/folders/{Prop.CABINET}/documents", _JSON, _OBJECT),
    (
        "POST",
        f"{_R}/objects",
        b"multipart/form-data; boundary=campaign",
        (
            f"--campaign\r\nContent-Type: application/json\r\n\r\n{_OBJECT}\r\n--campaign\r\n"
            'Content-Disposition: form-data; name="b"; filename="b.txt"\r\n\r\nbytes\r\n--campaign--\r\n'
        ),
    ),
    ("GET", f"{_R}/objects/{Prop.DOCUMENT}", b"", ""),
    ("HEAD", f"{_R}/objects/{Prop.DOCUMENT}", b"", ""),
    ("POST", f"{_R}/objects/{Prop.DOCUMENT}", _JSON, _OBJECT),
    ("POST", f"{_R}/objects/{Prop.DOCUMENT}/contents", b"text/plain", "other content"),
    ("GET", f"{_R}/objects/{Prop.DOCUMENT}/content-media", b"", ""),
    ("GET", f"{_R}/objects/{Prop.DOCUMENT}/permission-set", b"", ""),
    ("PUT", f"{_R}/objects/{Prop.DOCUMENT}/permission-set", _JSON, '{"acl-name": "public"}'),
    ("GET", f"{_R}/acls?page=1", b"", ""),
    ("POST", f"{_R}/acls", _JSON, _ACL),
    ("GET", f"{_R}/acls/{Prop.ACL}", b"", ""),
    ("GET", f"{_R}/types/document", b"", ""),
    ("POST", f"{_R}/saved-searches", _JSON, _SAVED),
    ("POST", f"{_R}/saved-searches/{Prop.SEARCH}", _JSON, _SAVED),
    ("GET", f"{_R}/saved-searches/{Prop.SEARCH}/execution?page=1", b"", ""),
    ("PUT", f"{_R}/saved-searches/{Prop.SEARCH}/results", b"", ""),
    ("POST", f"{_R}/search-templates/{Prop.TEMPLATE}/execution", _JSON, _VALUES),
    *(("GET", f"{_R}?dql={_DQL}", b"", ""),) * 2,
    ("PUT", f"{_R}/objects/{Prop.DRAFT}/lock", b"", ""),
    ("POST", f"{_R}/objects/{Prop.DRAFT}/versions?version-policy=next-major", b"text/plain", "raw draft"),
    ("GET", f"{_R}/objects/{Prop.VERSION}/versions?page=1", b"", ""),
    ("GET", f"{_R}/checked-out-objects?checked-out-by=all", b"", ""),
    ("POST", f"{_R}/objects/{Prop.DOCUMENT}/contents/content?page=1", b"text/plain", "raw page"),
    ("GET", f"{_R}/archived-contents?object-id={Prop.DOCUMENT}", b"", ""),
    ("POST", f"{_R}/archived-contents", _JSON, _ARCHIVE),
    ("GET", f"{_R}/object-by-path?path=/cabinet%20of%20the%20campaign", b"", ""),
    ("GET", f"{_R}/objects/{Prop.DOCUMENT}/permissions?accessor=world", b"", ""),
    ("POST", f"{_R}/relations", _JSON, _RELATION),
    ("GET", f"{_R}/relations/{Prop.RELATION}.xml", b"", ""),
    ("POST", f"{_R}/objects/{Prop.DOCUMENT}/comments", _JSON, _COMMENT),
    ("POST", f"{_R}/comments/{Prop.COMMENT}/replies", _JSON, _COMMENT),
    ("POST", f"{_R}/types/document/assist-values", _JSON, _ASSISTANCE),
    ("POST", f"{_R}/batches", _JSON, _BATCH),
    ("GET", f"{_R}/wastebasket/{Prop.DELETED}", b"", ""),
    ("POST", f"{_R}/wastebasket/{Prop.DELETED}/restore", _JSON, "{}"),
)

_EXTRA: tuple[tuple[bytes, bytes], ...] = (
    (b"Accept", b"application/json"),
    (b"Accept", b"application/xml;q=0.5, */*;q=0"),
    (b"Range", b"bytes=0-1"),
    (b"If-Match", b'"1"'),
    (b"If-None-Match", b"*"),
    (b"Expect", b"100-continue"),
    (b"Connection", b"close"),
    (b"Cookie", b"muniment_ticket=x; muniment_ticket=y; =; ;"),
    (b"X-Request-ID", b"campaign"),
    (b"X-Forwarded-Proto", b"https"),
    (b"X-Forwarded-For", b"::1, 127.0.0.1, x"),
    (b"Accept-Language", b"de;q=0.5, \xff"),
    (b"If-Modified-Since", b"Thu, 32 Foo 99999 99:99:99 GMT"),
)


def _set(request: Request, name: bytes, value: bytes) -> None:
    request.headers = [(n, v) for n, v in request.headers if n.lower() != name.lower()] + [(name, value)]


def _insert(text: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(_ODD) + text[at:]


def _odd_target(request: Request, chance: random.Random) -> None:
    request.target = _insert(request.target, chance)


def _odd_body(request: Request, chance: random.Random) -> None:
    body = request.body
    for _ in range(chance.randrange(1, 4)):
        body = _insert(body, chance)
    request.body = body
    _set(request, b"Content-Length", str(len(body)).encode())


def _repeated_keys(request: Request, chance: random.Random) -> None:
    separator = {b"{": b", ", b"<": b""}.get(request.body[:1], b"&")
    inner = request.body.strip(b"{}") if request.body[:1] == b"{" else request.body
    request.body = separator.join([inner] * chance.choice((2, 3, 500)))
    if separator == b", ":
        request.body = b"{" + request.body + b"}"
    _set(request, b"Content-Length", str(len(request.body)).encode())


def _odd_header(request: Request, chance: random.Random) -> None:
    at = chance.randrange(len(request.headers))
    name, value = request.headers[at]
    request.headers[at] = (_insert(name, chance), value) if chance.random() < 0.3 else (name, _insert(value, chance))


def _header_twice(request: Request, chance: random.Random) -> None:
    request.headers.append(chance.choice(request.headers))


def _no_header(request: Request, chance: random.Random) -> None:
    if len(request.headers) > 1:
        request.headers.pop(chance.randrange(len(request.headers)))


def _huge_header(request: Request, chance: random.Random) -> None:
    size = chance.choice((4_000, 20_000, 70_000, 200_000))
    request.headers.append(
        (chance.choice((b"Cookie", b"Accept", b"Range", b"Authorization", b"X")), b"a=b; " * (size // 5))
    )


def _many_headers(request: Request, chance: random.Random) -> None:
    request.headers += [(b"X-%d" % at, b"1") for at in range(chance.choice((100, 2000)))]


def _wrong_length(request: Request, chance: random.Random) -> None:
    length = chance.choice((b"0", b"1", b"-1", b"x", b"99999999999999999999999", b"1, 1", b"+5", b"0x10", b"", b"7"))
    _set(request, b"Content-Length", length)


def _chunked(request: Request, chance: random.Random) -> None:
    request.headers = [(n, v) for n, v in request.headers if n != b"Content-Length" or chance.random() < 0.1]
    request.headers.append(
        (b"Transfer-Encoding", chance.choice((b"chunked", b"chunked", b"gzip, chunked", b"x", b"Chunked")))
    )
    size = chance.choice((1, 3, 100))
    pieces = [request.body[at : at + size] for at in range(0, len(request.body), size)]
    end = chance.choice(
        (b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nTrailer: x\r\n\r\n", b"", b"zz\r\n", b"-1\r\n\r\n", b"f" * 20 + b"\r\n")
    )
    extension = chance.choice((b"", b"", b";a=b", b";" + b"x" * 300))
    request.body = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces) + end


def _other_method(request: Request, chance: random.Random) -> None:
    request.method = chance.choice(
        (
            b"GET",
            b"POST",
            b"PUT",
            b"PATCH",
            b"DELETE",
            b"OPTIONS",
            b"HEAD",
            b"TRACE",
            b"CONNECT",
            b"PROPFIND",
            b"get",
            b"X",
            b"",
        )
    )


def _upgrade(request: Request, chance: random.Random) -> None:
    request.headers += [
        (b"Connection", b"Upgrade"),
        (b"Upgrade", chance.choice((b"websocket", b"h2c", b"x"))),
        (b"Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ=="),
        (b"Sec-WebSocket-Version", b"13"),
    ]


def _odd_type(request: Request, chance: random.Random) -> None:
    kinds = (
        _JSON,
        _XML,
        _FORM,
        b"text/xml; charset=utf-16",
        b"multipart/form-data",
        b"multipart/mixed; boundary=\xff",
        b"",
        b";",
        b"application/json; charset=utf-7",
        b"a/b" * 3000,
        b"multipart/form-data; boundary=" + b"-" * 200,
    )
    _set(request, b"Content-Type", chance.choice(kinds))
    if chance.random() < 0.3:
        _set(request, b"Content-Encoding", chance.choice((b"gzip", b"br", b"identity", b"x")))


def _odd_query(request: Request, chance: random.Random) -> None:
    name = chance.choice(
        (b"q", b"page", b"items-per-page", b"include-total", b"RFA", b"object-type", b"x", b"%ff", b"")
    )
    value = chance.choice(
        (*_ODD, b"((((" * 100, b"a*" * 500, b"x" * 30_000, b"NOT%20" * 300, b"0", b"1e9", b"%F0%9F%97%84")
    )
    request.target += (b"&" if b"?" in request.target else b"?") + name + b"=" + value


def _utf16(request: Request, chance: random.Random) -> None:
    request.body = request.body.decode("utf-8", "replace").encode(
        chance.choice(("utf-16", "utf-32", "utf-7", "utf-8-sig"))
    )
    _set(request, b"Content-Length", str(len(request.body)).encode())


def _deep(request: Request, chance: random.Random) -> None:
    opening = chance.choice((b"[", b'{"a":', b"<a>", b"<expression-set>", b"(", b"%5B"))
    request.body = opening * chance.choice((100, 3000))
    _set(request, b"Content-Length", str(len(request.body)).encode())


def _other_version(request: Request, chance: random.Random) -> None:
    request.target += chance.choice(
        (b" HTTP/1.0\r\nX: ", b" HTTP/2.0\r\nX: ", b" HTTP/0.9\r\nX: ", b" FTP/1.1\r\nX: ", b"\r\n\r\n")
    )


def _absolute(request: Request, chance: random.Random) -> None:
    request.target = chance.choice(
        (b"http://elsewhere.example" + request.target, b"*", b"//" + request.target, b"http://[::1", b"")
    )


def _other_host(request: Request, chance: random.Random) -> None:
    _set(
        request,
        b"Host",
        chance.choice((b"", b"[::1", b"a:b:c", b"\xff", b"x" * 3000, b"localhost:99999", b"localhost\t")),
    )


_DAMAGES: tuple[Callable[[Request, random.Random], None], ...] = (
    _odd_target, _odd_target, _odd_body, _odd_body, _odd_header, _odd_header, _repeated_keys, _header_twice, _no_header,
    _huge_header, _many_headers, _wrong_length, _chunked, _chunked, _other_method, _upgrade, _odd_type, _odd_query,
    _odd_query,
    _utf16, _deep, _other_version, _absolute, _other_host,
)  # fmt: skip


def _flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(changed))
        match chance.randrange(3):
            case 0:
                changed[at] = chance.randrange(256)
            case 1:
                del changed[at : at + chance.randrange(1, 20)]
            case _:
                changed[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 5)))
        if not changed:
            return b"\r\n"
    return bytes(changed)
