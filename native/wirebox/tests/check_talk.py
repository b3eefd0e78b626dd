"""Does wirebox take what is right, refuse what is wrong, and say which line and word it was?"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from rig import Rig, Tcp, sh

WRONG = {
    "c>d first drop": "'c>d' is not a direction: a>b or b>a",
    "a>b heeder 3 drop": "'heeder' is not a place: header, inside, tag, first, last, offset or frame",
    "a>b header drop": "'drop' is not the number of a record (a number from 0 to 1099511627776)",
    "a>b header -1 drop": "'-1' is not the number of a record",
    "a>b header 3x drop": "'3x' is not the number of a record",
    "a>b offset 99999999999999999999999 drop": "is not an offset in the stream",
    "a>b port 0 first drop": "'0' is not a TCP port (a number from 1 to 65535)",
    "a>b port 65536 first drop": "'65536' is not a TCP port",
    "a>b first": "the line ends where an action: drop, delay, duplicate, flip or mark is expected",
    "a>b first eat": "'eat' is not an action",
    "a>b first delay": "the line ends where frames that go first",
    "a>b first delay 0": "'0' is not frames that go first (a number from 1 to 1000)",
    "a>b first flip": "the line ends where the checksum",
    "a>b first flip bit 8 noise": "'8' is not a bit (a number from 0 to 7)",
    "a>b first flip at 65536 noise": "'65536' is not a byte of the TCP payload",
    "a>b first drop times 0": "'0' is not how often",
    "a>b first drop now": "'now' is not expected here: the rule is complete",
    "impair": "the line ends where a direction: a>b, b>a or both is expected",
    "impair both loss 1": "'1' is not a share from 0% to 100%, such as 0.5%",
    "impair both loss 100.0001%": "'100.0001%' is not a share",
    "impair both loss 1.%": "'1.%' is not a share",
    "impair both loss 1.00001%": "'1.00001%' is not a share",
    "impair both loss 99999999999999999999%": "is not a share",
    "impair both rain 1%": "'rain' is not a kind of impairment",
    "impair both corrupt 1%": "the line ends where the checksum",
    "impair both seed -1": "'-1' is not a seed",
    "impair both jitter 1000001": "'1000001' is not microseconds",
    "clear all": "'all' is not expected here",
    "a>b first\tdrop \x7f": "a character that is not plain text (code 127)",
    "a>b first drop \xe9": "a character that is not plain text (code 195)",
    "a>b first drop" + " " * 300: "the line is longer than 256 characters",
}
RIGHT = (
    "a>b header 3 drop",
    "a>b port 4433 header +3 drop times 2  # again when it comes again",
    "b>a inside 0 delay 5",
    "a>b tag 1099511627776 duplicate",
    "\ta>b first flip repaired",
    "a>b last flip at -1 bit 7 noise times 100",
    "a>b offset 281474976710656 flip at 0 repaired",
    "a>b frame 0 drop",
    "impair both loss 0.5% duplicate 100% reorder 0.0001% depth 7 corrupt 1% repaired jitter 500 seed 3",
    "impair b>a port 80",
    "impair a>b seed 18446744073709551615 loss 0%",
)


def check_wrong_rules_on_stdin(rig: Rig) -> None:
    """Every wrong line is refused with its number, its text and what was wanted; the program goes on."""
    with rig.box() as box:
        for number, (line, why) in enumerate(WRONG.items(), 1):
            box.tell(line)
            said = box.read("error")
            assert why in said["error"] and said["line"] == number, said
            assert said["text"][:15].strip() == line[:15].strip(), said
        assert box.add("a>b first drop") == 1
        box.end()


def check_right_rules_on_stdin(rig: Rig) -> None:
    """Rules are numbered in order; clear takes them all away, and numbers are never given twice."""
    with rig.box() as box:
        assert [box.add(line) for line in RIGHT] == list(range(1, len(RIGHT) + 1))
        assert box.read_text() == RIGHT[-1]
        box.tell("   # nothing\n")
        box.tell("clear")
        assert box.read("added")["added"] == 0
        assert box.add(RIGHT[0]) == len(RIGHT) + 1
        box.end()


def check_too_many_rules(rig: Rig) -> None:
    """The 33rd rule is refused; memory is bounded."""
    with rig.box() as box:
        for number in range(32):
            assert box.add("a>b first drop") == number + 1
        box.tell("a>b first drop")
        assert box.read("error")["error"] == "more than 32 rules"
        box.end()


def check_rules_file(rig: Rig) -> None:
    """A file of rules is taken whole or not at all: the error names file, line and text, exit 2."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules"
        path.write_text("# mine\n\na>b first drop\nimpair both loss 5%")
        with rig.box(args=("--rules", str(path))) as box:
            assert box.add("b>a first drop") == 3
            box.end()
        for text, line, why in (("\n\na>b fi1st drop\n", 3, "'fi1st'"), ("a>b first drop\0\n", 1, "code 1")):
            path.write_text(text)
            rc, err = rig.refused("--rules", str(path))
            assert rc == 2 and f"{path}:{line}: " in err and why in err and "Traceback" not in err, err
        path.write_text("# " + "x" * 300 + "\n")
        assert rig.refused("--rules", str(path))[0] == 2
        rc, err = rig.refused("--rules", str(path) + ".not")
        assert rc == 2 and "No such file" in err


