"""The resident and the clients where the kernel has TLS: run like real.py."""

from __future__ import annotations

import re
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from check_client import liar
from check_serve import resident
from check_taken import GOOD, connection
from rig import STUNNEL, Rig

SOL_TLS, TLS_TX, TLS_RX, GCM256 = 282, 1, 2, 56
TCP_ULP = 31
MIB = 8  # bar: resident memory


def say(sock: socket.socket, line: bytes) -> bytes:
    """Send a line to `openssl s_server -rev`; its answer."""
    sock.settimeout(120)
    sock.sendall(line + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += sock.recv(65536) or b"(closed)\n"
    return answer[:-1]


def found(pid: int, secrets: list[bytes]) -> list[str]:
    """Where in a process's memory one of these is: the mapping's line of /proc/PID/maps."""
    hits = []
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end = (int(n, 16) for n in line.split()[0].split("-"))
            if line.split()[1][0] != "r" or line.endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            memory.seek(begin)
            data = memory.read(end - begin)
            hits += [line for secret in secrets if secret in data]
    return hits


def driver() -> str:
    """Who does gcm(aes) by /proc/crypto: the highest priority that is not internal."""
    blocks = Path("/proc/crypto").read_text().split("\n\n")
    rows = [dict(re.findall(r"^(\S+) +: (.*)$", block, re.M)) for block in blocks]
    fit = [r for r in rows if r.get("name") == "gcm(aes)" and r["internal"] != "yes"]
    return max(fit, key=lambda r: int(r["priority"]))["driver"]


def check_resident_in_the_kernel(rig: Rig) -> None:
    """A resident's socket is the kernel's: payload, driver by name, no key left in memory."""
    with resident(rig, "--ca", rig.file("ca"), "--timeout", "40") as home, rig.server() as port:
        for _ in range(2):
            got = home.ask("connect", "127.0.0.1", port)
            assert got.json["ok"] and got.json["tx"] == got.json["rx"] == "sw", got
            assert got.json["tx_by"] == got.json["rx_by"] == driver(), got
            keys = [got.sock.getsockopt(SOL_TLS, direction, GCM256)[12:44] for direction in (TLS_TX, TLS_RX)]
            assert say(got.sock, b"palindrome") == b"emordnilap"
            got.sock.close()
            assert all(len(set(key)) > 8 for key in keys) and not found(home.child.pid, keys)


def check_resident_is_modest(rig: Rig) -> None:
    """A resident stays below the bar, and can take no huge page: one would be a quarter of it.

    No key is looked for here: that brings in pages of the libraries which a resident never uses.
    """
    with resident(rig, "--ca", rig.file("ca"), "--timeout", "40") as home, rig.server() as port:
        for _ in range(4):
            got = home.ask("connect", "127.0.0.1", port)
            assert got.json["ok"], got
            got.sock.close()
        status = Path(f"/proc/{home.child.pid}/status").read_text()
    assert re.search(r"^THP_enabled:\s+0$", status, re.M), status
    assert int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) < MIB * 1024, status


@contextmanager
def moody(rig: Rig) -> Iterator[str]:
    """A peer that drops its first connection in the handshake, and serves the next ones; its port."""
    with rig.server() as port, socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            first = listener.accept()[0]
            first.recv(100)
            first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            first.close()
            near, far = listener.accept()[0], socket.create_connection(("127.0.0.1", int(port)))
            back = threading.Thread(target=relay, args=(far, near), daemon=True)
            back.start()
            relay(near, far)
            back.join(10)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield str(listener.getsockname()[1])
        thread.join(20)


def relay(a: socket.socket, b: socket.socket) -> None:
    """Pass on until the end."""
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        return


def by_stunnel(rig: Rig, port: str, policy: str, via: str = "") -> str:
    """The Python client: its one warning, after a line came back through stunnel."""
    from offload.connect.client import Policy, Target, connect

    path, lines = rig.folder / "real.conf", []
    path.write_text(policy)
    how = {"via": via} if via else {"program": rig.program}
    target = Target("127.0.0.1", int(port))
    got = connect(target, Policy(str(path), timeout=40), stunnel=STUNNEL, warn=lines.append, **how)
    with got.sock:
        assert got.line["via"] == "stunnel" and say(got.sock, b"abc") == b"cba", got
    assert got.process.wait(120) == 0 and len(lines) == 1, lines
    assert lines[0].startswith(f"127.0.0.1 port {port}: no kTLS ("), lines
    return lines[0]


