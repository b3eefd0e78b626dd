"""Without a NIC that offloads, the lab's agent and what goes past it say what the programs say."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from offload.host.base import Side
from offload.host.vm import DirectProcess, VmHost, pull, talk
from tests.lib.rig.rig import Rig


@pytest.mark.parametrize(
    "argv",
    [
        "ethtool -S DEV",
        "ethtool -k DEV",
        "ethtool --json -k DEV",
        "ethtool -i DEV",
        "cat /proc/net/dev_mcast",
    ],
)
def test_known_commands_are_the_programs(rig: Rig, dut: Side, argv: str) -> None:
    """Without a NIC that offloads a command and the same one through `env`, which starts it, say the same."""
    words = argv.replace("DEV", dut.dev).split()
    said = [dut.host.run([*before, *words]).stdout for before in ([], [], ["env"], [])]
    assert said[0] and all(each == said[0] for each in said)


@pytest.mark.parametrize("form", ["-k", "--json -k"])
def test_a_feature_that_was_switched_is_seen(rig: Rig, dut: Side, form: str) -> None:
    """Without a NIC that offloads what was remembered of an interface is not said of what it has become."""
    argv = ["ethtool", *form.split(), dut.dev]
    before = dut.host.run(argv).stdout
    try:
        dut.host.run(["ethtool", "-K", dut.dev, "gso", "off"])
        during = [dut.host.run([*by, *argv]).stdout for by in ([], ["env"], [])]
    finally:
        dut.host.run(["ethtool", "-K", dut.dev, "gso", "on"])
    assert during[0] != before and all(each == during[0] for each in during)
    assert dut.host.run(argv).stdout == before


def test_programs_with_a_line_of_their_own_are_heard(rig: Rig, dut: Side, peer: Side) -> None:
    """Without a NIC that offloads each of several programs hears and says megabytes past the agent."""
    with ExitStack() as undo:
        several = [talk(side.host, ["cat"]) for side in (dut, peer, dut)]
        for process in several:
            undo.callback(process.kill, 9)
        sent = [os.urandom(1 << 20) for _ in several]
        for process, data in zip(several, sent, strict=True):
            assert isinstance(process, DirectProcess), "the lab has no line left for it"
            process.stdin(data)
        for process, data in zip(several, sent, strict=True):
            while len(process.output()[0]) < len(data):
                process.news(1)
            assert process.output() == (data, b"") and process.running()
            process.stdin(b"", eof=True)
            assert process.wait(60).rc == 0, "the end of its input ends it"


def test_a_line_that_ended_is_used_again(rig: Rig, dut: Side) -> None:
    """Without a NIC that offloads what one program did not read or say is not the next one's."""
    assert isinstance(dut.host, VmHost)
    for number in range(5):
        process = dut.host.direct(["sh", "-c", f"read a; echo woe >&2; echo {number} $a; sleep 600"])
        assert process
        process.stdin(b"one\nleft\n")
        while not process.news(1)[0].endswith(b"\n"):
            pass
        assert process.output() == (f"{number} one\n".encode(), b"woe\n")
        process.stdin(b"more\n", eof=True)
        process.kill(9)
        assert process.wait(60).rc == -9


def test_a_file_comes_as_it_is(rig: Rig, dut: Side) -> None:
    """Without a NIC that offloads a file's bytes are those that it has, and no more."""
    path, data = "/run/ktls-offload-pull", os.urandom(3 << 20)
    dut.host.write(path, data)
    try:
        assert [b"".join(pull(dut.host, path, size)) for size in (len(data), 5, 0)] == [data, data[:5], b""]
    finally:
        dut.host.run(["rm", "-f", path])


def test_more_programs_than_lines_go_by_the_agent(rig: Rig, dut: Side) -> None:
    """Without a NIC that offloads the last of many programs has no line left, and says the same."""
    with ExitStack() as undo:
        several = []
        while not several or isinstance(several[-1], DirectProcess):
            several.append(talk(dut.host, ["cat"]))
            undo.callback(several[-1].kill, 9)
        assert len(several) > 8
        for process in several:
            process.stdin(b"one\n")
            while not process.news(1)[0]:
                pass
            assert process.output()[0] == b"one\n"
