"""NVMe/TCP and NFS with TLS between DUT and peer: tlshd on each side makes the handshakes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from offload.cmd import wait_until
from offload.errors import RigError
from offload.host.base import Host, Process
from tests.lib.flow import tlshd
from tests.lib.rig.rig import Rig, in_lab

SIZE = 1 << 20  # bytes that are written and read back
NQN, HOST_NQN = "nqn.2014-08.test:offload", "nqn.2014-08.test:dut"
HOST_ID = "0f01fb42-9f7f-4856-b0b3-51e60b8de349"  # the kernel takes a hostnqn with its own id only
# nvme-keyring: with CONFIG_NVME_TCP_TLS only
MODULES = ("nvme-keyring", "nvme-tcp", "nvmet-tcp", "brd")
SOON = 240.0  # seconds for a handshake: an emulated guest needs some, beside other work more
CONFIG = """\
[debug]
loglevel=1
[authenticate.client]
{0}[authenticate.server]
{0}"""
FILES = "x509.truststore={0.ca}\nx509.certificate={0.cert}\nx509.private_key={0.key}\n"
# the retained PSK of a host and a subsystem, by its NVMe identity; add_key is system call 248 (x86-64)
ADD_KEY = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
ring = next(int(line.split()[0], 16) for line in open("/proc/keys") if " .nvme" in line)
name, key = sys.argv[1].encode(), sys.stdin.buffer.read()
sys.exit(libc.syscall(248, b"psk", name, key, len(key), ring) < 0)
"""
TARGET = """
mount -t configfs configfs /sys/kernel/config; cd /sys/kernel/config/nvmet
mkdir subsystems/{nqn} subsystems/{nqn}/namespaces/1 ports/1
echo 1 >subsystems/{nqn}/attr_allow_any_host
echo /dev/ram0 >subsystems/{nqn}/namespaces/1/device_path; echo 1 >subsystems/{nqn}/namespaces/1/enable
cd ports/1; echo ipv4 >addr_adrfam; echo tcp >addr_trtype; echo {v4} >addr_traddr; echo 4420 >addr_trsvcid
echo tls1.3 >addr_tsas; echo required >addr_treq; ln -s /sys/kernel/config/nvmet/subsystems/{nqn} subsystems/
"""
NO_TARGET = """
cd /sys/kernel/config/nvmet; rm -f ports/1/subsystems/{nqn}; rmdir ports/1
echo 0 >subsystems/{nqn}/namespaces/1/enable; rmdir subsystems/{nqn}/namespaces/1 subsystems/{nqn}
cd /; umount /sys/kernel/config; rmmod brd
"""
CONNECT = """
import os, sys
file = os.open("/dev/nvme-fabrics", os.O_RDWR)
os.write(file, sys.argv[1].encode())
print(os.read(file, 200).decode().partition("instance=")[2].partition(",")[0])
"""


NFS_MODULES = ("nfsd", "nfsv4")
# What exportfs and rpc.nfsd do, without rpcbind: version 4 only. Columns of nfsd.export: flags (insecure,
# no_subtree_check, fsid; root is not squashed), uid and gid of nobody, fsid. 1 in nfsd.fh: that number is the
# file handle. Nobody has anything to reclaim: the time of grace is the least.
SERVE = """
mkdir -p {0}/nfsd {0}/export; mount -t nfsd nfsd {0}/nfsd
mount -t tmpfs tmpfs {0}/export; touch {0}/export/data
cd /proc/net/rpc
echo "nfsd {1} 2147483647 clients" >auth.unix.ip/channel
echo "clients {0}/export 2147483647 9218 65534 65534 0" >nfsd.export/channel
echo "clients 1 \\x00000000 2147483647 {0}/export" >nfsd.fh/channel
cd {0}/nfsd
echo "-3 +4 +4.1 +4.2" >versions; echo 10 >nfsv4leasetime; echo 10 >nfsv4gracetime
echo "tcp 2049" >portlist
echo 2 >threads
"""
NO_SERVE = """
echo 0 >{0}/nfsd/threads
for one in nfsd.fh nfsd.export auth.unix.ip; do date +%s >/proc/net/rpc/$one/flush; done
umount {0}/export; umount {0}/nfsd; rm -rf {0}
"""


def missing(rig: Rig, modules: Sequence[str] = MODULES) -> str:
    """What is lacking for it, as a clause, or ''."""
    if not in_lab(rig.bench):
        return "the suite does this only in a lab VM, never on real hosts"
    if not tlshd.had():
        return "tlshd of Debian 13 is not in the cache (make fetch)"
    run = rig.lab.root.run
    if run(["grep", "-qw", "tls_client_hello_psk", "/proc/kallsyms"], check=False).rc != 0:
        return "the kernel has no CONFIG_NET_HANDSHAKE"
    lacking = [name for name in modules if run(["modprobe", "-n", name], check=False).rc != 0]
    return f"the kernel has no module {' and '.join(lacking)}" if lacking else ""


