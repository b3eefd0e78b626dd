"""doctor: every reason code comes from the condition that it names, and only from that."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from offload.card.profile import DIRECTIONS, load_all
from offload.doctor.examine import Diagnosis, Doctor
from offload.driver.kinds import kinds
from tests.unit.doctor.fake_doctor import (
    DEBIAN_CONFIG,
    FIXED,
    FULL_CONFIG,
    STAT,
    FakeHost,
    card,
    connected,
    feature,
)

TX, RX = "tls-hw-tx-offload", "tls-hw-rx-offload"
PROFILES = load_all()


def seen(host: FakeHost, *devs: str, directions: Any = DIRECTIONS) -> Diagnosis:
    return Doctor(host, directions, PROFILES).diagnose(devs)


def codes(found: Diagnosis) -> set[str]:
    return {f.code for f in (*found.findings, *(f for d in found.devices for f in d.findings))}


def vpd(part: str) -> bytes:
    """Vital product data as a card has it: a name, a read-only area with the part number, an end."""
    name, field = b"ConnectX-6 Dx", b"PN" + bytes([len(part)]) + part.encode()
    area = b"EC\x02A1" + field + b"RV\x01\x00"
    return (
        b"\x82"
        + len(name).to_bytes(2, "little")
        + name
        + b"\x90"
        + len(area).to_bytes(2, "little")
        + area
        + b"\x78"
    )


def release(text: str) -> Callable[[FakeHost], None]:
    def make(host: FakeHost) -> None:
        host.files[f"/boot/config-{text}"] = FULL_CONFIG.encode()
        host.release, host.version = text, "#1 SMP"

    return make


def fixed(config: str = FULL_CONFIG, **files: bytes) -> Callable[[FakeHost], None]:
    """A host whose card has fixed features, with this kernel configuration."""

    def make(host: FakeHost) -> None:
        host.fix()
        host.config(config)
        host.files.update({f"/sys/bus/pci/devices/0000:04:00.0/{name}": data for name, data in files.items()})

    return make


def answers(
    *argv: str, rc: int = 0, out: str = "", err: str = "", then: Any = None
) -> Callable[[FakeHost], None]:
    def make(host: FakeHost) -> None:
        if then:
            then(host)
        host.answers[argv] = (rc, out, err)

    return make


def switched(
    name: str, row: dict[str, bool], *more: Callable[[FakeHost], None]
) -> Callable[[FakeHost], None]:
    """A host whose card has this feature so."""

    def make(host: FakeHost) -> None:
        host.change(name, row)
        for also in more:
            also(host)

    return make


def linked(dev: str, **link: Any) -> Callable[[FakeHost], None]:
    """A host on which a virtual device of this kind stands."""

    def make(host: FakeHost) -> None:
        host.devices[dev] = card("", "", ":", **link)
        host.fix(dev)

    return make


def on_eth0(**link: Any) -> Callable[[FakeHost], None]:
    """A host whose card is shown so by ip."""
    return lambda host: host.devices["eth0"]["link"].update(link)


def only(driver: str, pci: str = ":", fix: bool = True, **link: Any) -> Callable[[FakeHost], None]:
    def make(host: FakeHost) -> None:
        host.devices = {"eth0": card(driver, "0000:04:00.0" if pci != ":" else "", pci, **link)}
        if fix:
            host.fix()

    return make


def bonded(mode: str, policy: str, ports: bool = True) -> Callable[[FakeHost], None]:
    def make(host: FakeHost) -> None:
        data = {"mode": mode, "xmit_hash_policy": policy}
        linked("bond0", linkinfo={"info_kind": "bond", "info_data": data})(host)
        host.devices["eth0"]["link"] = {"master": "bond0"} if ports else {}

    return make


def played(plays: str) -> Callable[[FakeHost], None]:
    """A host with the simulated card."""

    def make(host: FakeHost) -> None:
        host.devices = {"eth0": card("nicsim", "sim:0", ":")}
        host.fix()
        text = f"driver: nicsim\nfirmware-version: sim/{plays}\nbus-info: sim:0\n"
        host.answers["ethtool", "-i", "eth0"] = (0, text, "")

    return make


MODPROBE, CHECKSUM = ("modprobe", "--show-depends", "tls"), "tx-checksum-ip-generic"
BRIDGE, ASKS = {"info_kind": "bridge"}, "ssl_conf_command Options KTLS;"
NGINX = "/etc/nginx/sites-enabled/default"
NETEM = '[{"kind":"netem","handle":"1:","root":true,"options":{"delay":{"delay":0.01,"jitter":0}}}]'
STAT_SW = STAT.replace("TlsCurrTxSw                     \t0", "TlsCurrTxSw \t12")
IPSEC = "src ::/0 dst ::/0 \n\tdir out \n\ttmpl src :: dst ::\n\t\tproto esp reqid 7 mode transport\n"
ESWITCH = '{"dev":{"pci/0000:04:00.0":{"mode":"switchdev","inline-mode":"none"}}}'
NOT_FOUND = "modprobe: FATAL: Module tls not found in directory /lib/modules/6.1.0-56-amd64"


def cpu_of(driver: str, flags: str) -> Callable[[FakeHost], None]:
    """A processor with these flags, and a kernel with portable AES-GCM and this one."""

    def make(host: FakeHost) -> None:
        rows = [
            ("gcm_base(ctr(aes-generic),ghash-generic)", 100),
            (driver, 100 if "base" in driver else 400),
        ]
        blocks = [f"name         : gcm(aes)\ndriver       : {name}\npriority     : {n}\n" for name, n in rows]
        blocks += ["name         : __gcm(aes)\ndriver       : cryptd(x)\npriority     : 900\n"]
        host.files["/proc/crypto"] = "\n".join(blocks).encode()
        host.files["/proc/cpuinfo"] = f"processor\t: 0\nflags\t\t: fpu {flags} sse\n".encode()

    return make


# code: (how the condition is made, the device to ask about)
CASES: dict[str, tuple[Callable[[FakeHost], None], str]] = {
    "D101": (release("4.9.0-1-amd64"), "eth0"),
    "D102": (lambda h: (h.unload(), h.config("CONFIG_INET=y\n")), "eth0"),
    "D103": (fixed("CONFIG_TLS=m\nCONFIG_MLX5_EN_TLS=y\n"), "eth0"),
    "D104": (fixed(DEBIAN_CONFIG), "eth0"),
    "D105": (lambda h: (h.fix(), h.files.clear()), "eth0"),
    "D106": (FakeHost.unload, "eth0"),
    "D107": (answers("modprobe", rc=1, err=NOT_FOUND, then=lambda h: _no_modules(h)), "eth0"),
    "D108": (answers(*MODPROBE, out="install /bin/false \n", then=FakeHost.unload), "eth0"),
    "D109": (lambda h: None, "eth0"),
    "D110": (lambda h: h.trial(bits=32), "eth0"),
    "D111": (release("7.4.0-rc2"), "eth0"),
    "D112": (lambda h: (_no_modules(h), h.unload()), "eth0"),
    "D113": (cpu_of("gcm_base(ctr(aes-generic),ghash-generic)", "aes"), "eth0"),
    "D114": (cpu_of("generic-gcm-aesni", "aes vaes vpclmulqdq"), "eth0"),
    "D115": (lambda h: h.files.update({"/proc/sys/crypto/fips_enabled": b"1\n"}), "eth0"),
    "D201": (only("virtio_net"), ""),
    "D202": (linked("vlan5", link="eth0", linkinfo={"info_kind": "vlan"}), "vlan5"),
    "D203": (bonded("active-backup", "layer2"), "bond0"),
    "D204": (bonded("balance-xor", "layer3+4"), "bond0"),
    "D205": (only("virtio_net"), "eth0"),
    "D206": (only("mlx5_core", "15b3:2fff", fix=False), "eth0"),
    "D207": (fixed(vpd=vpd("MCX623106AN-CDAT")), "eth0"),
    "D208": (fixed(vpd=vpd("MCX623106AC-CDAT")), "eth0"),
    "D209": (answers("readlink", out="../0000:04:00.0\n", then=fixed()), "eth0"),
    "D210": (answers("devlink", out=ESWITCH, then=fixed()), "eth0"),
    "D211": (only("cxgb4", "1425:6407", fix=False), "eth0"),
    "D212": (played("plain"), "eth0"),
    "D213": (answers("test", "-d", rc=1, then=only("cxgb4", "1425:6407", fix=False)), "eth0"),
    "D214": (lambda h: firmware(h, "a build of my own"), "eth0"),
    "D215": (lambda h: h.devices["eth0"]["features"].pop(TX), "eth0"),
    "D216": (bonded("802.3ad", "layer3+4", ports=False), "bond0"),
    "D217": (lambda h: (bonded("balance-xor", "layer3+4")(h), _veth_port(h)), "bond0"),
    "D218": (lambda h: firmware(h, "22.31.1014 (MT_0000000359)"), "eth0"),
    "D219": (only("mlx5_core", "15b3:101f", fix=False), "eth0"),
    "D220": (only("nfp", "19ee:4000", fix=False), "eth0"),
    "D301": (switched(RX, feature(False)), "eth0"),
    "D302": (switched(CHECKSUM, feature(False), switched(TX, feature(False, requested=True))), "eth0"),
    "D303": (on_eth0(flags=[]), "eth0"),
    "D304": (switched("tx-tcp-segmentation", feature(False)), "eth0"),
    "D305": (switched("large-receive-offload", feature(True)), "eth0"),
    "D401": (answers("tc", "-j", "qdisc", out=NETEM), "eth0"),
    "D402": (linked("vlan5", link="eth0", linkinfo={"info_kind": "vlan"}), "eth0"),
    "D403": (on_eth0(xdp={"mode": 1, "prog": {"id": 7}}), "eth0"),
    "D404": (lambda h: (linked("br0", linkinfo=BRIDGE)(h), on_eth0(master="br0")(h)), "eth0"),
    "D405": (lambda h: h.answers.pop(("tc", "-j", "qdisc")), "eth0"),
    "D406": (answers("ip", "xfrm", out=IPSEC), "eth0"),
    "D407": (answers("ip", "xfrm", rc=1, err="RTNETLINK answers: Operation not permitted\n"), "eth0"),
    "D501": (lambda h: h.trial(openssl={"asked": {"tx": False}, "plain": {}}), "eth0"),
    "D502": (lambda h: None, "eth0"),
    "D503": (lambda h: h.trial(openssl={"error": "SSLError: no ciphers available"}), "eth0"),
    "D504": (lambda h: h.trial(library="OpenSSL 3.6.2"), "eth0"),
    "D601": (lambda h: h.configured("nginx", f"{NGINX}:3:    listen 443 ssl;"), "eth0"),
    "D602": (lambda h: h.configured("nginx", f"{NGINX}:3: listen 443 ssl;", f"{NGINX}:4: {ASKS}"), "eth0"),
    "D603": (lambda h: h.configured("stunnel4", "/etc/stunnel/a.conf:2:connect = 8443"), "eth0"),
    "D604": (lambda h: h.configured("haproxy", "/etc/haproxy/a.cfg:9:\tbind :443 ssl crt a.pem"), "eth0"),
    "D701": (answers("cat", "/proc/net/tls_stat", out=STAT_SW), "eth0"),
    "D702": (lambda h: connected(h, given=3), "eth0"),
}


def firmware(host: FakeHost, version: str) -> None:
    """The card runs this firmware."""
    text = f"driver: mlx5_core\nfirmware-version: {version}\nbus-info: 0000:04:00.0\n"
    host.answers["ethtool", "-i", "eth0"] = (0, text, "")


def _veth_port(host: FakeHost) -> None:
    """A port of the bond that is no card."""
    host.devices["veth9"] = card("veth", "", ":", master="bond0", linkinfo={"info_kind": "veth"})
    host.fix("veth9")


def _no_modules(host: FakeHost) -> None:
    """No modprobe that knows anything, and no tls."""
    host.unload()
    del host.answers["modprobe", "--show-depends", "tls"]


@pytest.mark.parametrize("code", CASES)
def test_a_condition_gives_its_code(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each condition is found, and a host without it does not have the code."""
    make, dev = CASES[code]
    if code == "D207":
        monkeypatch.setattr("tests.unit.doctor.test_doctor.PROFILES", _with_part("MCX623106AN-*"))
    host = FakeHost()
    make(host)
    found = seen(host, *[dev] if dev else [])
    assert code in codes(found)
    hits = [f for f in (*found.findings, *(f for d in found.devices for f in d.findings)) if f.code == code]
    assert all(f.what and f.evidence and f.consequence and f.remedy for f in hits)
    assert not any("{" in f.what + f.consequence + f.remedy for f in hits), "a name was not filled in"
    always = {"D109", "D502", "D504"}  # the recorded host runs 6.1 and OpenSSL 3.0, which waits to be asked
    assert codes(seen(FakeHost(), "eth0")) == always, "a healthy host is healthy"


