"""A host with programs: what they say of themselves, their files, and per reason code a configuration."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from offload.host.base import Completed
from tests.unit.doctor.fake_doctor import DEBIAN, FakeHost

GCM = (
    "ECDHE-RSA-AES256-GCM-SHA384 TLSv1.2 Kx=ECDH Au=RSA Enc=AESGCM(256) Mac=AEAD\n"
    "ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 Kx=ECDH Au=RSA Enc=AESGCM(128) Mac=AEAD\n"
)
CHACHA = "ECDHE-RSA-CHACHA20-POLY1305 TLSv1.2 Kx=ECDH Au=RSA Enc=CHACHA20/POLY1305(256) Mac=AEAD\n"
CBC = "ECDHE-RSA-AES256-SHA384 TLSv1.2 Kx=ECDH Au=RSA Enc=AES(256) Mac=SHA384\n"
# what openssl 3.0 makes of lists, as far as it matters
LISTS = {"ECDHE+AESGCM": GCM, "CHACHA20": CHACHA, "AES256": CBC}
NGINX = (
    "nginx version: nginx/1.22.1\n"
    "built with OpenSSL 3.0.9 30 May 2023 (running with OpenSSL 3.0.19 27 Jan 2026)\n"
)
NGINX_36 = "nginx version: nginx/1.29.0\nbuilt with OpenSSL 3.6.3\n"
# as HAProxy 3.4.7-1 of Debian experimental says it
HAPROXY = (
    "HAProxy version 3.4.7 2026/10/14\nRunning on: Linux 6.12.117\nFeature list : +EPOLL {}KTLS +OPENSSL\n"
    "Built with SSL library version : OpenSSL 3.6.5 29 Sep 2026\n"
    "Running on SSL library version : OpenSSL 3.6.5 29 Sep 2026\n"
)
STUNNEL = "stunnel 5.68 on x86_64-pc-linux-gnu platform\nRunning  with OpenSSL 3.6.3\noptions = ENABLE_KTLS\n"
CNF = "/usr/lib/ssl/openssl.cnf"
CNF_KTLS = "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nOptions = KTLS\n"
PATHS = {
    "nginx": "/etc/nginx/nginx.conf",
    "haproxy": "/etc/haproxy/haproxy.cfg",
    "stunnel": "/etc/stunnel/a.conf",
    "openssl": CNF,
    "nfs": "/proc/mounts",
    "nvme": "/sys/class/nvme/nvme0/tls_key",
}
GOOD = "ssl_conf_command Options KTLS; ssl_protocols TLSv1.2; ssl_ciphers ECDHE+AESGCM; sendfile on;"
FILES = {
    "nginx": f"events {{}}\nhttp {{\n{GOOD}\nserver {{\n listen 443 ssl;\n server_name www;\n}}\n}}\n",
    "haproxy": "global\n expose-experimental-directives\nfrontend www\n bind :443 ssl crt a.pem ktls on "
    "ssl-max-ver TLSv1.2 ciphers ECDHE+AESGCM\n",
    "stunnel": "[www]\naccept = 443\nconnect = 80\noptions = ENABLE_KTLS\nsslVersionMax = TLSv1.2\n"
    "ciphers = ECDHE+AESGCM\n",
    "openssl": CNF_KTLS + "MaxProtocol = TLSv1.2\nCipherString = ECDHE+AESGCM\n",
}


@dataclass
class AppHost(FakeHost):
    """The recorded host, with programs and any files."""

    said: dict[tuple[str, ...], tuple[int, str, str]] = field(default_factory=dict)

    def __init__(self) -> None:
        super().__init__()
        self.said = {
            ("nginx", "-V"): (0, "", NGINX),
            ("haproxy", "-vv"): (0, HAPROXY.format("+"), ""),
            ("stunnel", "-options"): (0, "", STUNNEL),
            ("openssl", "version", "-d"): (0, 'OPENSSLDIR: "/usr/lib/ssl"\n', ""),
            ("tlshd", "--version"): (0, "", "Built from ktls-utils 1.3.0 on Sep  1 2026\n"),
            ("openssl", "version"): (0, "OpenSSL 3.0.19 27 Jan 2026 (Library: x)\n", ""),
        }
        self.release, self.version = "6.12.95-amd64", DEBIAN.replace("6.1.192-2", "6.12.95-1")
        self.files[CNF] = b"openssl_conf = a\n[a]\n"

    def put(self, app: str, text: str) -> None:
        """The program's own file."""
        self.files[PATHS[app]] = text.encode("utf-8", "surrogateescape")

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = 60.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """The recorded answer."""
        words = tuple(argv)
        if words[:2] == ("head", "-c"):
            data = self.files.get(words[4])
            said = b"" if data is not None else b"head: cannot open: No such file or directory\n"
            return Completed(words, int(data is None), data or b"", said, 0.0)
        if words[:2] == ("sh", "-c") and len(words) == 5:
            names = sorted(p for p in self.files if fnmatch.fnmatchcase(p, words[4]))
            return Completed(words, 0, "".join(f"{n}\0" for n in names).encode(), b"", 0.0)
        if words[0] == "test":
            has = (
                words[2] in self.files
                if words[1] == "-e"
                else any(p.startswith(f"{words[2]}/") for p in self.files)
            )
            return Completed(words, int(not has), b"", b"", 0.0)
        if words[:2] == ("openssl", "ciphers"):
            rc, out = (0, LISTS[words[-1]]) if words[-1] in LISTS else (1, "")
            rc, out = (0, GCM + CHACHA + CBC) if words[-1][:4] in ("HIGH", "DEFA") else (rc, out)
            return Completed(words, rc, out.encode(), b"", 0.0)
        if words in self.said:
            rc, *said = self.said[words]
            out, err = (text.encode("utf-8", "surrogateescape") for text in said)
            return Completed(words, rc, out, err, 0.0)
        return super().run(argv, input=input, timeout=timeout, check=check, env=env)


