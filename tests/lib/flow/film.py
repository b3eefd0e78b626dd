"""nginx on the DUT with a film to serve by kernel TLS, and several clients on the peer that watch it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from offload.suite.bench.programs import unpacked
from offload.suite.traffic import nginx, video
from offload.suite.traffic.nginx import Shop
from offload.suite.traffic.video import Seen, Want
from tests.lib.flow.channels import serving
from tests.lib.rig.rig import Rig, in_lab

CLIENTS = 3
SEGMENT = {True: 96 << 10, False: 4 << 20}  # bytes, in a lab and on a bench: an emulated card is slow


def without_copy(rig: Rig) -> tuple[str, str]:
    """An nginx of the DUT that can send without a copy, its own or the unpacked one, or what is lacking."""
    host = rig.bench.dut.host
    lacking = nginx.missing(host, zerocopy=True)
    program = unpacked.had("nginx") if lacking else ""  # a host of yours does not have that path
    if program and not nginx.missing(host, zerocopy=True, program=program):
        return program, ""
    return nginx.PROGRAM, lacking


@contextmanager
def served(rig: Rig, *, zerocopy: bool = False) -> Iterator[tuple[Shop, int]]:
    """Run nginx on the DUT with kernel TLS until the block ends; and the size of the film's segments."""
    end, size = rig.end("dut"), SEGMENT[in_lab(rig.bench)]
    program = without_copy(rig)[0] if zerocopy else nginx.PROGRAM
    nginx.stock(end.side.host, end.at.folder, [size, video.film(size)])
    shop = Shop(end.side.v4, rig.next_port(), True, ktls=True, zerocopy=zerocopy, program=program)
    with nginx.running(end.side.host, shop, end.at):
        yield shop, size


def asked(size: int) -> list[list[Want]]:
    """Return what each client asks for: the segment, then a range of the film that begins where no page
    does."""
    film = video.film(size)
    return [[Want(size), Want(size, film, n * size + 1234 * n + 1)] for n in range(CLIENTS)]


def watched(rig: Rig, shop: Shop, clients: list[list[Want]]) -> tuple[list[list[Seen]], list[str]]:
    """Return what arrives at clients on the peer, all at once; and who encrypts for each, as ss shows it
    then."""
    end, shown = rig.end("peer"), list[str]()

    def look() -> None:
        shown.extend(serving(rig.bench.dut.host, shop.port))

    return video.fetched(end.side.host, shop, clients, end.at.ca, look=look), shown