def _with_part(pattern: str) -> tuple[Any, ...]:
    """The profiles, with one part without crypto in the ConnectX-6 Dx's."""
    from dataclasses import replace

    from offload.card.profile_model import Part

    def one(profile: Any) -> Any:
        if profile.id != "connectx-6-dx":
            return profile
        return replace(
            profile, sku=replace(profile.sku, parts=(*profile.sku.parts, Part(pattern, False, "no")))
        )

    return tuple(one(p) for p in PROFILES)


STATES = {
    "ready": "D109 D204 D211 D402 D501 D602 D701",
    "off": "D106 D108 D203 D213 D301 D302 D303 D401",
    "never": "D102 D103 D104 D202 D205 D208 D404",
    "unknown": "D105 D112",
}


@pytest.mark.parametrize(
    ("code", "state"), [(code, state) for state, codes in STATES.items() for code in codes.split()]
)
def test_state_of_the_device(code: str, state: str) -> None:
    """A reason makes the state, and the exit code, that its level says."""
    make, dev = CASES[code]
    host = FakeHost()
    make(host)
    assert seen(host, dev).state() == state


def test_only_the_first_sure_reason_of_a_fixed_feature() -> None:
    """A kernel without the driver's option is the reason, and the card is not blamed."""
    host = FakeHost()
    fixed(DEBIAN_CONFIG, vpd=vpd("MCX623106AN-CDAT"))(host)
    found = codes(seen(host, "eth0"))
    assert "D104" in found and not found & {"D103", "D105", "D207", "D208"}
    assert not [words for words in host.asked if words[0] in ("devlink", "readlink")], "asked for nothing"