def check_rules_without_ports(rig: Rig) -> None:
    """--check tells right from wrong rules, line by line, and touches no interface."""

    def check(text: str) -> tuple[int, list[str], str]:
        argv = [rig.program, "--check"]
        done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stderr.splitlines(), done.stdout

    assert check("\n".join(RIGHT) + "\n") == (0, [], "")
    rc, said, out = check("a>b first drop\nx\n\ny\n")
    assert (rc, len(said), out) == (2, 2, "") and said[1].startswith(
        "wirebox: rules:4: 'y' is not a direction"
    )


def check_usage(rig: Rig) -> None:
    """Usage, interfaces that are not there or cannot be a cable's end: one line and an exit code each."""
    cases = (
        ((), ("a0", "a0"), 2, "two different ports"),
        (("third",), ("a0", "b0"), 2, "unexpected 'third'"),
        (("--seed", "x"), ("a0", "b0"), 2, "'--seed'"),
        (("--seed", "99999999999999999999"), ("a0", "b0"), 2, "'--seed'"),
        (("--rules",), ("a0", "b0"), 2, "'--rules'"),
        ((), ("a0", "nope"), 3, "no interface 'nope'"),
        ((), ("a0", "x" * 40), 3, "not the name of an interface"),
        ((), ("a0", "lo"), 2, "lo is not an Ethernet interface"),
        (("--bridge", "br0"), ("a0", "b0"), 1, "cannot be taken out of the bridge"),
    )
    for args, ports, rc, why in cases:
        got, err = rig.refused(*args, ports=ports)
        assert got == rc and why in err and err.count("\n") == 1, (args, ports, got, err)
    done = subprocess.run([rig.program, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage: wirebox PORT_A PORT_B")


def check_port_that_is_down(rig: Rig) -> None:
    """A port that is down is refused, with the remedy."""
    sh("ip link add dumb type dummy 2>/dev/null || ip link add dumb type veth peer name dumber")
    try:
        rc, err = rig.refused(ports=("a0", "dumb"))
        assert rc == 2 and "dumb is down" in err and "ip link set dumb up" in err
    finally:
        sh("ip link del dumb")


def check_without_permission(rig: Rig) -> None:
    """Without the right to raw sockets it says so: exit 4."""
    argv = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", rig.program, "a0", "b0"]
    done = subprocess.run(argv, capture_output=True, text=True, input="")
    assert done.returncode == 4 and "run it as root" in done.stderr, done


def check_ends(rig: Rig) -> None:
    """SIGTERM, SIGINT and the end of standard input end it alike: exit 0 and a summary."""
    frames = Tcp().cut(bytes(3000))
    for how in (signal.SIGTERM, signal.SIGINT, None):
        with rig.box() as box:
            assert rig.through(frames) == frames
            if how is None:
                assert box.child.stdin
                box.child.stdin.close()
                box.child.stdin = None
                how = 0
            summary = box.end(how)
            assert summary["a>b"]["frames"] == 4 and summary["b>a"]["frames"] == 0
            assert summary["a>b"]["sent"] == 4 and summary["a>b"]["missed"] == 0
            assert summary["a>b"]["bytes"] == sum(map(len, frames)) + 60


def check_last_line_without_end(rig: Rig) -> None:
    """A last line without its line break counts too."""
    child = rig.start()
    out, _ = child.communicate(b"a>b first drop", timeout=120)
    assert b'{"added":1,"text":"a>b first drop"}' in out and child.returncode == 0


def check_output_gone(rig: Rig) -> None:
    """When nobody reads what it says, the cable goes on."""
    read, write = os.pipe()
    child = subprocess.Popen([rig.program, "a0", "b0"], stdin=subprocess.PIPE, stdout=write)
    os.close(write)
    os.read(read, 100)
    os.close(read)
    frames = Tcp().cut(bytes(5000))
    try:
        assert child.stdin
        child.stdin.write(b"impair a>b duplicate 100%\n")
        child.stdin.flush()
        rig.drain()
        while len(rig.through(frames)) < 10:
            pass
    finally:
        child.terminate()
        child.communicate(timeout=120)