STORAGE = {
    "nfs": "proc /proc proc rw 0 0\n192.0.2.9:/x /mnt nfs4 rw,vers=4.2,xprtsec=mtls,proto=tcp 0 0\n",
    "nvme": "1a2b3c4d\n",
}
FILES |= STORAGE


def changed(app: str, *pairs: tuple[str, str]) -> Callable[[AppHost], None]:
    """The good configuration with some words of it replaced."""

    def make(host: AppHost) -> None:
        text = FILES[app]
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new, 1)
        host.put(app, text)

    return make


def said(app: str, words: str, output: str, *pairs: tuple[str, str]) -> Callable[[AppHost], None]:
    """The same, and the program says this of itself."""

    def make(host: AppHost) -> None:
        changed(app, *pairs)(host)
        host.said[tuple(words.split())] = (0, output, output)

    return make


def with_cnf(app: str, *pairs: tuple[str, str]) -> Callable[[AppHost], None]:
    """The same, and openssl.cnf asks for every program."""

    def make(host: AppHost) -> None:
        changed(app, *pairs)(host)
        host.files[CNF] = CNF_KTLS.encode()

    return make


def on_72(host: AppHost) -> None:
    """A mount with TLS, on the first of Debian's kernels that takes a new key."""
    changed("nfs")(host)
    host.release, host.version = "7.2.12+deb13-amd64", DEBIAN.replace("6.1.192-2", "7.2.12-1~bpo13+1")


def on_61(host: AppHost) -> None:
    """Debian's 6.1, on which poll() reports too much."""
    changed("stunnel")(host)
    host.release, host.version = "6.1.0-56-amd64", DEBIAN