@pytest.mark.parametrize(
    ("driver", "pci", "kind"), [("mlx5_core", "15b3:101d", "mlx5"), ("cxgb4", "1425:6407", "ch_ktls")]
)
def test_debians_kernel_gets_a_command_that_builds(driver: str, pci: str, kind: str) -> None:
    """The remedy for a driver that Debian built without TLS is a command that is one."""
    host = FakeHost()
    only(driver, pci)(host)
    host.config(DEBIAN_CONFIG)
    notes = [f for f in seen(host, "eth0").devices[0].findings if f.code == "D104"]
    words = shlex.split(notes[0].remedy, comments=True)
    assert words == ["ktls-offload", "driver", "build", kind] and kind in kinds()
    assert kinds()[kind].option in notes[0].what, "another option than the one that is missing"


def test_symbols_speak_where_no_configuration_does() -> None:
    """Without a configuration file the kernel's own symbols show that the options are set."""
    host = FakeHost()
    host.fix()
    host.files.clear()
    host.answers["grep", "-m1"] = (0, "1\n", "")
    found = codes(seen(host, "eth0"))
    assert "D208" in found and "D105" not in found


def test_tx_only() -> None:
    """`--tx` makes a card whose receive is off a ready one."""
    host = FakeHost()
    host.change(RX, feature(False))
    assert seen(host, "eth0").state() == "off"
    found = seen(host, "eth0", directions=("tx",))
    assert found.state() == "ready" and list(found.devices[0].states) == ["tx"]
    assert {cell.cell.direction for cell in found.devices[0].cells} == {"tx"}


