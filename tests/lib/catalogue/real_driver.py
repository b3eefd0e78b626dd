"""A lab of two simulated ConnectX-6 Dx below the real mlx5_core, and who does TLS in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from offload import paths
from offload.debian.kernels import fetch
from offload.driver.build import origin, place
from offload.driver.kinds import kind
from offload.suite.bench.vm import cards
from offload.suite.bench.vm.lab import Lab
from tests.lib.rig.rig import Labs


@contextmanager
def lab(config: pytest.Config, labs: Labs, cpus: int = 1) -> Iterator[Lab]:
    """A lab with so many vCPUs; the test is skipped where nobody has built the driver."""
    kernel = fetch(config.getoption("--kernel"))
    if origin(place(kind("mlx5"), kernel.release, None)) != kernel.version:
        pytest.skip(f"no mlx5_core for {kernel.release}: ktls-offload driver build mlx5")
    labs.close()
    with Lab.boot(kernel, cards.KIND, cpus=cpus) as booted:
        yield booted


def dev(lab: Lab) -> str:
    """The DUT's interface."""
    return lab.bench.dut.dev


def by_card(lab: Lab, net: str = "") -> set[str]:
    """Who does TLS for two new connections; they use the ports' addresses, or NET.1 and NET.2."""
    v4 = [f"{net}.1", f"{net}.2"] if net else [lab.bench.dut.v4, lab.bench.peer.v4]
    ends = [f"--{side}={side},{address}" for side, address in zip(("dut", "peer"), v4, strict=True)]
    row = [str(paths.BUILD / "costload"), "--warm=16384", "--bytes=65536", *ends, "hw/both"]
    seen = json.loads(lab.root.run(row).stdout)["ends"]
    return {seen["dut-send"]["tx"], seen["dut-receive"]["rx"]}