SERVER = "server_name www;"
FIRST = "server { listen 443 ssl; ssl_protocols TLSv1.3; }"
KTLS = "ssl_conf_command Options KTLS;"
APP_CASES: dict[str, tuple[str, Callable[[AppHost], None]]] = {
    "D801": ("nginx", changed("nginx", (" ssl;", ";"))),
    "D802": ("nginx", changed("nginx", (KTLS, ""))),
    "D803": ("nginx", changed("nginx", (SERVER, "ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;"))),
    "D804": ("stunnel", changed("stunnel", ("[www]", "[www]\noptions = -ENABLE_KTLS"))),
    "D805": ("haproxy", said("haproxy", "haproxy -vv", HAPROXY.replace("3.4.7", "2.6.12"))),
    "D806": ("nginx", said("nginx", "nginx -V", "nginx/1.22.1\nbuilt with OpenSSL 1.1.1 1 Jan 2020")),
    "D807": ("nginx", changed("nginx", ("TLSv1.2;", "TLSv1.3;"))),
    "D808": ("nginx", changed("nginx", ("TLSv1.2;", "TLSv1.2 TLSv1.3;"))),
    "D809": ("nginx", changed("nginx", ("ECDHE+AESGCM", "CHACHA20"))),
    "D810": ("nginx", changed("nginx", ("ssl_ciphers ECDHE+AESGCM;", ""))),
    "D811": ("nginx", changed("nginx", ("listen 443", "listen [::1]:443 ssl; listen 127.0.0.2:443"))),
    "D812": ("haproxy", changed("haproxy", (":443", "quic4@:443"))),
    "D813": ("nginx", changed("nginx", ("TLSv1.2;", "TLSv1.2 TLSv1.3;"))),
    "D814": ("nginx", changed("nginx", ("sendfile on;", ""))),
    "D815": ("nginx", changed("nginx", (SERVER, "aio threads=default;"))),
    "D816": ("nginx", changed("nginx", (SERVER, "ssl_buffer_size 4k;"))),
    "D817": ("stunnel", changed("stunnel", ("[www]", "compression = zlib\n[www]"))),
    "D818": ("haproxy", changed("haproxy", (" expose-experimental-directives\n", ""))),
    "D819": ("haproxy", said("haproxy", "haproxy -vv", HAPROXY.format("-"))),
    "D820": ("nginx", changed("nginx", ("events", "include nginx.conf; events"))),
    "D821": ("nginx", with_cnf("nginx", (KTLS, ""))),
    "D822": ("nginx", said("nginx", "nginx -V", "sh: not found")),
    "D823": (
        "haproxy",
        said(
            "haproxy",
            "haproxy -vv",
            HAPROXY.format("+").replace("3.4.7", "3.4.0"),
            (" bind :443 ssl crt a.pem", " server a 192.0.2.1:443 ssl"),
        ),
    ),
    "D824": ("nginx", changed("nginx", ("server {", FIRST + "\nserver {"))),
    "D825": ("stunnel", on_61),
    "D826": ("nginx", changed("nginx", ("ECDHE+AESGCM", "PROFILE=SOME"))),
    "D827": ("openssl", changed("openssl")),
    "D828": ("nginx", changed("nginx", ("listen 443 ssl;", "listen 443 ssl; listen 443 quic;"))),
    "D829": ("stunnel", said("stunnel", "stunnel -options", STUNNEL.replace("3.6.3", "3.0.22"))),
    "D830": ("nginx", said("nginx", "nginx -V", NGINX_36, (SERVER, "http2 on;"))),
    "D831": (
        "haproxy",
        said(
            "haproxy",
            "haproxy -vv",
            HAPROXY.format("+").replace("3.4.7", "3.4.2"),
            ("global", "defaults\n option splice-auto\nglobal"),
            (" ssl-max-ver TLSv1.2", ""),
        ),
    ),
    "D832": ("nginx", changed("nginx", ("TLSv1.2;", "TLSv1.2 TLSv1.3;"))),
    "D833": ("nfs", changed("nfs")),
    "D834": ("nvme", changed("nvme")),
    "D835": ("nfs", said("nfs", "tlshd --version", "sh: not found")),
    "D836": ("nfs", on_72),
}