def table(found: Diagnosis) -> dict[str, str]:
    """The truth table of the first device as `tx 1.2 aes-gcm-128` -> who."""
    return {" ".join(c.cell): c.who for c in found.devices[0].cells}


def test_truth_table() -> None:
    """Each cell says hw, sw, none or unknown, by card, switch, kernel and trial."""
    host = FakeHost()
    host.change(RX, feature(False))
    cells = {"1.3 chacha20-poly1305": {"ulp": 0, "tx": 22, "rx": 22}, "1.3 aes-gcm-256": {}}
    host.trial(cells={**json.loads(host.answers["unshare", "--net"][1])["cells"], **cells})
    found = table(seen(host, "eth0"))
    assert found["tx 1.2 aes-gcm-128"] == found["tx 1.2 aes-gcm-256"] == "hw"
    assert (
        found["rx 1.2 aes-gcm-128"]
        == found["tx 1.3 aes-gcm-128"]
        == found["tx 1.2 chacha20-poly1305"]
        == "sw"
    )
    assert found["tx 1.3 chacha20-poly1305"] == "none" and found["tx 1.3 aes-gcm-256"] == "?"
    host.unload()
    assert set(table(seen(host, "eth0")).values()) == {"none"}


def test_a_fixed_feature_is_never_on() -> None:
    host = FakeHost()
    host.change(TX, {**FIXED, "active": True})
    assert seen(host, "eth0").devices[0].states["tx"] == ("ready", "")


def test_comments_and_other_servers_say_nothing() -> None:
    """A line that is commented out, or of a server that is not installed, does not count."""
    host = FakeHost()
    asks = f"{NGINX}:4: # {ASKS}"
    host.configured("nginx", f"{NGINX}:3: listen 443 ssl;", asks, "/etc/haproxy/a.cfg:9: bind :443 ssl")
    assert codes(seen(host, "eth0")) & {"D601", "D602", "D604"} == {"D601"}
    host.configured("haproxy", "/etc/haproxy/a.cfg:9: bind :443 ssl", "/etc/haproxy/a.cfg:10: # ktls on")
    assert "D604" in codes(seen(host, "eth0"))
    host.configured("nginx", f"{NGINX}:3: # listen 443 ssl;")
    assert "D601" not in codes(seen(host, "eth0"))


def test_what_nobody_asked_for_is_switched_off_first() -> None:
    """A feature that nobody wants is off for that, and not for the checksum."""
    host = FakeHost()
    host.change(CHECKSUM, feature(False))
    host.change(TX, feature(False))
    assert seen(host, "eth0").devices[0].states["tx"] == ("off", "D301")
