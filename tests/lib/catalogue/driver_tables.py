"""What drivers' own tables say of a card: ids, counters, ciphers and options, read from kernel source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from offload.card.profile import DIRECTIONS, Profile
from offload.card.profile_ids import Undescribed

NET = "drivers/net/ethernet"
MLX5 = f"{NET}/mellanox/mlx5/core"
CHELSIO = f"{NET}/chelsio"
NFP = f"{NET}/netronome/nfp"
FUN = f"{NET}/fungible/funeth"
DATA_PATHS = {path: f"{NFP}/{path}/dp.c" for path in ("nfd3", "nfdk")}  # of nfp, by firmware
COMMON = ("net/tls/Kconfig", "net/tls/tls_device.c", "include/linux/pci_ids.h")
VENDORS = {"MELLANOX": 0x15B3, "CHELSIO": 0x1425}  # the first is in mlx5's own headers, the second in a macro
ID = re.compile(r"(?:PCI_VDEVICE(?:_SUB)?\(\s*|\{ PCI_VENDOR_ID_)(\w+),\s*(\w+)")
T4_ID = re.compile(r"CH_PCI_ID_TABLE_FENTRY\((0x[0-9a-f]{4})\)")
DEFINED = re.compile(r"^#define\s+(PCI_(?:VENDOR|DEVICE)_ID_\w+)\s+(0x[0-9a-fA-F]+)", re.M)
# names as a driver prints them: literals, padded by some; of mlx5 the sums, not those of each ring
COUNTER = re.compile(r'"((?:tx|rx|hw)_tls_\w+) *"|MLX5E_DECLARE_STAT\([^)]*, ((?:tx|rx)_tls_\w+)\)')
CIPHER = re.compile(r"case TLS_CIPHER_(\w+):")
FEATURE = re.compile(r"->(hw_features|features)\s*\|= NETIF_F_HW_TLS_([TR]X);")
OPTION = re.compile(r"^(?:menu)?config (\w+)", re.M)


@dataclass(frozen=True)
class Driver:
    """Where a driver has its tables; `gate`: a Makefile, and what in it ties the TLS part to `option`."""

    ids: tuple[str, ...]
    counters: tuple[str, ...]
    code: tuple[str, ...]
    kconfig: tuple[str, ...]
    gate: tuple[str, str]
    option: str

    def files(self) -> tuple[str, ...]:
        """All that is read."""
        every = (*self.ids, *self.counters, *self.code, *self.kconfig, self.gate[0])
        return tuple(dict.fromkeys(every))


DRIVERS = {
    "mlx5_core": Driver(
        (f"{MLX5}/main.c",),
        (f"{MLX5}/en_stats.c", f"{MLX5}/en_accel/ktls_stats.c"),
        (f"{MLX5}/en_accel/ktls.c", f"{MLX5}/en_accel/ktls.h"),
        (f"{MLX5}/Kconfig",),
        (f"{MLX5}/Makefile", r"\$\(CONFIG_MLX5_EN_TLS\) \+= en_accel/ktls_stats\.o"),
        "CONFIG_MLX5_EN_TLS",
    ),
    "cxgb4": Driver(
        (f"{CHELSIO}/cxgb4/t4_pci_id_tbl.h",),
        (f"{CHELSIO}/cxgb4/cxgb4_ethtool.c",),
        (f"{CHELSIO}/cxgb4/cxgb4_main.c", f"{CHELSIO}/inline_crypto/ch_ktls/chcr_ktls.c"),
        (f"{CHELSIO}/Kconfig", f"{CHELSIO}/inline_crypto/Kconfig"),
        (f"{CHELSIO}/inline_crypto/ch_ktls/Makefile", r"\$\(CONFIG_CHELSIO_TLS_DEVICE\) \+= ch_ktls\.o"),
        "CONFIG_CHELSIO_TLS_DEVICE",
    ),
    "nfp": Driver(
        (f"{NFP}/nfp_main.c", f"{NFP}/nfp_netvf_main.c", f"{NFP}/nfpcore/nfp_dev.h"),
        (f"{NFP}/nfp_net_ethtool.c",),
        (f"{NFP}/crypto/tls.c",),
        (f"{NET}/netronome/Kconfig",),
        (f"{NFP}/Makefile", r"ifeq \(\$\(CONFIG_TLS_DEVICE\),y\)\nnfp-objs \+= \\\n\s+crypto/tls\.o"),
        "CONFIG_TLS_DEVICE",
    ),
    "funeth": Driver(
        (f"{FUN}/funeth_main.c",),
        (f"{FUN}/funeth_ethtool.c",),
        (f"{FUN}/funeth_ktls.c",),
        (f"{FUN}/Kconfig",),
        (f"{FUN}/Makefile", r"\$\(CONFIG_TLS_DEVICE\) \+= funeth_ktls\.o"),
        "CONFIG_TLS_DEVICE",
    ),
}
LISTED_WITH = {"nfp_netvf": "nfp"}  # a driver of virtual functions -> the one whose files hold its ids


def files() -> tuple[str, ...]:
    """Every file of the kernel's source that is read."""
    every = (f for driver in DRIVERS.values() for f in driver.files())
    return tuple(dict.fromkeys((*COMMON, *every, *DATA_PATHS.values())))