@dataclass
class Storage:
    """Storage of the peer as the DUT has it: where the DUT writes, and where the peer finds it."""

    rig: Rig
    write: str
    stored: str

    def digest(self, where: str) -> str:
        """The SHA-256 of what lies there, read past the caches of this side."""
        host = self.dut if where == "dut" else self.peer
        return host.run(self.reading(where), timeout=SOON).text.split()[0]

    def reading(self, where: str) -> list[str]:
        """The command that prints it."""
        path = self.write if where == "dut" else self.stored
        return ["sh", "-c", f"dd if={path} bs=64k count={SIZE >> 16} iflag=direct status=none | sha256sum"]

    @property
    def dut(self) -> Host:
        return self.rig.bench.dut.host

    @property
    def peer(self) -> Host:
        return self.rig.bench.peer.host

    def put(self, data: bytes) -> None:
        """Write it through to the peer."""
        self.dut.write("/run/storage", data)
        line = f"dd if=/run/storage of={self.write} bs=64k oflag=direct status=none; sync {self.write}"
        self.dut.run(["sh", "-ec", line], timeout=SOON)


@contextmanager
def daemons(rig: Rig) -> Iterator[None]:
    """tlshd on both sides while the block runs."""
    with ExitStack() as undo:
        for which in ("dut", "peer"):
            end = rig.end(which)
            folder, host = f"/run/tlshd-{which}", end.side.host
            undo.callback(host.run, ["rm", "-rf", folder])
            host.write(f"{folder}/conf", CONFIG.format(FILES.format(end.at)).encode())
            argv = [tlshd.had(), "-s", "-c", f"{folder}/conf"]
            process = host.start(argv)
            undo.callback(process.kill)
            wait_until(lambda process=process: _listens(process), SOON, f"tlshd on the {which}", 0.5)
        yield


def _listens(process: Process) -> bool:
    """Whether tlshd says that it was built, which is its first line; RigError if it ended."""
    if not process.running():
        raise RigError(f"tlshd ended: {process.output()[1].decode('utf-8', 'replace')[-500:]}")
    return b"Built from ktls-utils" in b"".join(process.output())


@contextmanager
def nvme(rig: Rig) -> Iterator[Storage]:
    """A namespace of the peer's memory over NVMe/TCP with TLS, by one queue besides the admin queue."""
    dut, peer, v4 = rig.bench.dut.host, rig.bench.peer.host, rig.bench.peer.v4
    with ExitStack() as undo:
        rig.lab.root.run(["modprobe", "-a", *MODULES])  # tlshd looks for the keyring when it starts
        undo.enter_context(daemons(rig))
        secret, name = secrets.token_bytes(32), f"NVMe0R01 {HOST_NQN} {NQN}"
        rig.lab.root.run(["python3", "-c", ADD_KEY, name], input=secret)
        peer.run(["sh", "-ec", TARGET.format(nqn=NQN, v4=v4)])
        undo.callback(peer.run, ["sh", "-c", NO_TARGET.format(nqn=NQN)])
        asked = f"nqn={NQN},transport=tcp,traddr={v4},trsvcid=4420,hostnqn={HOST_NQN}"
        asked += f",hostid={HOST_ID},nr_io_queues=1,tls"
        number = dut.run(["python3", "-c", CONNECT, asked], timeout=SOON).text.strip()
        gone = f"echo 1 >/sys/class/nvme/nvme{number}/delete_controller"
        undo.callback(dut.run, ["sh", "-c", gone], timeout=SOON)
        disk = f"/dev/nvme{number}n1"
        wait_until(lambda: dut.run(["test", "-b", disk], check=False).rc == 0, SOON, disk, 0.5)
        yield Storage(rig, disk, "/dev/ram0")


@contextmanager
def nfs(rig: Rig) -> Iterator[Storage]:
    """A file of the peer's memory over NFS 4.2 with TLS."""
    dut, peer = rig.bench.dut, rig.bench.peer
    served, here = "/run/nfs-peer", "/run/nfs-dut"
    with ExitStack() as undo:
        rig.lab.root.run(["modprobe", "-a", *NFS_MODULES])
        undo.enter_context(daemons(rig))
        undo.callback(peer.host.run, ["sh", "-c", NO_SERVE.format(served)], timeout=SOON, check=False)
        peer.host.run(["sh", "-ec", SERVE.format(served, dut.v4)], timeout=SOON)
        options = f"vers=4.2,proto=tcp,port=2049,sec=sys,xprtsec=tls,addr={peer.v4},clientaddr={dut.v4}"
        dut.host.run(["mkdir", "-p", here])
        dut.host.run(["mount", "-i", "-t", "nfs4", "-o", options, f"{peer.v4}:/", here], timeout=SOON)
        undo.callback(dut.host.run, ["umount", here], timeout=SOON)
        yield Storage(rig, f"{here}/data", f"{served}/export/data")
