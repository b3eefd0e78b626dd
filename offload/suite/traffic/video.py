"""Clients of a film: which of them asks nginx for which segments and ranges, and what must arrive."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from offload.cmd import wait_until
from offload.errors import RigError
from offload.host.base import Host
from offload.suite.traffic.nginx import Shop
from offload.suite.traffic.pump_channel import payload

SEGMENTS = 8  # of a film: its ranges are as long as a segment
# A thread per client and a connection each, one request after the other; says of each answer what arrived.
CLIENTS = """\
import hashlib, http.client, json, ssl, sys, threading
ask = json.loads(sys.stdin.readline())
links = []
said = [[] for _ in ask["clients"]]
def client(number, wants):
    where = (ask["host"], ask["port"])
    if ask["ca"]:
        context = ssl.create_default_context(cafile=ask["ca"])
        link = http.client.HTTPSConnection(*where, timeout=ask["timeout"], context=context)
    else:
        link = http.client.HTTPConnection(*where, timeout=ask["timeout"])
    links.append(link)
    try:
        for path, span in wants:
            link.request("GET", path, headers={"Range": "bytes=" + span} if span else {})
            answer, seen, count = link.getresponse(), hashlib.sha256(), 0
            while data := answer.read(65536):
                seen.update(data)
                count += len(data)
            said[number].append([answer.status, count, seen.hexdigest()])
    except Exception as exc:
        said[number].append([0, 0, f"{type(exc).__name__}: {exc}"])
threads = [threading.Thread(target=client, args=each) for each in enumerate(ask["clients"])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(said), flush=True)
sys.stdin.read()
"""
# wrk runs init() once per thread, request() per request (SCRIPTING of wrk): turns are a thread's own. Threads
# begin at other places of the film.
REQUESTS = """\
local threads = 0
function setup(thread) thread:set("id", threads); threads = threads + 1 end
function init(args) turn = id * 3 end
request = function()
  turn = turn + 1
  if turn %% 2 == 1 then return wrk.format("GET", "/%(size)d") end
  local from = math.floor(turn / 2) %% %(segments)d * %(size)d
  local span = string.format("bytes=%%.0f-%%.0f", from, from + %(size)d - 1)
  return wrk.format("GET", "/%(film)d", {Range = span})
end
"""


@dataclass(frozen=True)
class Seen:
    """What arrived: HTTP's status, bytes of the body, their SHA-256 (or words, with status 0)."""

    status: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Want:
    """A request: `size` bytes, a file of this size; with `film` that file's bytes from `first` on."""

    size: int
    film: int = 0
    first: int = 0

    @property
    def path(self) -> str:
        """As nginx has it (offload.suite.traffic.nginx.stock)."""
        return f"/{self.film or self.size}"

    @property
    def span(self) -> str:
        """The range, or ''."""
        return f"{self.first}-{self.first + self.size - 1}" if self.film else ""

    def seen(self) -> Seen:
        """Return what must arrive; computed here, not by what sends."""
        data = content(self.film or self.size)[self.first : self.first + self.size]
        return Seen(206 if self.film else 200, self.size, hashlib.sha256(data).hexdigest())


@lru_cache(maxsize=4)
def content(size: int) -> bytes:
    """Return the content of a file, which nginx.stock() makes of its size."""
    return payload(f"nginx {size}", size)


def film(size: int) -> int:
    """Bytes of a film with segments of this size."""
    return SEGMENTS * size


def requests(size: int) -> str:
    """Return what wrk's script needs besides wrk.SCRIPT: every answer is of `size` bytes."""
    return REQUESTS % {"size": size, "film": film(size), "segments": SEGMENTS}


def fetched(
    host: Host,
    shop: Shop,
    clients: Sequence[Sequence[Want]],
    ca: str,
    timeout: float = 300,
    look: Callable[[], None] = lambda: None,
) -> list[list[Seen]]:
    """Run these clients on a host at once, a connection each; what each saw. RigError if they do not run.

    `look` is called when all have what they asked for and are still connected.
    """
    ask = {
        "host": shop.address,
        "port": shop.port,
        "ca": ca if shop.tls else "",
        "timeout": timeout,
        "clients": [[[want.path, want.span] for want in client] for client in clients],
    }
    process = host.start(["/usr/bin/python3", "-I", "-S", "-c", CLIENTS])
    try:
        process.stdin(json.dumps(ask).encode() + b"\n")
        wait_until(
            lambda: process.output()[0].endswith(b"\n") or not process.running(), timeout + 60, "the clients"
        )
        look()
        out, err = process.output()
    finally:
        process.kill()
    try:
        return [[Seen(*answer) for answer in client] for client in json.loads(out)]
    except (ValueError, TypeError):
        raise RigError(f"clients on {host.name} said {(out + err)[-200:]!r}") from None