@dataclass(frozen=True)
class Tables:
    """What a driver's source says."""

    ids: frozenset[tuple[int, int]]
    counters: frozenset[str]
    ciphers: frozenset[str]
    offers: frozenset[str]
    starts_on: frozenset[str]
    options: frozenset[str]
    gated: bool


def read(tree: Path, driver: Driver) -> Tables:
    """The tables of a driver in a tree of kernel source."""

    def text(names: Iterable[str]) -> str:
        return "\n".join((tree / name).read_text("utf-8", "replace") for name in names)

    code, makefile = text(driver.code), text([driver.gate[0]])
    features = FEATURE.findall(code)
    return Tables(
        frozenset(_ids(text(driver.ids), text(["include/linux/pci_ids.h"]))),
        frozenset(a or b for a, b in COUNTER.findall(text(driver.counters))),
        frozenset(c.lower().replace("_", "-") for c in CIPHER.findall(code)),
        frozenset(d.lower() for where, d in features if where == "hw_features"),
        frozenset(d.lower() for where, d in features if where == "features"),
        frozenset(f"CONFIG_{o}" for o in OPTION.findall(text((*COMMON, *driver.kconfig)))),
        re.search(driver.gate[1], makefile) is not None,
    )


def _ids(text: str, common: str) -> Iterator[tuple[int, int]]:
    """Vendor and device of each row; Chelsio's rows stand for functions 0 to 3, and for function 4."""
    defined = {name: int(value, 16) for name, value in DEFINED.findall(common + text)}
    for vendor, device in ID.findall(text):
        number = int(device, 16) if device.startswith("0x") else defined[_device(device)]
        yield VENDORS.get(vendor) or defined[f"PCI_VENDOR_ID_{vendor}"], number
    for device in T4_ID.findall(text):
        yield from ((VENDORS["CHELSIO"], int(device, 16) | function) for function in (0, 0x400))


def _device(name: str) -> str:
    """The macro's name."""
    return name if name.startswith("PCI_DEVICE_ID_") else f"PCI_DEVICE_ID_{name}"


def drift(profile: Profile, tables: Tables) -> list[str]:
    """In what a profile differs from its driver, one sentence each."""
    return [*_of_ids(profile, tables), *_of_counters(profile, tables), *_of_code(profile, tables)]


def _of_ids(profile: Profile, tables: Tables) -> Iterator[str]:
    for ids in profile.pci:
        for device in range(ids.first, ids.last + 1):
            if (ids.vendor, device) not in tables.ids:
                yield f"{ids.vendor:04x}:{device:04x} ({ids.name}) is not in the driver's table"


def _of_counters(profile: Profile, tables: Tables) -> Iterator[str]:
    seen: set[str] = set()
    for direction in DIRECTIONS:
        lists = profile.counters.of(direction)
        shown = {*dict(lists.names).values(), *lists.dead, *(o for o in lists.own if "*" not in o)}
        yield from (f"the driver has no counter {name}" for name in sorted(shown - tables.counters))
        yield from (f"{name} is said to be absent" for name in lists.absent if name in tables.counters)
        seen |= shown
    yield from (f"counter {name} is in no list" for name in sorted(tables.counters - seen))


def _of_code(profile: Profile, tables: Tables) -> Iterator[str]:
    promised = {cell.cipher for cell in profile.promises}
    if promised != tables.ciphers:
        yield f"the driver takes {sorted(tables.ciphers)}, and promised are {sorted(promised)}"
    if set(profile.directions()) != tables.offers:
        yield f"the driver offers {sorted(tables.offers)}, and promised are {profile.directions()}"
    on = {d for d in DIRECTIONS if profile.default(d)}
    if on != tables.starts_on:
        yield f"the driver starts with {sorted(tables.starts_on)} on, and the profile says {sorted(on)}"
    wanted = {k.symbol for k in profile.kconfig}
    yield from (f"no Kconfig file has {symbol}" for symbol in sorted(wanted - tables.options))
    driver = DRIVERS[profile.driver]
    if not tables.gated or driver.option not in wanted:
        yield f"the TLS part no longer depends on {driver.option} alone ({driver.gate[0]})"


def unlisted(
    driver: str, tables: Tables, profiles: Iterable[Profile], others: Iterable[Undescribed]
) -> list[str]:
    """Ids of a driver's table that neither a profile nor the list of other cards knows."""
    known = [ids for p in profiles if p.driver == driver for ids in p.pci]
    known += [card.ids for card in others if LISTED_WITH.get(card.driver, card.driver) == driver]
    found = (f"{vendor:04x}:{device:04x}" for vendor, device in sorted(tables.ids))
    return [name for name in found if not any(ids.covers(name) for ids in known)]
