"""The drivers that `driver build` makes, in the VM: the kernel takes them, and the modules above them too.

No card is there, so nothing is said of offload itself: the module loads, its TLS code is in it, and after
`driver remove` the kernel's own is back. `make test-driver` builds them; without that these are skipped.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from offload.driver.build import built_modules, origin, place
from offload.driver.kinds import Kind, kinds
from offload.host.base import Host
from offload.vm.cache import cache_root
from tests.lib.rig import Labs

PROJECT = Path(__file__).parents[2]
STATE = "/run/ktls-offload-test-driver"
INDEX = ("modules.dep", "modules.dep.bin", "modules.symbols", "modules.symbols.bin", "modules.alias")


@dataclass
class Guest:
    """The VM as a host on which a driver is installed."""

    host: Host
    release: str
    kind: Kind

    def command(self, *words: str) -> str:
        """Run `ktls-offload driver`; its output."""
        env = {"XDG_CACHE_HOME": str(cache_root().parent), "KTLS_OFFLOAD_STATE": STATE}
        argv = [sys.executable, "-m", "offload", "driver", *words]
        return self.host.run(["env", f"PYTHONPATH={PROJECT}", *argv], env=env, timeout=600).text

    def load(self, *names: str) -> None:
        """Load modules; CommandFailed with modprobe's words."""
        for name in names:
            self.host.run(["/sbin/modprobe", name], timeout=300)

    def unload(self) -> None:
        """Unload the driver and all above it; harmless if it is not loaded."""
        self.host.run(["/sbin/modprobe", "-r", *self.above(), *self.kind.modules], check=False, timeout=300)

    def above(self) -> list[str]:
        """The kernel's modules that build on the driver and are not part of it."""
        first = next(iter(self.kind.modules))
        text = self.host.read(f"/lib/modules/{self.release}/modules.dep").decode()
        rows = (line.split(":") for line in text.splitlines() if f"/{first}.ko" in line.partition(":")[2])
        names = (Path(row[0]).name.split(".")[0] for row in rows)
        return [name for name in names if name not in self.kind.modules]

    def symbols(self) -> dict[str, bool]:
        """For each witness of the option, whether the running kernel has it."""
        text = self.host.run(["grep", "-F", "[", "/proc/kallsyms"], check=False, timeout=120).text
        seen = {(row[2], row[3].strip("[]")) for row in map(str.split, text.splitlines()) if len(row) > 3}
        return {symbol: (symbol, module) in seen for module, symbol in self.kind.witness.items()}

    def index(self) -> dict[str, str]:
        """What modprobe goes by: name -> SHA-256."""
        folder = f"/lib/modules/{self.release}"
        return {name: hashlib.sha256(self.host.read(f"{folder}/{name}")).hexdigest() for name in INDEX}


@pytest.fixture(params=list(kinds()))
def guest(request: pytest.FixtureRequest, labs: Labs) -> Iterator[Guest]:
    """The VM with a driver that was built for its kernel; what was loaded is unloaded after."""
    lab = labs.get("nicsim").lab
    kind, release = kinds()[request.param], lab.root.run(["uname", "-r"]).text.strip()
    tree = place(kind, release, None)
    if not origin(tree) or not built_modules(kind, tree):
        pytest.skip(f"{kind.name} is not built for {release}: make test-driver")
    headers = f"/usr/src/linux-headers-{release}"
    with ExitStack() as undo:
        undo.callback(lab.root.run, ["rm", "-rf", headers, STATE])
        lab.root.run(["ln", "-s", str(cache_root() / "kernels" / release / "root" / headers[1:]), headers])
        found = Guest(lab.root, release, kind)
        undo.callback(found.unload)
        yield found


def test_the_built_driver_loads_and_goes(guest: Guest, labs: Labs) -> None:
    """Without this a driver with TLS offload for Debian would be a promise that nobody saw a kernel keep."""
    lab, name = labs.get("nicsim").lab, guest.kind.name
    first = next(iter(guest.kind.modules))
    guest.host.run(
        ["/sbin/depmod", guest.release], timeout=300
    )  # the lab's index was made by the host's depmod
    before, mark = guest.index(), lab.console_mark()
    guest.load(first)
    assert not any(guest.symbols().values()), "the kernel's own driver has TLS already: nothing to prove"
    guest.unload()

    said = guest.command("install", name)
    assert f"{name} with TLS offload is installed" in said
    guest.load(*guest.kind.modules, *guest.above())
    assert all(guest.symbols().values()), guest.symbols()
    assert "O" in guest.host.read(f"/sys/module/{first}/taint").decode()
    assert f"the loaded {first} was built outside the kernel" in guest.command("status")
    guest.unload()

    guest.command("remove", name)
    assert guest.index() == before
    guest.load(first)
    assert not any(guest.symbols().values()), "driver remove left a driver with TLS"
    assert lab.console_faults(mark) == []
