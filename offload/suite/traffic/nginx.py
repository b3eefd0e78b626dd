"""nginx on the DUT: serves files of chosen sizes, its TLS in user space, in the kernel, or not at all."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from offload.cmd import wait_until
from offload.errors import RigError
from offload.host.base import Host, Process
from offload.suite.traffic.certs import Placed
from offload.suite.traffic.iperf3 import listens, vacant
from offload.suite.traffic.pump_channel import payload

PROGRAM = "nginx"
MAKE = """\
import hashlib,sys
sys.stdout.buffer.write(hashlib.shake_128(sys.argv[1].encode()).digest(int(sys.argv[2])))
"""
FETCH = """\
import hashlib,ssl,sys,urllib.request
url,ca=sys.argv[1:]
context=ssl.create_default_context(cafile=ca) if url.startswith("https") else None
body=urllib.request.urlopen(url,timeout=60,context=context).read()
print(len(body),hashlib.sha256(body).hexdigest())
"""
CIPHERS = {
    "aes-gcm-128": "ECDHE-RSA-AES128-GCM-SHA256",
    "aes-gcm-256": "ECDHE-RSA-AES256-GCM-SHA384",
}


@dataclass(frozen=True)
class Shop:
    """One nginx: where it listens, whether it does TLS, and by whom (`ktls`: kernel; `zerocopy`: no copy).

    `program`: which nginx, if not this host's own.
    """

    address: str
    port: int
    tls: bool
    ktls: bool = False
    zerocopy: bool = False
    cipher: str = "aes-gcm-128"
    workers: int = 1
    program: str = PROGRAM

    def url(self, size: int) -> str:
        """Where the file of this size is."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}/{size}"


def config(shop: Shop, at: Placed) -> str:
    """Return the whole configuration: foreground, log to standard error, every path below `at.folder`."""
    temp = " ".join(
        f"{kind}_temp_path {at.folder}/nginx-{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    host = f"[{shop.address}]" if ":" in shop.address else shop.address
    return f"""\
daemon off; pid {at.folder}/nginx-{shop.port}.pid; error_log stderr warn; user root;
worker_processes {shop.workers}; worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
  access_log off; sendfile on; sendfile_max_chunk 2m; tcp_nopush on;
  keepalive_requests 100000000; keepalive_timeout 600; {temp}
  server {{
    listen {host}:{shop.port}{" ssl" if shop.tls else ""} backlog=2048; root {at.folder}/files;
{_tls(shop, at) if shop.tls else ""}  }}
}}
"""


def _tls(shop: Shop, at: Placed) -> str:
    """The lines of a server that does TLS 1.2."""
    options = ["KTLS" if shop.ktls else "-KTLS", *(["KTLSTxZerocopySendfile"] if shop.zerocopy else [])]
    return f"""\
    ssl_certificate {at.cert}; ssl_certificate_key {at.key}; ssl_protocols TLSv1.2;
    ssl_ciphers {CIPHERS[shop.cipher]}; ssl_session_cache off; ssl_session_tickets off;
    ssl_conf_command Options {",".join(options)};
"""


def missing(host: Host, *, zerocopy: bool = False, program: str = PROGRAM) -> str:
    """Return what this host lacks, or ''; SSL_OP_ENABLE_KTLS_TX_ZEROCOPY_SENDFILE came with OpenSSL 3.2."""
    done = host.run([program, "-V"], check=False)
    if done.rc != 0:
        return "nginx is not installed"
    said = done.stderr.decode("utf-8", "replace") + done.text
    found = re.search(r"running with OpenSSL ([0-9]+)\.([0-9]+)", said) or re.search(
        r"built with OpenSSL ([0-9]+)\.([0-9]+)", said
    )
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < (3, 0):
        return "nginx here is built without OpenSSL 3, so without kernel TLS"
    if zerocopy and version < (3, 2):
        return f"zero-copy sendfile needs OpenSSL 3.2, nginx here has {version[0]}.{version[1]}"
    return ""


def version(host: Host) -> str:
    """The version, or none."""
    done = host.run([PROGRAM, "-v"], check=False)
    found = re.search(r"nginx/([0-9.]+)", done.stderr.decode("utf-8", "replace"))
    return found[1] if found else "none"


def stock(host: Host, folder: str, sizes: Sequence[int]) -> None:
    """Make the files to be served, named by their size in bytes: payload that depends on the size only."""
    host.run(["mkdir", "-p", "-m", "755", f"{folder}/files"])
    for size in sizes:
        made = '/usr/bin/python3 -ISc "$0" "$1" "$2" > "$3"'
        host.run(["/bin/sh", "-c", made, MAKE, f"nginx {size}", str(size), f"{folder}/files/{size}"])


@contextmanager
def running(host: Host, shop: Shop, at: Placed, timeout: float = 60) -> Iterator[Process]:
    """Run nginx on the host until the block ends. RigError with its log if it does not come up."""
    path = f"{at.folder}/nginx-{shop.port}.conf"
    host.write(path, config(shop, at).encode(), 0o600)
    vacant(host, shop.port)
    process = host.start([shop.program, "-e", "stderr", "-c", path])

    def up() -> bool:
        if not process.running():
            raise RigError(f"nginx ended at once:\n{process.output()[1].decode('utf-8', 'replace')[-2000:]}")
        return listens(host, shop.port)

    try:
        wait_until(up, timeout, f"nginx to listen on port {shop.port} of {host.name}")
        yield process
    finally:
        process.kill()


def check(host: Host, shop: Shop, size: int, ca: str) -> None:
    """Fetch a file on `host` and compare its SHA-256. RigError if it is not what was made."""
    wanted = hashlib.sha256(payload(f"nginx {size}", size)).hexdigest()
    argv = ["/usr/bin/python3", "-I", "-c", FETCH, shop.url(size), ca]
    said = host.run(argv, timeout=120).text.split()
    if said != [str(size), wanted]:
        raise RigError(f"nginx served {' '.join(said)[:100]} for {shop.url(size)}, wanted {size} {wanted}")
