"""Figures to compare those below the real driver with: nicsim's and a published one; and their limits."""

from __future__ import annotations

from offload.suite.measure.cpu.published import published

# per cent saved of sender, receiver and host, `both`: the last line of benchmarks/results/cost.md
NICSIM = {"6.1": (70, 58, 44), "6.12": (71, 57, 51), "7.2": (69, 66, 46)}
FILE_KIB, WORKERS = 1024, 8  # of the published row: nginx, few large files, as here
SAVED, UNTOLD = "saved elsewhere", "not told"  # keys of the document's `about`


def compared(series: str) -> dict[str, str]:
    """Entries of a document's `about`; nothing of nicsim for a kernel on which it was not recorded."""
    found = [
        f"on a real ConnectX-6 Dx {_cores():.0f} % of the cores of software kTLS (published; nginx, 1 MiB)"
    ]
    if series in NICSIM:
        sender, receiver, host = NICSIM[series]
        sides = (
            f"{sender} % of the sender's instructions, {receiver} % of the receiver's, {host} % of the host's"
        )
        found.insert(0, f"with nicsim {sides} (recorded on {series})")
    return {
        SAVED: "; ".join(found),
        UNTOLD: "what memory, PCIe and the clock cost",
    }


def _cores() -> float:
    """Per cent of software's active cores that the real card saved."""
    rows = [row for row in published().nginx if (row.file_kib, row.workers) == (FILE_KIB, WORKERS)]
    arms = rows[0].arms
    return 100 * (1 - arms["offload"].per_100g / arms["software"].per_100g)
