"""Does data go through TLS, whole, in every mode, and does the JSON say how?"""

from __future__ import annotations

from rig import STOCK, Answer, Rig, records, relay

MODES = tuple(
    tuple(text.split()) for text in ("", "-P 3", "-R", "--bidir", "-Z", "-R -Z -P 2", "--bidir -Z -P 2")
)
SUITES = {
    "1.2": (
        *(f"ECDHE-ECDSA-{name}" for name in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")),
    ),
    "1.3": ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"),
}
SIZE = ("-n", "8M")
SHARED = ("-n", "32M")  # by several streams or a relay: 8M may lie in their buffers unread at the end
PLAIN = ("-n", "64M")  # the same, without TLS between


def moved(got: Answer) -> None:
    """Assert that a client ended well and that bytes moved, in each direction it had."""
    assert got.rc == 0 and "error" not in got.json, (got.rc, got.words)
    for key, total in got.json["end"].items():
        if key.startswith("sum"):
            assert total["bytes"] > 65_536, (key, total)  # -n: iperf3 ends before the receiver has read all


def described(end: Answer, version: str, streams: int) -> int:
    """Assert the shape of every tls object of one end; bytes that it verified."""
    places = [end.json["start"]["connected"], end.json["end"]["streams"]]
    verified = 0
    for place in places:
        assert len(place) == streams, place
        for row in place:
            tls = row["tls"]
            assert tls["version"] == version and {tls["tx"], tls["rx"]} <= {"user", "sw", "hw", "kernel"}, tls
            assert tls["record_size"] == 16384 and not tls["zerocopy_sendfile"], tls
            verified += tls["verified_bytes"]
    return verified // 2


def check_every_mode(rig: Rig) -> None:
    """Both versions with -P, -R, --bidir and -Z: every byte verified where it arrives, JSON at both ends."""
    for version in SUITES:
        for mode in MODES:
            with rig.server("-1", "-J") as server:
                size = SHARED if "-P" in mode else SIZE
                got = rig.client(server.port, f"--tls={version}", "--tls-verify-payload", *size, *mode)
            assert server.answer and server.answer.rc == 0, (mode, server.answer)
            moved(got)
            one_way = int(mode[mode.index("-P") + 1]) if "-P" in mode else 1
            streams = 2 * one_way if "--bidir" in mode else one_way
            here, there = (described(end, version, streams) for end in (got, server.answer))
            assert (here > 65_536) == ("-R" in mode or "--bidir" in mode), (mode, here)
            assert (there > 65_536) == ("-R" not in mode), (mode, there)


def check_blocks_of_any_size(rig: Rig) -> None:
    """-l from 1 byte to 1 MiB, odd ones too, at full speed and paced: whole."""
    with rig.server() as server:
        for length, total in (("1", "3K"), ("1000", "1M"), ("16385", "2M"), ("1M", "8M")):
            for more in ((), ("-R",), ("-Z",), ("-b", "500M")):
                args = ("--tls", "--tls-verify-payload", "-l", length, "-n", total)
                got = rig.client(server.port, *args, *more)
                assert got.rc == 0 and got.json["end"]["sum_sent"]["bytes"] > 0, (length, more, got.words)


def check_plain_stays_plain(rig: Rig) -> None:
    """Without --tls it is iperf3: with the stock program at either end, and no tls object in the JSON."""
    for here, there in ((rig.program, STOCK), (STOCK, rig.program), (rig.program, rig.program)):
        for mode in MODES:
            with rig.server("-1", program=there) as server:
                got = rig.client(server.port, *PLAIN, *mode, program=here)
            moved(got)
            assert '"tls"' not in got.out


def check_wire(rig: Rig) -> None:
    """On the wire: behind the cookie of a data connection nothing but records, of the size asked for."""
    for version, size, overhead in (("1.2", 4096, 24), ("1.3", 2048, 17), ("1.3", 16384, 17)):
        with rig.server("-1") as server, relay(server.port, lambda number, data: data) as (port, seen):
            got = rig.client(port, f"--tls={version}", f"--tls-record-size={size}", *SHARED)
        moved(got)
        assert b'"tls":' in seen[0] and len(seen) == 2
        found = records(bytes(seen[1]))
        payload = [length for kind, length in found if kind == 23]
        assert found[0][0] == 22 and len(payload) > 2_000_000 // size, found[:5]
        assert max(payload) == size + overhead, (max(payload), size)
        assert got.json["start"]["connected"][0]["tls"]["record_size"] == size


def check_ciphers(rig: Rig) -> None:
    """The suite that was asked for is the one in the JSON."""
    with rig.server() as server:
        for version, suites in SUITES.items():
            for suite in suites:
                got = rig.client(server.port, f"--tls={version}", f"--tls-ciphers={suite}", *SIZE)
                moved(got)
                assert got.json["end"]["streams"][0]["tls"]["cipher"] == suite


def check_ktls_where_possible(rig: Rig) -> None:
    """tx, rx and both without kTLS in the kernel: the same test in user space, and the JSON says so."""
    with rig.server() as server:
        for mode in ("off", "tx", "rx", "both"):
            got = rig.client(server.port, "--tls", f"--ktls={mode}", "-Z", *SIZE)
            moved(got)
            tls = got.json["end"]["streams"][0]["tls"]
            assert (tls["tx"], tls["rx"], tls["sendfile"]) == ("user", "user", False), (mode, tls)


def check_one_server_many_tests(rig: Rig) -> None:
    """TLS and plain tests by turns at one server: descriptors come back with other meanings."""
    with rig.server() as server:
        for args in ("--tls -P 3", "-P 4", "--tls -R", "", "--tls=1.2 --bidir", "-R"):
            moved(rig.client(server.port, *PLAIN, *args.split()))


def check_by_time(rig: Rig) -> None:
    """A test by the clock ends by the clock, in both directions."""
    with rig.server() as server:
        for mode in ((), ("-R",), ("--bidir",)):
            got = rig.client(server.port, "--tls", "--tls-verify-payload", "-t", "1", "-b", "100M", *mode)
            moved(got)
            assert 0.9 < got.json["end"]["sum_sent"]["seconds"] < 10


def check_trust(rig: Rig) -> None:
    """With --tls-ca the chain and the name count; without it any certificate does."""
    ca = f"--tls-ca={rig.folder}/ca.pem"
    for name, trust, rc, words in (
        ("server", ca, 0, ""),
        ("server", f"--tls-ca={rig.folder}/other.pem", 2, "unable to get local issuer certificate"),
        ("named", ca, 2, "IP address mismatch"),
    ):
        files = (f"--tls-cert={rig.folder}/{name}.pem", f"--tls-key={rig.folder}/{name}-key.pem")
        with rig.server(*files) as server:
            got = rig.client(server.port, "--tls", trust, *SIZE)
            assert got.rc == rc and words in got.words, (name, trust, got)
    with rig.server() as server:
        got = rig.client(server.port, "--tls", ca, *SIZE)
        assert got.rc == 2 and "self-signed" in got.words.replace("self signed", "self-signed"), got
