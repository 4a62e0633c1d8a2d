"""Load from wrk, every answer of which is looked at: its status, and a piece of text that a right body holds.

wrk sends prepared requests in turn over keep-alive connections. Where each request needs the answer to the one before
(refresh tokens that serve once), each connection has a thread with its own state.
"""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from bench.processes import Program

_BEGIN = """
local counter = 0
function setup(thread)
  counter = counter + 1
  table.insert(threads, thread)
  thread:set("place", counter)
end
function count(right, status, body)
  if not right then
    bad = bad + 1
    if first == "" then first = status .. " " .. string.sub(body, 1, 300) end
  end
end
"""

_SCRIPT = """
function init(args)
  bad, first, at, seen = 0, "", (place - 1) * 7, 0
  token = tokens[place]
  prepared = {}
  for n = 1, #paths do prepared[n] = wrk.format(methods[n], paths[n], all_headers[n], bodies[n]) end
end
function request()
  if chained then
    return wrk.format(methods[1], paths[1], all_headers[1], string.format(bodies[1], token))
  end
  at = at + 1
  if numbered > 0 then
    local number = numbered + (place - 1) * 1000000 + at
    return wrk.format(methods[1], paths[1], all_headers[1], string.format(bodies[1], number))
  end
  return prepared[at % #prepared + 1]
end
function response(status, headers, body)
  seen = seen + 1
  if most > 0 and seen >= most then wrk.thread:stop() end
  if chained then
    local fresh = string.match(body, '"refresh_token"%s*:%s*"([^"]+)"')
    if fresh then token = fresh end
  end
  local right = status >= 200 and status < 300
  if right and #wanted > 0 then
    right = false
    for _, text in ipairs(wanted) do
      if string.find(body, text, 1, true) then right = true end
    end
  end
  count(right, status, body)
end
"""

_REPORT = """
function done(summary, latency, requests)
  local bad, first = 0, ""
  for _, thread in ipairs(threads) do
    bad = bad + thread:get("bad")
    if first == "" then first = thread:get("first") end
  end
  local e = summary.errors
  io.write("\\n@@", string.format("%d %d %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), bad, e.connect + e.read + e.write + e.timeout))
  io.write("@@", first, "\\n")
end
"""


_FLOW = """
function init(args)
  bad, first, code = 0, "", nil
end
function request()
  if not code then return wrk.format(methods[place], paths[place], all_headers[place]) end
  local body = string.gsub(bodies[#bodies], "%%s", function() return code end)
  return wrk.format(methods[#methods], paths[#paths], all_headers[#all_headers], body)
end
function response(status, headers, body)
  local right = false
  if not code then
    for name, value in pairs(headers) do
      if string.lower(name) == "location" then code = string.match(value, "[?&]code=([^&]+)") end
    end
    right = code ~= nil
  else
    code, right = nil, status == 200 and string.find(body, wanted[1], 1, true) ~= nil
  end
  count(right, status, body)
end
"""


@dataclass(frozen=True)
class Request:
    """One prepared request."""

    method: str
    address: str
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Figures:
    """What one round saw: answers a second, the median and 99th percentile of their times in ms, CPU ms a request, and
    how many answers were wrong or did not come, if that was tolerated.
    """

    rate: float
    p50: float
    p99: float
    cpu: float
    count: int
    wrong: int = 0


def percentiles(mine: Sequence[Figures], theirs: Sequence[Figures]) -> str:
    """Spell the times of the last round of both sides, or of ours if theirs were not measured."""
    last = [side[-1] for side in (mine, theirs) if side]
    p50, p99 = (" and ".join(f"{getattr(one, name):.1f}" for one in last) for name in ("p50", "p99"))
    return f"p50 {p50} ms, p99 {p99} ms"


class WrongAnswers(RuntimeError):
    """Some answers were not what they should be: such a round measures nothing."""