def check_client_in_the_kernel(rig: Rig) -> None:
    """The Python client: by the kernel in silence; by stunnel after a handshake or cipher that fails."""
    from offload.connect.client import Policy, Target, connect

    chain = f"CAfile = {rig.file('ca')}\nverifyChain = yes\n"
    with rig.server() as port:
        got = connect(
            Target("127.0.0.1", int(port)), Policy(ca=rig.file("ca"), timeout=40), program=rig.program
        )
        with got.sock:
            assert (got.line["via"], got.warning, got.process) == ("ktls", "", None), got
            assert say(got.sock, b"abc") == b"cba"
    with moody(rig) as port:
        assert "reset by peer" in by_stunnel(rig, port, chain)
    suite = "ECDHE-RSA-AES256-SHA384"
    policy = rig.folder / "cbc.conf"
    policy.write_text(f"{chain}ciphers = {suite}\n")
    with (
        resident(rig, "--policy", str(policy), "--timeout", "40") as home,
        rig.server("-cipher", suite) as port,
    ):
        assert "does not support this cipher" in by_stunnel(rig, port, policy.read_text(), str(home.path))


def check_clients_of_a_resident_in_the_kernel(rig: Rig) -> None:
    """Both clients take a resident's socket, whose kernel TLS they ask for; a plain one they refuse."""
    from offload.connect.client import Policy, Target, connect

    policy, header = rig.folder / "both.conf", Path(rig.program).parent / "ktls-handoff.d/client"
    policy.write_text(f"CAfile = {rig.file('ca')}\nverifyChain = yes\n")
    with resident(rig, "--ca", rig.file("ca"), "--timeout", "40") as home, rig.server() as port:
        got = connect(Target("127.0.0.1", int(port)), Policy(str(policy), timeout=40), via=str(home.path))
        with got.sock:
            assert (got.line["via"], got.warning) == ("ktls", ""), got
            assert say(got.sock, b"abc") == b"cba"
        argv = [header, "127.0.0.1", port, policy, home.path]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and '"via":"ktls"' in done.stdout and not done.stderr, done
    for ulp in (b"", b"tls"):  # a plain connection, and one for which no key was given
        with rig.server() as port:
            with liar(rig, GOOD, lambda ulp=ulp: [keyless(ulp)]) as path:
                argv[1:] = ["127.0.0.1", port, policy, path]
                done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
                assert "the kernel does not encrypt" in done.stderr and '"stunnel"' in done.stdout, done
            with liar(rig, GOOD, lambda ulp=ulp: [keyless(ulp)]) as path:
                assert "the kernel does not encrypt" in by_stunnel(rig, port, policy.read_text(), path)


def keyless(ulp: bytes) -> int:
    """The descriptor of a connection on which the kernel does not encrypt."""
    near, _ = connection()
    if ulp:
        near.setsockopt(socket.IPPROTO_TCP, TCP_ULP, ulp)
    return near.detach()


@contextmanager
def no_more_modules(*removed: str) -> Iterator[None]:
    """A kernel without these modules that loads none, until the block ends."""
    helper = Path("/proc/sys/kernel/modprobe")
    program = helper.read_text()
    done = subprocess.run(["rmmod", *removed], capture_output=True, text=True) if removed else None
    assert done is None or done.returncode == 0, done
    try:
        helper.write_text("/bin/false")
        yield
    finally:
        helper.write_text(program)
        for module in removed:
            subprocess.run(["modprobe", module], check=False)


def check_client_of_a_kernel_without_the_cipher(rig: Rig) -> None:
    """The Python client where the kernel refuses keys of a cipher that it cannot do: one line, by stunnel."""
    suite, module = "ECDHE-RSA-CHACHA20-POLY1305", "chacha20poly1305"
    policy = f"CAfile = {rig.file('ca')}\nverifyChain = yes\nciphers = {suite}\n"
    loaded = [module] if f"{module} " in Path("/proc/modules").read_text() else []
    with rig.server("-cipher", suite) as port, no_more_modules(*loaded):
        message = by_stunnel(rig, port, policy)
    assert (
        f"kTLS send refused for TLSv1.2 {suite}" in message
        and "the kernel does not support the cipher" in message
    ), message
    with rig.server("-cipher", suite) as port:  # the same, where it may load the module: it was the kernel
        got = rig.run("connect", "127.0.0.1", port, "--no-verify", "--ciphers", suite)
        assert (got.rc, got.json["kernel_cipher"]) == (0, "chacha20-poly1305"), got
        got.sock.close()


def check_client_without_the_module(rig: Rig) -> None:
    """The Python client where tls cannot be loaded: what to do in one line, and the stream by stunnel."""
    with no_more_modules("tls"), rig.server() as port:
        assert "modprobe tls" in by_stunnel(rig, port, f"CAfile = {rig.file('ca')}\nverifyChain = yes\n")
