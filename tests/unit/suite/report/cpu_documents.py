"""SYNTHETIC documents of schema ktls-offload/measure/1: figures made up, no card and no VM gave them."""

from __future__ import annotations

from random import Random
from typing import Any

ABOUT = {"kernel": "6.1.0-synthetic", "nic": "made up", "tools": {"openssl": "3.0.0", "nginx": "1.22"}}
COUNTED = {"memory traffic": "counted by a made-up controller"}
# arm -> cores per 100 Gbit/s at 1 MiB, Gbit/s of one connection
ARMS = {"user": (21.0, 5.1), "sw": (14.0, 7.3), "hw": (8.4, 15.0), "hw-zc": (4.6, 27.0), "plain": (3.5, 38.0)}
# arm -> bytes to and from memory per byte of payload
MEMORY = {"user": 6.2, "sw": 4.4, "hw": 2.3, "hw-zc": 1.2, "plain": 2.1}
KIB, MIB = 1 << 10, 1 << 20


def sample(cores: float, gbits: float, seconds: float = 2.0, **more: Any) -> dict[str, Any]:
    """One sample of so many active cores at so many Gbit/s."""
    return {"cores": cores, "bytes": int(gbits * seconds * 125e6), "seconds": seconds, **more}


def row(arm: str, workload: str = "stream", **more: Any) -> dict[str, Any]:
    """A row without samples."""
    cipher = {"version": "", "cipher": ""} if arm == "plain" else {"version": "1.2", "cipher": "aes_gcm_128"}
    found = {"workload": workload, "arm": arm, "direction": "tx", **cipher, "streams": 1, "size": None}
    return found | {"segmentation": True} | more


def document(rows: list[Any], method: str = "time", **more: Any) -> dict[str, Any]:
    head = {"schema": "ktls-offload/measure/1", "method": method, "simulated": True, "about": ABOUT}
    return head | {"rows": rows, "skipped": [], "warnings": []} | more


def rounds(cores: float, gbits: float, count: int, noise: float, seed: int) -> list[dict[str, Any]]:
    """Samples that scatter about a mean."""
    random = Random(seed)
    return [
        sample(cores * gbits / 100 * random.gauss(1, noise), gbits * random.gauss(1, 0.01))
        for _ in range(count)
    ]


def streams(direction: str = "tx", count: int = 7, noise: float = 0.01) -> list[dict[str, Any]]:
    """Every arm with 1, 8 and 64 connections."""
    found = []
    for number in (1, 8, 64):
        for n, (arm, (cores, gbits)) in enumerate(ARMS.items()):
            speed = min(gbits * number**0.8, 93.0)
            samples = rounds(cores, speed, count, noise, seed=n * 100 + number)
            samples = [one | {"memory_bytes": round(one["bytes"] * MEMORY[arm])} for one in samples]
            found.append(row(arm, direction=direction, streams=number, samples=samples))
    return found


def sweep(count: int = 7) -> list[dict[str, Any]]:
    """nginx with 4 KiB to 4 MiB: offload costs more for small files, less for large ones."""
    found = []
    for power in range(12, 23, 2):
        for number in (1, 8, 64, 1024):
            gain = 1.25 - 0.085 * (power - 12) - (0.12 if number >= 8 else 0.0)
            noise = 0.1 if number == 1 and power < 18 else 0.012
            for n, (arm, part) in enumerate(
                {"sw": 1.0, "hw": gain, "hw-zc": gain * 0.8, "plain": 0.3}.items()
            ):
                samples = rounds(
                    14 * part * (1 + 2 ** (14 - power)), 30, count, noise, seed=power * number + n
                )
                found.append(row(arm, "nginx", streams=number, size=1 << power, samples=samples))
    return found


def cost(boots: int = 3) -> list[dict[str, Any]]:
    """Cost mode: every arm, tx and both ways, sender, receiver, host and card."""
    found = []
    for direction, part in (("tx", 1.0), ("both", 1.1)):
        for arm, (sender, receiver) in {
            "user": (9.1, 9.9),
            "sw": (6.2, 6.9),
            "hw": (3.4, 3.3),
            "hw-zc": (2.6, 3.3),
            "plain": (2.2, 2.4),
        }.items():
            sides = {
                "sender": sender,
                "receiver": receiver,
                "host": sender + receiver,
                "card": 4.0 + (arm[0] == "h") * 9,
            }
            entries = [
                {"boot": boot, "side": side, "per_byte": value * part * (1 + boot * 2e-4)}
                for boot in range(1, boots + 1)
                for side, value in sides.items()
            ]
            found.append(row(arm, direction=direction, cost=entries))
    return found