def run(
    requests: Sequence[Request],
    wanted: Sequence[str],
    programs: Sequence[Program],
    *,
    seconds: float,
    connections: int,
    core: int | None = None,
    chains: Sequence[str] = (),
    tolerated: float = 0.0,
    most: int = 0,
    numbered: int = 0,
) -> Figures:
    """Send the requests in turn for ``seconds``. Each answer must be 2xx and hold one of the texts ``wanted``.

    With ``chains`` there is one request whose body has ``%s`` for a token: each connection begins with one of the
    chains and goes on with the ``refresh_token`` of each answer, if it gives one. With ``numbered`` there is one
    request, whose body has ``%d`` for a number above that one, which differs each time. ``core`` binds the generator.
    After ``most`` answers, if a number is given, it sends no more. The CPU time of each answer is that of ``programs``.
    Raises WrongAnswers if more than the share ``tolerated`` is wrong, and RuntimeError if wrk fails.
    """
    threads = connections if chains else min(connections, 2)
    if core is not None and not chains:
        threads = 1
    script = _values(requests, wanted, chains, most // threads, numbered) + _BEGIN + _SCRIPT + _REPORT
    return _measured(script, requests[0].address, programs, seconds, (threads, connections), core, tolerated)


def flows(
    authorize: Sequence[Request], exchange: Request, wanted: str, programs: Sequence[Program], *, seconds: float
) -> Figures:
    """Let each connection send its own request for an authorization and then exchange the code of the answer's
    Location, which stands for ``%s`` in the body of ``exchange``, and so on. The exchange's answer holds ``wanted``.

    The rate and the CPU time are those of flows, the times those of requests. Raises as ``run`` does.
    """
    count = len(authorize)
    script = _values([*authorize, exchange], [wanted], (), 0, 0) + _BEGIN + _FLOW + _REPORT
    each = _measured(script, exchange.address, programs, seconds, (count, count), None, 0.0)
    return replace(each, rate=each.rate / 2, cpu=each.cpu * 2, count=each.count // 2)


def _measured(
    script: str,
    address: str,
    programs: Sequence[Program],
    seconds: float,
    threads_and_connections: tuple[int, int],
    core: int | None,
    tolerated: float,
) -> Figures:
    threads, connections = threads_and_connections
    parts = urlsplit(address)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = ["taskset", "-c", str(core)] if core is not None else []
        command += ["wrk", "-t", str(threads), "-c", str(connections), "-d", f"{max(1, round(seconds))}s"]
        command += ["--timeout", "30s", "-s", file.name, f"{parts.scheme}://{parts.netloc}"]
        before = sum(program.cpu_seconds() for program in programs)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 120)
        used = sum(program.cpu_seconds() for program in programs) - before
    lines = [line[2:] for line in done.stdout.splitlines() if line.startswith("@@")]
    if done.returncode or not lines:
        raise RuntimeError(f"wrk failed: {(done.stdout + done.stderr)[-500:]}")
    count, duration, p50, p99, bad, broken = map(int, lines[0].split())
    if not count or bad + broken > tolerated * count:
        raise WrongAnswers(
            f"{bad} wrong and {broken} broken of {count} answers; the first: {' '.join(lines[1:])[:300]}"
        )
    return Figures(1e6 * count / duration, p50 / 1000, p99 / 1000, 1000 * used / count, count, bad + broken)


def _values(requests: Sequence[Request], wanted: Sequence[str], chains: Sequence[str], most: int, numbered: int) -> str:
    values = {
        "most": str(most),
        "numbered": str(numbered),
        "methods": _table([_quoted(one.method) for one in requests]),
        "paths": _table([_quoted(_path(one.address)) for one in requests]),
        "bodies": _table([_quoted(one.body) for one in requests]),
        "all_headers": _table([_headers(one) for one in requests]),
        "wanted": _table([_quoted(text) for text in wanted]),
        "tokens": _table([_quoted(token) for token in chains]),
        "chained": "true" if chains else "false",
    }
    return "threads = {}\n" + "".join(f"{name} = {value}\n" for name, value in values.items())


def _headers(one: Request) -> str:
    return "{" + ", ".join(f"[{_quoted(name)}] = {_quoted(value)}" for name, value in one.headers) + "}"


def _table(values: Sequence[str]) -> str:
    return "{" + ", ".join(values) + "}"


def _path(address: str) -> str:
    parts = urlsplit(address)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _quoted(text: str) -> str:
    """Spell a string of Lua, which knows no escapes of Unicode."""
    escaped = re.sub(r'[\x00-\x1f"\\\x7f]', lambda found: f"\\{ord(found[0]):03}", text)
    return f'"{escaped}"'


def send(requests: Sequence[Request], wanted: Sequence[str], programs: Sequence[Program], count: int) -> None:
    """Send so many requests, give or take one a connection, over sixteen connections; raises as ``run`` does."""
    sent = 0
    while count - sent >= 16:
        sent += run(requests, wanted, programs, seconds=5, connections=16, most=count - sent).count


def bearer(token: str) -> tuple[str, str]:
    """Write an Authorization header (RFC 6750)."""
    return "Authorization", f"Bearer {token}"


def wrk_version() -> str:
    """Say which wrk it is. Raises RuntimeError when there is none."""
    try:
        said = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        raise RuntimeError("wrk is not installed: on Debian 'apt install wrk'") from None
    return said.split("Copyright")[0].strip()
