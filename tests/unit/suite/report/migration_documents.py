"""SYNTHETIC documents of schema ktls-offload/migration/2: figures made up, no card and no VM gave them."""

from __future__ import annotations

from typing import Any

# transport -> ms at the source, ms until arrived, ms of downtime, CPU seconds and active cores at either end
TRANSPORTS = {
    "plain": (900, 950, 60, (0.4, 0.3), (0.6, 0.5)),
    "stunnel": (2000, 3000, 180, (2.1, 1.9), (1.4, 1.3)),
    "qemu-tls": (2500, 2550, 150, (2.4, 2.2), (1.2, 1.1)),
    "ktls-sw": (1500, 1600, 120, (1.2, 1.8), (0.9, 1.3)),
    "ktls-hw": (1000, 1050, 70, (0.5, 1.8), (0.65, 1.3)),
}


def run(transport: str = "stunnel", number: int = 0, cores: bool = True, **more: Any) -> dict[str, Any]:
    """One migration, a little slower than the one before."""
    ms, arrived, downtime, used, active = TRANSPORTS[transport]
    slower = number * 10
    ends = [
        {"cpu_seconds": cpu, **({"cores": busy, "margin": 0.1} if cores else {})}
        for cpu, busy in zip(used, active, strict=True)
    ]
    found = {"ms": ms + slower, "arrived_ms": arrived + slower, "downtime_ms": downtime, "bytes": 260 << 20}
    found |= {"rounds": 3, "forced": False, "source": ends[0], "destination": ends[1]}
    return found | more


def document(count: int = 5, cores: bool = True, **more: Any) -> dict[str, Any]:
    """Every transport but QEMU's own TLS, so often."""
    transports = [
        {"transport": transport, "runs": [run(transport, number, cores) for number in range(count)]}
        for transport in TRANSPORTS
        if transport != "qemu-tls"
    ]
    found = {"schema": "ktls-offload/migration/2", "simulated": True, "transports": transports}
    found |= {
        "guest": {"mib": 256, "pages_per_second": 2000},
        "about": {"tls": "1.2 made up", "qemu": "7.2.0"},
    }
    return found | {"skipped": [{"transport": "qemu-tls", "reason": "made up"}]} | more
