"""What a bench may lack: each need is probed once per rig, and says in a clause what is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from offload.card.nic import look
from offload.card.profile import FEATURES
from offload.errors import RigError
from offload.suite.bench.cards import knobs
from offload.suite.bench.vm import cards
from offload.suite.bench.vm.own_driver import OWN
from offload.suite.traffic import handoff, impair, iperf3, ipsec, keylog, nginx, tap, wrk
from tests.lib.flow import film, haproxy, migration, storage
from tests.lib.rig.rig import Rig, in_lab
from tests.lib.wire import records_trace


def _program(name: str) -> Callable[[Rig], str]:
    def probe(rig: Rig) -> str:
        sides = (rig.bench.dut, rig.bench.peer)
        lacking = [s.host.name for s in sides if s.host.run(["which", name], check=False).rc != 0]
        return f"{name} is not installed on {' and '.join(lacking)}" if lacking else ""

    return probe


def _tls(rig: Rig) -> str:
    host = rig.bench.dut.host
    ready = host.run(["modprobe", "tls"], check=False).rc == 0 or _has(rig, "/proc/net/tls_stat")
    return "" if ready else "the DUT has no kernel TLS (module tls)"


def _has(rig: Rig, path: str) -> bool:
    return rig.bench.dut.host.run(["test", "-e", path], check=False).rc == 0


def _handoff(rig: Rig) -> str:
    return "" if Path(handoff.PROGRAM).exists() else "build/ktls-handoff is not built (make build)"


def _openssl32(rig: Rig) -> str:
    said = rig.bench.dut.host.run([handoff.PROGRAM, "--version"], check=False).text
    found = re.search(r"OpenSSL (\d+)\.(\d+)", said)
    able = found and (int(found[1]), int(found[2])) >= (3, 2)
    return "" if able else f"OpenSSL before 3.2 keeps TLS 1.3 receive to itself ({said.strip()})"


def _peer_feature(direction: str) -> Callable[[Rig], str]:
    def probe(rig: Rig) -> str:
        feature = look(rig.bench.peer.host, rig.bench.peer.dev).feature(direction)
        usable = feature is not None and not feature.fixed
        return "" if usable else f"the peer's card does not offer {FEATURES[direction]}"

    return probe


def _wire(rig: Rig) -> str:
    return "" if rig.bench.wire is not None else "there is no wire box (a third host between the ports)"


def _wire_tap(rig: Rig) -> str:
    lacking = _unbuilt(keylog.LIBRARY, tap.PROGRAM)
    return f"{lacking} (make build)" if lacking else ""


def _unbuilt(*programs: Path | str) -> str:
    lacking = [str(path) for path in programs if not Path(path).exists()]
    return f"not built: {' and '.join(lacking)}" if lacking else ""


def built() -> None:
    """RigError, with the line to type, if a program that every scenario runs is not there."""
    if lacking := _unbuilt(keylog.LIBRARY, tap.PROGRAM, impair.PROGRAM):
        raise RigError(lacking, "make build")


def _pedit(rig: Rig) -> str:
    hosts = [host for host in (rig.bench.dut.host, rig.bench.wire) if host is not None]
    load = ["modprobe", "-a", "sch_ingress", "cls_u32", "act_pedit", "act_csum"]
    lacking = [host.name for host in hosts if host.run(load, check=False).rc != 0]
    return f"no tc pedit (kernel modules {', '.join(load[2:])}) on {', '.join(lacking)}" if lacking else ""


def _dut(rig: Rig, name: str) -> str:
    return (
        ""
        if rig.bench.dut.host.run(["which", name], check=False).rc == 0
        else f"{name} is not installed on the DUT"
    )


def _qemu(rig: Rig) -> str:
    built = "" if migration.GUEST.exists() else "build/dirty-guest is not built (make build)"
    return built or _program(migration.QEMU)(rig)


def _records_trace(rig: Rig) -> str:
    return records_trace.missing(rig.bench.dut.host)


def _ipsec(rig: Rig) -> str:
    return ipsec.missing(rig.bench.dut.host) or ipsec.missing(rig.bench.peer.host)


def _lab(rig: Rig) -> str:
    return "" if in_lab(rig.bench) else "the suite does this only in a lab VM, never on real hosts"


def _iperf3(rig: Rig) -> str:
    return iperf3.missing(rig.bench.dut.host) or iperf3.missing(rig.bench.peer.host)


def _nginx(rig: Rig) -> str:
    return nginx.missing(rig.bench.dut.host) or wrk.missing(rig.bench.peer.host)


def _films(rig: Rig) -> str:
    return "" if in_lab(rig.bench) else _nginx(rig)  # a lab counts instructions, with programs of ours


def _nicsim(rig: Rig) -> str:
    return "" if _has(rig, knobs.FOLDER) else "only nicsim can be given ESP crypto for a test"


def _cost_mode(rig: Rig) -> str:
    if in_lab(rig.bench) and rig.lab.kind == cards.KIND:
        own = rig.bench.rig.get("driver under test", "").startswith(OWN)
        return "cost mode boots Debian's mlx5_core, and this lab has one of your own" if own else ""
    other = in_lab(rig.bench) and not _has(rig, knobs.FOLDER)
    return "cost mode needs nicsim or cx6sim, and this lab has another card" if other else ""


PROBES: dict[str, Callable[[Rig], str]] = {
    "tls": _tls,
    "ktls-handoff": _handoff,
    "stunnel": _program("stunnel4"),
    "openssl": _program("openssl"),
    "openssl-3.2": _openssl32,
    "qemu": _qemu,
    "haproxy": lambda rig: _dut(rig, "haproxy"),
    "haproxy-ktls": haproxy.missing,
    "nginx-server": lambda rig: nginx.missing(rig.bench.dut.host),
    "peer-tls-hw-tx-offload": _peer_feature("tx"),
    "peer-tls-hw-rx-offload": _peer_feature("rx"),
    "nginx-without-copy": lambda rig: film.without_copy(rig)[1],
    "iperf3": _iperf3,
    "nginx": _nginx,
    "films": _films,
    "wire": _wire,
    "wire-tap": _wire_tap,
    "pedit": _pedit,
    "ipsec": _ipsec,
    "lab": _lab,
    "nicsim": _nicsim,
    "cost-mode": _cost_mode,
    "records-trace": _records_trace,
    "nvme-tls": storage.missing,
    "nfs-tls": lambda rig: storage.missing(rig, storage.NFS_MODULES),
}


def unmet(rig: Rig, wanted: Sequence[str]) -> list[str]:
    """Every need that this rig does not meet, as clauses; KeyError for an unknown need."""
    for name in wanted:
        if name not in rig.probed:
            rig.probed[name] = PROBES[name](rig)
    return [rig.probed[name] for name in dict.fromkeys(wanted) if rig.probed[name]]
