"""The drivers that `driver build` makes, in the VM: the kernel takes them, and the modules above them too.

No card is there, so nothing is said of offload itself: the module loads, its TLS code is in it, and after
`driver remove` the kernel's own is back. `make test-driver` builds them; without that these are skipped.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from offload.debian.cache import cache_root
from offload.driver.build import built_modules, origin, place
from offload.driver.kinds import Kind, kinds
from offload.host.base import Host
from offload.suite.bench.vm.initramfs import module_name
from tests.lib.rig.rig import Labs

PROJECT = Path(__file__).parents[2]
STATE = "/run/ktls-offload-test-driver"
MODULES = "/run/ktls-offload-test-modules"
INDEX = ("modules.dep", "modules.dep.bin", "modules.symbols", "modules.symbols.bin", "modules.alias")


@dataclass
class Guest:
    """The VM as a host on which a driver is installed."""

    host: Host
    release: str
    kind: Kind
    needs: Mapping[
        str, Sequence[str]
    ]  # modules.dep: the path of a module -> those that it needs, all of them

    def command(self, *words: str) -> str:
        """Run `ktls-offload driver`; its output."""
        env = {"XDG_CACHE_HOME": str(cache_root().parent), "KTLS_OFFLOAD_STATE": STATE}
        argv = [sys.executable, "-m", "offload", "driver", *words]
        return self.host.run(["env", f"PYTHONPATH={PROJECT}", *argv], env=env, timeout=600).text

    def load(self, *names: str) -> None:
        """Load modules; CommandFailed with modprobe's words."""
        for name in names:
            self.host.run(["/sbin/modprobe", name], timeout=900)

    def unload(self) -> None:
        """Unload the driver and all above it; harmless if it is not loaded."""
        self.host.run(["/sbin/rmmod", *self.above(), *self.kind.reload], check=False, timeout=900)

    def follow(self, said: str) -> None:
        """Bring the other driver into use, by the line that `install` and `remove` print for that."""
        line = next(line for line in said.splitlines() if line.endswith(f"; modprobe {self.kind.reload[-1]}"))
        self.host.run(["sh", "-c", line], timeout=900)

    def above(self) -> list[str]:
        """The kernel's modules that build on the driver and are not part of it."""
        first = next(iter(self.kind.modules))
        users = (path for path, needed in self.needs.items() if first in map(module_name, needed))
        return [name for name in map(module_name, users) if name not in self.kind.modules]

    def shrunk(self) -> None:
        """Have these modules and what they need, no others: depmod takes minutes for all of them here."""
        wanted = {*self.kind.modules, *self.above()}
        paths = {
            p for path, needed in self.needs.items() if module_name(path) in wanted for p in (path, *needed)
        }
        target = f"/lib/modules/{self.release}"
        folder = f"{MODULES}/{self.release}"
        script = 'mkdir -p "$1" && cd "$2" && shift 2 && cp --parents modules.builtin* modules.order "$@"'
        words = [folder, target, f"--target-directory={folder}", *sorted(paths)]
        self.host.run(["sh", "-c", script, "sh", *words], timeout=900)
        self.host.run(["sh", "-c", 'mount --bind "$1" "$(readlink -f "$2")"', "sh", folder, target])
        self.host.run(["/sbin/depmod", self.release], timeout=900)

    def whole(self) -> None:
        """Have all of the kernel's modules again."""
        target = f"/lib/modules/{self.release}"
        self.host.run(["sh", "-c", 'umount "$(readlink -f "$1")"', "sh", target])

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
    text = lab.root.read(f"/lib/modules/{release}/modules.dep").decode()
    rows = (line.partition(":") for line in text.splitlines())
    found = Guest(lab.root, release, kind, {path: needed.split() for path, _, needed in rows})
    with ExitStack() as undo:
        undo.callback(lab.root.run, ["rm", "-rf", headers, STATE, MODULES])
        lab.root.run(["ln", "-s", str(cache_root() / "kernels" / release / "root" / headers[1:]), headers])
        found.shrunk()
        undo.callback(found.whole)
        undo.callback(found.unload)
        yield found


def test_the_built_driver_loads_and_goes(guest: Guest, labs: Labs) -> None:
    """Without this a driver with TLS offload for Debian would be a promise that nobody saw a kernel keep."""
    lab, name = labs.get("nicsim").lab, guest.kind.name
    first = next(iter(guest.kind.modules))
    before, mark = guest.index(), lab.console_mark()
    guest.load(first)
    assert not any(guest.symbols().values()), "the kernel's own driver has TLS already: nothing to prove"

    said = guest.command("install", name)
    assert f"{name} with TLS offload is installed" in said
    guest.follow(said)
    guest.load(*guest.kind.modules, *guest.above())
    assert all(guest.symbols().values()), guest.symbols()
    assert "O" in guest.host.read(f"/sys/module/{first}/taint").decode()
    assert f"the loaded {first} was built outside the kernel" in guest.command("status")

    said = guest.command("remove", name)
    assert guest.index() == before
    guest.host.run(["/sbin/rmmod", *guest.above()], check=False)
    guest.follow(said)
    assert not any(guest.symbols().values()), "driver remove left a driver with TLS"
    assert lab.console_faults(mark) == []
