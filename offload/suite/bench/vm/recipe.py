"""What a lab is going to be, chosen and checked before it boots: kernel, QEMU, accelerator, bench, module."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from offload.card.profile import find as find_profile
from offload.debian.debug import is_slow
from offload.debian.kernels import Kernel
from offload.errors import ConfigError
from offload.suite.bench.cards.module import PEER, build_nicsim
from offload.suite.bench.vm import cards, made, qemu_cards
from offload.suite.bench.vm.card import parameter
from offload.suite.bench.vm.kvm import accelerator
from offload.suite.bench.vm.qemu import Machine, Qemu, find
from offload.suite.bench.vm.topology import check_kind, check_personality

Say = Callable[[str], None]
# one vCPU: under TCG a second one doubles the host's processor time (docs/certify/embedded-lab.md)
CPUS, MOST_CPUS, MEMORY = 1, 4, 1024  # memory in MiB
SLOW, SHADOW = 4.0, 2  # a debug kernel: times longer, times the memory (shadow, freed objects, traces)


@dataclass(frozen=True)
class Recipe:
    """All that decides what boots; `pair`: what both cards are told to play; `why`: of this accelerator."""

    kernel: Kernel
    kind: str
    pair: str
    cpus: int
    qemu: Qemu
    accel: str
    why: str
    module: Path | None
    peer: Path | None = None  # the module of the peer's card, if it is not that of the DUT's

    @property
    def slow(self) -> float:
        """How many times longer everything may take on this kernel."""
        return SLOW if is_slow(self.kernel.config) else 1.0

    @property
    def memory(self) -> int:
        """Of the VM, in MiB."""
        return MEMORY * (SHADOW if self.slow > 1 else 1)

    @property
    def spare(self) -> int:
        """vCPUs that rest once the driver is loaded: until then each of them makes a queue of a port."""
        return max(0, cards.QUEUES - self.cpus) if self.kind == cards.KIND else 0

    def machine(self, devices: Iterable[str]) -> Machine:
        """The VM of this lab, with more of QEMU's options."""
        more = tuple(devices)
        return Machine(self.kernel, self.qemu, self.accel, self.cpus, self.memory, more, self.spare)

    def made(self) -> dict[str, str]:
        """The parts of this lab, each by a short name of what it is: another name, another lab."""
        of_kernel = (self.kernel.release, self.kernel.version, str(self.kernel.modules))
        of_qemu = (self.qemu.program, self.qemu.version, *self.qemu.options, self.accel, str(self.cpus))
        return {
            "the kernel": made.digest(word.encode() for word in of_kernel),
            "QEMU": made.digest(word.encode() for word in of_qemu),
            "the cards": f"{self.kind} {self.pair}",
            "the simulated NIC": made.contents([self.module]) if self.module else "",
            **({"the peer's card": made.contents([self.peer])} if self.peer else {}),
            **made.code(),
        }


def choose(
    kernel: Kernel,
    kind: str,
    personality: str,
    cpus: int | None,
    source: Path | None,
    say: Say,
    driver: Path | None = None,
) -> Recipe:
    """The lab that boots for these wishes, its module built. ConfigError for a bench that does not exist."""
    check_kind(kind)
    pair, vcpus = check_personality(personality), cpus_wanted(cpus)
    built = _driver(kernel, pair, driver, say) if kind == cards.KIND else None
    qemu = qemu_cards.find(say) if built else find(say)
    pair = parameter(pair) if kind == "nicsim" else pair
    accel, why = accelerator(kernel, qemu, say)
    module = build_nicsim(kernel, say, source) if kind == "nicsim" else built
    peer = build_nicsim(kernel, say, name=PEER) if kind == "nicsim" and source else None
    return Recipe(kernel, kind, pair, vcpus, qemu, accel, why, module, peer)


def _driver(kernel: Kernel, pair: str, own: Path | None, say: Say) -> Path:
    """The real driver, or one's own, for a bench whose cards are what is asked for. ConfigError for other
    cards."""
    for name in pair.split(","):
        cards.check_profile(find_profile(name))
    return own or cards.driver(kernel, say)


def cpus_wanted(cpus: int | None) -> int:
    """How many vCPUs; ConfigError for a number that makes no sense."""
    text = str(cpus) if cpus is not None else os.environ.get("LAB_CPUS", str(CPUS))
    if not text.isdigit() or not 1 <= int(text) <= MOST_CPUS:
        raise ConfigError(f"{text!r} vCPUs", f"1 to {MOST_CPUS} (LAB_CPUS or --cpus)")
    return int(text)
