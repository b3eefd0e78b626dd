"""The file system of a cost VM: all that a run needs and nothing that reaches out of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from offload.debian.kernels import Kernel
from offload.errors import RigError
from offload.paths import BUILD
from offload.suite.bench.cards.knobs import FOLDER, check
from offload.suite.bench.vm import cards
from offload.suite.bench.vm.card import parameter
from offload.suite.bench.vm.initramfs import Cpio, busybox, module_name, module_order, unpacked
from offload.suite.bench.vm.topology import ENDS, MODULES, NAMESPACES, inside, links
from offload.suite.bench.vm.userland import libraries, program
from offload.suite.measure.cost.plan import Plan, Row

LOAD = BUILD / "costload"
# what the kernel would load by itself, if it found a modprobe: tls_device's fallback wants a gcm(aes) that
# does not sleep; newer kernels have it built in
EXTRA = ("ghash_generic",)
TOOLS = ("ip", "tc", "ethtool")
FOLDERS = ("proc", "sys", "run", "var", "tmp")
DONE = "COST-DONE"
IP = "/usr/sbin/ip"  # by its path: the shell has one of its own that knows less
ALWAYS = 0x7FFFFFFF  # polls without a frame, before a port wants interrupts again: more than there are
WIRE_USECS = 1000  # between two polls of a port on the wire, which lets a frame through every 1.2 ms
FEATURES = ("tls-hw-tx-offload", "tls-hw-rx-offload")

INIT = """\
#!/busybox sh
b=/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
$b mount -t debugfs debugfs /sys/kernel/debug
$b mount -t tmpfs run /run
$b ln -s /run /var/run
set -e
trap '$b echo "%(done)s $?"; $b poweroff -f' EXIT
for m in /modules/*; do $b insmod "$m"; done
%(load)s
%(steps)s
"""


# ports come in the order of the PCI bus, which is that of their names here
LOAD_CARDS = (
    "$b insmod /driver.ko",
    f"set -- {' '.join(cards.PORTS)}",
    f"for card in {cards.DRIVER}/0*; do {IP} link set $($b ls $card/net) name $1; shift; done",
)


def load(plan: Plan) -> str:
    """Shell lines that load the driver of the cards."""
    if plan.kind == cards.KIND:
        return "\n".join(LOAD_CARDS)
    return f"$b insmod /driver.ko personality={parameter(plan.pair)}"


def switched(row: Row) -> list[str]:
    """The words of `ethtool -K` for a row: only the direction that it measures is offloaded."""
    words = []
    for feature, direction in zip(FEATURES, ("tx", "rx"), strict=True):
        words += [feature, "on" if row.offloaded and row.moves(direction) else "off"]
    return words


def steps(plan: Plan) -> list[str]:
    """Shell lines that build the bench and run every row: rows with the same switches in one go."""
    return bench(plan) + [line for group in groups(plan.rows) for line in run_lines(plan, group)]


def threaded(dev: str) -> str:
    """The shell line that moves a port's polling into its own kernel thread, so that its time is counted."""
    return f"echo 1 > /sys/class/net/{dev}/threaded"


def polled(name: str, dev: str, usecs: int) -> Iterator[str]:
    """Shell lines that stop a port's interrupts: the kernel's timer polls it.

    cx6sim raises interrupts by the host's clock: by the guest's, at another moment in each boot.
    """
    inner, at = f"$b nsenter --net=/run/netns/{name}", f"/sysfs/{name}"
    yield f"[ -d {at} ] || {{ $b mkdir -p {at}; {inner} $b mount -t sysfs {name} {at}; }}"
    folder = f"{at}/class/net/{dev}"
    yield f"echo 1 > {folder}/threaded; echo {usecs}000 > {folder}/gro_flush_timeout"
    yield f"echo {ALWAYS} > {folder}/napi_defer_hard_irqs"


def timers(plan: Plan) -> str:
    """The words of costload that start the polls of every port at one moment; "" with cards of the guest."""
    if plan.kind != cards.KIND:
        return ""
    return "".join(
        f"--poll /sysfs/{name}/class/net/{dev}/gro_flush_timeout={usecs}000 "
        for name, dev, usecs in ports(plan)
    )


def ports(plan: Plan) -> list[tuple[str, str, int]]:
    """Every port: its namespace, name, and how many microseconds lie between two polls."""
    ends = ENDS[plan.kind]
    found = [("dut", ends.dut, plan.usecs), ("peer", ends.peer, plan.usecs)]
    return found + [("wire", dev, WIRE_USECS) for dev in ends.wire]


def bench(plan: Plan) -> list[str]:
    """Shell lines that build the bench."""
    ends, inner = ENDS[plan.kind], f"{IP} netns exec"
    late = plan.kind == cards.KIND  # mlx5_core has no NAPI before its port is up
    lines = [] if late else [threaded(dev) for dev in (ends.dut, ends.peer)]
    lines += [f"{IP} {line}" for line in links(plan.kind)]
    for name in NAMESPACES:
        lines += [f"{inner} {name} {IP} {line}" for line in inside(plan.kind, name)]
        lines.append(f"{inner} {name} /busybox sysctl -q -w net.ipv4.tcp_no_metrics_save=1")
    for port in ends.wire:
        lines.append(f"{inner} wire tc qdisc add dev {port} root netem rate {plan.mbits}mbit limit 1000")
    for name, dev in (("dut", ends.dut), ("peer", ends.peer)):
        if not late:
            lines.append(f"{inner} {name} ethtool -C {dev} rx-usecs {plan.usecs}")
    for name, dev, usecs in ports(plan) if late else ():
        lines += polled(name, dev, usecs)
    # each frame by itself, as on a cable
    lines += [f"{inner} wire ethtool -K {port} gro off" for port in ends.wire if late]
    lines += [f"echo {value} > {FOLDER}/{knob}" for knob, value in check(plan.knobs).items()]
    off = " ".join(f"{feature} off" for feature in FEATURES)
    return [*lines, f"{inner} peer ethtool -K {ends.peer} {off}"]


def groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows one after the other that want the same switches."""
    found: list[list[Row]] = []
    for row in rows:
        if found and switched(found[-1][0]) == switched(row):
            found[-1].append(row)
        else:
            found.append([row])
    return found


def run_lines(plan: Plan, rows: Sequence[Row]) -> list[str]:
    """Switch the DUT's card, then run these rows."""
    names = " ".join(row.name for row in rows)
    words = " ".join(switched(rows[0]))
    return [
        f"{IP} netns exec dut ethtool -K {ENDS[plan.kind].dut} {words}",
        f"/costload {timers(plan)}--warm {plan.warm} --bytes {plan.bytes} {names}",
    ]


def modules(kernel: Kernel, more: Sequence[str] = (), kind: str = "nicsim") -> list[Path]:
    """The kernel's own modules, in loading order."""
    listed = (kernel.modules / "modules.dep").read_text().splitlines()
    there = {module_name(line.partition(":")[0]) for line in listed}
    wanted = (*MODULES[kind], *(name for name in (*more, *EXTRA) if name in there))
    return module_order(kernel.modules, wanted)


def image(
    kernel: Kernel, module: Path, plan: Plan, script: Sequence[str] = (), more: Sequence[str] = ()
) -> bytes:
    """The archive; the same for the same kernel, module, programs and plan.

    `script`: shell lines instead of those of `plan`; `more`: kernel modules that they need, where there are
    such. RigError if a program or a kernel module is missing.
    """
    if not LOAD.is_file():
        raise RigError(f"no {LOAD.name} in {LOAD.parent.name}/", "make build")
    cpio = Cpio()
    for folder in (*FOLDERS, "modules"):
        cpio.folder(folder)
    cpio.console()
    cpio.file("busybox", busybox(), 0o755)
    for number, path in enumerate(modules(kernel, more, plan.kind)):
        cpio.file(f"modules/{number:03}-{module_name(path.name)}.ko", unpacked(path))
    cpio.file("driver.ko", module.read_bytes())
    cpio.file("costload", LOAD.read_bytes(), 0o755)
    tools = {name: program(name) for name in TOOLS}
    for name, path in tools.items():
        cpio.file(f"usr/sbin/{name}", path.read_bytes(), 0o755)
    for path in sorted({lib for binary in (LOAD, *tools.values()) for lib in libraries(binary)}):
        cpio.file(str(path), path.read_bytes(), 0o755)
    lines = "\n".join(["export PATH=/usr/sbin", *(script or steps(plan))])
    cpio.file("init", (INIT % {"done": DONE, "load": load(plan), "steps": lines}).encode(), 0o755)
    return cpio.done()
