"""Do the commands that iperf3's authors run before a release end as with the stock iperf3?

The list is that of `test_commands.sh` in iperf's source (esnet/iperf), each cut to a second or 2 MiB; left
out: SCTP (few kernels load it), --fq-rate (it paces by the route's qdisc), and -6 (loopback may have none).
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rig import STOCK, Answer, Rig

UDP = ("-u", "-b", "100M")
TCP = ("-b", "100M")  # by the clock as fast as it goes would only take two processors for as long
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("-V", "-t", "1", "-T", "test1", *TCP),
    ("-V", "-t", "1", *UDP),
    ("-i", ".3", "-O", "1", "-t", "1", *TCP),
    ("-i", "1", "-t", "1", *TCP),
    ("-4", "-n", "2M"),
    ("-4", "-n", "2M", *UDP),
    ("-P", "3", "-n", "2M"),
    ("-P", "3", "-n", "2M", *UDP),
    ("-P", "2", "-n", "2M", "-R"),
    ("-P", "2", "-n", "2M", *UDP, "-R"),
    ("-P", "2", "-t", "1", *TCP, "--bidir"),
    ("-P", "2", "-t", "1", *UDP, "--bidir"),
    ("-Z", "-n", "2M"),
    ("-Z", "-n", "2M", "-R"),
    ("-n", "2M", "-w", "1M"),
    ("-n", "2M", "-t", "1"),  # refused: one end condition at a time
    ("-k", "20"),
    ("-k", "20", *UDP),
    ("-k", "20", "-R"),
    ("-n", "2M", "-A", "0/0"),
    ("-n", "2M", "-u", "-b", "1G/100"),
    ("-n", "2M", "-C", "reno", "-V"),
    ("-n", "2M", "-M", "1000", "-V"),
)


def shape(found: object) -> object:
    """A document without its values: what a reader of it relies on."""
    if isinstance(found, dict):
        return {key: shape(value) for key, value in sorted(found.items())}
    if isinstance(found, list) and found:
        return [shape(found[0])]
    return "number" if isinstance(found, int | float) else type(found).__name__


def document(answer: Answer) -> dict[str, Any]:
    """The JSON of an answer; -V prints lines before it, and wrong options are refused without any."""
    text = answer.out.partition("{")[2]
    found: dict[str, Any] = json.JSONDecoder().raw_decode("{" + text)[0] if text else {}
    return found


def one(rig: Rig, program: str, args: tuple[str, ...]) -> Answer:
    """One command, client and server of the same program."""
    with (
        rig.server("-1", program=program) if "-t" not in args or "-n" not in args else rig.server() as server
    ):
        return rig.client(server.port, *args, program=program)


def check_commands_of_upstream(rig: Rig) -> None:
    """Each ends with the stock program's exit code, moves data where that does, and answers in its shape."""
    for args in COMMANDS:
        with ThreadPoolExecutor(2) as pool:  # most of them run by the clock
            ours, stock = pool.map(lambda program, args=args: one(rig, program, args), (rig.program, STOCK))
        assert ours.rc == stock.rc, (args, ours, stock)
        mine, theirs = document(ours), document(stock)
        assert shape(mine) == shape(theirs), (args, mine, theirs)
        if stock.rc == 0:
            sums = [value["bytes"] for key, value in mine["end"].items() if key.startswith("sum")]
            assert max(sums) > 0, (args, mine["end"])
