"""A lab file is read or refused by file, line and key, and fits what upstream has instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.errors import ConfigError, RigError
from offload.suite.bench.lab import inventory
from offload.suite.bench.lab.cables import pairs
from offload.suite.bench.lab.discover import place
from offload.suite.bench.lab.file import load
from offload.suite.bench.lab.netconfig import from_environment, from_file
from offload.suite.bench.lab.render import as_lab, export

ROOT = Path(__file__).parents[5]
# a key of nobody: type, length and 32 bytes as RFC 8709 has them
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
GOOD = f"""\
targets:
  dut:
    features: [tls-tx, tls-rx]
    resources:
      NetworkService: {{address: dut1.lab, username: root}}
      OffloadHost:
        hostkeys:
          - {KEY} root@dut1
      OffloadNic: {{ifname: ens1f0np0, pci: "0000:3b:00.0", profile: connectx-6-dx, v4: 192.0.2.1/24,
        v6: "fd00:2::1"}}
    drivers:
      - SSHDriver: {{name: sh, keyfile: keys/lab}}
      - OffloadNicDriver: {{name: nic}}
  peer:
    resources:
      NetworkService: {{address: peer1.lab}}
      OffloadHost: {{hostkeys: ["{KEY}"]}}
      OffloadNic: {{ifname: ens1f0np0, v4: 192.0.2.2, v6: "fd00:2::2"}}
"""
NET_CONFIG = """\
# as upstream has it
NETIF=ens1f0np0
LOCAL_V4=192.0.2.1
LOCAL_V6=fd00:2::1
REMOTE_V4=192.0.2.2   # the peer
REMOTE_V6=fd00:2::2
REMOTE_TYPE=ssh
REMOTE_ARGS=root@peer1.lab
"""


def written(tmp_path: Path, text: str, name: str = "lab.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_good_file(tmp_path: Path) -> None:
    """A lab file in labgrid's form gives logins, keys, ports and bare addresses."""
    lab = load(written(tmp_path, GOOD))
    assert lab.dut.login and lab.dut.port and lab.peer.login and lab.wire is None
    assert (lab.dut.login.address, lab.dut.login.hostkeys) == ("dut1.lab", (KEY,))
    assert lab.dut.login.keyfile == str(tmp_path / "keys/lab") and lab.peer.login.keyfile == ""
    assert (lab.dut.port.v4, lab.dut.port.v6, lab.dut.port.profile) == (
        "192.0.2.1",
        "fd00:2::1",
        "connectx-6-dx",
    )
    assert load(written(tmp_path, as_lab(lab), "again.yaml")).dut.port == lab.dut.port


def test_the_file_of_a_profile(tmp_path: Path) -> None:
    """A lab file may name a draft of `probe`, from where it lies; a wrong one is told."""
    draft = (ROOT / "nic-profiles/nicsim.yaml").read_text().replace("id: nicsim", "id: my-card")
    (file := tmp_path / "my-card.yaml").write_text(draft)
    text = GOOD.replace("connectx-6-dx", "my-card.yaml")
    port = load(written(tmp_path, text)).dut.port
    assert port and port.profile == str(file)
    file.write_text(draft.replace("driver: nicsim", "driver: [x]"))
    with pytest.raises(ConfigError, match=r"OffloadNic.profile: .*my-card.yaml:\d+: driver"):
        load(written(tmp_path, text))
    with pytest.raises(ConfigError, match=r"lab.yaml:9: .*OffloadNic.profile: .*none.yaml"):
        load(written(tmp_path, text.replace("my-card", "none")))


def test_the_example() -> None:
    """The lab file that people copy is good."""
    lab = load(ROOT / "ci/lab.yaml")
    assert lab.dut.port and lab.wire and lab.wire.wire == ("eno1", "eno2")


WRONG = [
    ("targets:", "target:", "lab.yaml:1: unknown key 'target' (did you mean targets?)"),
    ("  peer:", "  other:", "lab.yaml:14: targets: unknown target 'other'"),
    ("username: root", "user: root", "lab.yaml:5: targets.dut.resources.NetworkService: unknown key 'user'"),
    ("dut1.lab, username", "-oProxyCommand=x, username", "address: '-oProxyCommand=x', wanted a host name"),
    (
        "username: root",
        "password: geheim",
        "lab.yaml:5: targets.dut.resources.NetworkService.password: passwords",
    ),
    ("username: root", "port: 70000", "lab.yaml:5: targets.dut.resources.NetworkService.port: 70000, wanted"),
    (KEY + " root@dut1", "SHA256:abc", "lab.yaml:8: targets.dut.resources.OffloadHost.hostkeys[0]: 'SHA256"),
    (KEY + " root@dut1", KEY[:-3], "the key is not base64: was it cut off?"),
    (KEY + " root@dut1", KEY.replace("ssh-ed25519", "ssh-rsa"), "the base64 is not of type ssh-rsa"),
    (f'["{KEY}"]', f'"{KEY},"', "lab.yaml:17: targets.peer.resources.OffloadHost.hostkeys[1]: '', wanted"),
    (f'OffloadHost: {{hostkeys: ["{KEY}"]}}', "OffloadHost: {}", "no host key: OffloadHost wants hostkeys"),
    (
        "192.0.2.1/24",
        "192.0.2.300",
        "lab.yaml:9: targets.dut.resources.OffloadNic.v4: '192.0.2.300', wanted an IPv4",
    ),
    (
        '"fd00:2::2"',
        "192.0.2.3",
        "lab.yaml:18: targets.peer.resources.OffloadNic.v6: '192.0.2.3', wanted an IPv6",
    ),
    ("connectx-6-dx", "conectx-6-dx", "no profile 'conectx-6-dx' (did you mean connectx-6-dx?)"),
    (
        "ens1f0np0, pci",
        "a/b, pci",
        "lab.yaml:9: targets.dut.resources.OffloadNic.ifname: 'a/b', wanted an interface",
    ),
    ("0000:3b:00.0", "3b:00.0", "pci: '3b:00.0', wanted a PCI address"),
    (
        "keys/lab",
        "~nobody-of-us/x",
        "lab.yaml:12: targets.dut.drivers[0].SSHDriver.keyfile: ~nobody-of-us/x: there",
    ),
    (
        "profile: connectx-6-dx",
        "profile: ~nobody-of-us/x.yaml",
        "OffloadNic.profile: ~nobody-of-us/x.yaml: there",
    ),
    (", v4: 192.0.2.2", "", "lab.yaml:18: targets.peer.resources.OffloadNic: key v4 is missing"),
]


@pytest.mark.parametrize(("old", "new", "words"), WRONG, ids=[w[2][-28:] for w in WRONG])
def test_a_wrong_file(tmp_path: Path, old: str, new: str, words: str) -> None:
    """What is wrong is named by file, line and key, with the text as given."""
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, GOOD.replace(old, new, 1)))
    assert words in str(caught.value), str(caught.value)
    assert all(line.startswith(str(tmp_path)) for line in str(caught.value).splitlines())


def test_no_file_at_all(tmp_path: Path) -> None:
    """An empty, missing or odd file is called a lab file, and refused."""
    for text, words in (
        ("", "wanted a lab file"),
        ("a: &x 1\nb: *x\n", "anchors and aliases"),
        ("- 1\n", "wanted a mapping"),
    ):
        with pytest.raises(ConfigError, match=words):
            load(written(tmp_path, text))
    with pytest.raises(ConfigError, match="cannot read"):
        load(tmp_path / "none.yaml")


def test_upstreams_words(tmp_path: Path) -> None:
    """A lab file becomes the net.config that upstream reads: bare values, peer by ssh."""
    lab = load(written(tmp_path, GOOD))
    want = dict(line.split("#")[0].strip().split("=") for line in NET_CONFIG.splitlines()[1:])
    assert dict(line.split("=") for line in export(lab, "net.config").splitlines()) == want
    assert "export REMOTE_ARGS=root@peer1.lab\n" in export(lab, "env")
    with pytest.raises(ConfigError, match="NetworkService.port: 2222"):
        export(
            load(written(tmp_path, GOOD.replace("address: peer1.lab", "address: peer1.lab, port: 2222"))),
            "env",
        )


def test_net_config_is_read(tmp_path: Path) -> None:
    """A net.config is a bench whose DUT is this machine; a peer by ssh wants its host key."""
    path = written(tmp_path, NET_CONFIG, "net.config")
    with pytest.raises(ConfigError, match="REMOTE_HOSTKEY: '', wanted the peer's public host key"):
        from_file(path)
    lab = from_file(
        written(
            tmp_path, f"{NET_CONFIG}REMOTE_HOSTKEY={KEY} x\nOFFLOAD_PROFILE=connectx-6-dx\n", "net.config"
        )
    )
    assert lab.dut.login is None and lab.peer.login and lab.peer.login.hostkeys == (KEY,)
    assert (
        lab.peer.port
        and lab.peer.port.ifname == ""
        and lab.dut.port
        and lab.dut.port.profile == "connectx-6-dx"
    )
    lab = from_environment(
        dict(line.split("=") for line in export(lab, "net.config").splitlines())
        | {"REMOTE_TYPE": "netns", "REMOTE_ARGS": "peer"}
    )
    assert lab.peer.netns == "peer" and "REMOTE_TYPE=netns\nREMOTE_ARGS=peer" in export(lab, "net.config")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("LOCAL_V6=fd00:2::1\n", "", "net.config: LOCAL_V6 missing"),
        ("192.0.2.1", "fd00::1", "net.config:3: LOCAL_V4: 'fd00::1', wanted an IPv4 address"),
        ("REMOTE_TYPE=ssh", "REMOTE_TYPE=telnet", "net.config:7: REMOTE_TYPE: 'telnet', wanted ssh or netns"),
        ("REMOTE_ARGS=root@peer1.lab", "REMOTE_ARGS=-oProxyCommand=x", "net.config:8: REMOTE_ARGS: '-oProxy"),
        ("NETIF=ens1f0np0", "NETIF", "net.config:2: 'NETIF', wanted NAME=VALUE"),
        ("NETIF=", "NETIF = ", "net.config:2: unknown name 'NETIF ' (did you mean NETIF?)"),
        ("NETIF=", "export NETIF=", "net.config:2: unknown name 'export NETIF' (did you mean NETIF?)"),
        ("LOCAL_V6=", "LOCALV6=", "net.config:4: unknown name 'LOCALV6' (did you mean LOCAL_V6?)"),
        ("NETIF=", "OFFLOAD_PROFILE=x\nNETIF=", "net.config:2: OFFLOAD_PROFILE: no profile 'x'"),
    ],
)
def test_a_wrong_net_config(tmp_path: Path, old: str, new: str, words: str) -> None:
    """A line of net.config that makes no sense is named."""
    with pytest.raises(ConfigError) as caught:
        from_file(written(tmp_path, NET_CONFIG.replace(old, new, 1), "net.config"))
    assert words in str(caught.value)


INI = """\
gateway.lab
[dut]
box1 ansible_host=192.0.2.11 ansible_port=2222 offload_ifname=ens1f0np0 offload_v4=192.0.2.1
[peer]
box2 offload_ifname=ens2f0 offload_v4=192.0.2.2 offload_v6=fd00:2::2  # the other
[bench:children]
dut
peer
[all:vars]
ansible_user=tester
ansible_become=yes
[dut:vars]
offload_profile=connectx-6-dx
offload_v6=fd00:2::1
"""
YAML = """\
all:
  vars: {ansible_user: tester, ansible_become: true}
  children:
    dut:
      vars: {offload_profile: connectx-6-dx}
      hosts:
        box1: {ansible_host: 192.0.2.11, ansible_port: 2222, offload_ifname: ens1f0np0,
               offload_v4: 192.0.2.1, offload_v6: "fd00:2::1"}
    peer:
      hosts:
        box2: {offload_ifname: ens2f0, offload_v4: 192.0.2.2, offload_v6: "fd00:2::2"}
"""


SHORT = INI.replace("box1 ansible_host=192.0.2.11 ansible_port=2222", "box1:2222 ansible_host=192.0.2.11")


@pytest.mark.parametrize(("name", "text"), [("hosts", INI), ("short", SHORT), ("hosts.yaml", YAML)])
def test_an_inventory(tmp_path: Path, name: str, text: str) -> None:
    """An Ansible inventory gives the same bench in either of its forms."""
    found = inventory.read(written(tmp_path, text, name))
    dut, peer = found["dut"], found["peer"]
    assert dut.login and dut.port and peer.login and peer.port and set(found) == {"dut", "peer"}
    assert (dut.login.address, dut.login.port, dut.login.user, dut.login.sudo) == (
        "192.0.2.11",
        2222,
        "tester",
        True,
    )
    assert (dut.port.ifname, dut.port.profile, peer.login.address, peer.port.v6) == (
        "ens1f0np0",
        "connectx-6-dx",
        "box2",
        "fd00:2::2",
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[peer]", "[pear]", "no host in group peer"),
        ("[peer]", "[peer", "hosts:4: '[peer': wanted [GROUP], [GROUP:vars] or [GROUP:children]"),
        ("ansible_port=2222", "ansible_port=99999", "box1: ansible_port: 99999, wanted a TCP port, 1 to"),
        ("ansible_port=2222", "ansible_port=0", "box1: ansible_port: 0, wanted a TCP port, 1 to 65535"),
        ("=ens1f0np0", "=a/b", "box1: offload_ifname: 'a/b', wanted an interface"),
        ("=192.0.2.1\n", "=fd00::1\n", "box1: offload_v4: 'fd00::1', wanted an IPv4 address"),
        ("=connectx-6-dx", "=Connect X", "box1: offload_profile: 'Connect X', wanted a profile's id"),
        ("offload_v6=fd00:2::1", "offload_netns=../x", "offload_netns: '../x', wanted the name of a network"),
        (
            "box2 offload",
            "box2 offload_v4=x\nbox3 offload",
            "group peer has 2 hosts (box2, box3), wanted one",
        ),
        ("box2 offload", "box2:ssh offload", "box2: ansible_port: 'ssh', wanted a TCP port"),
        ("box2 offload", "fd00::9 ansible_port=0 offload", "fd00::9: ansible_port: 0, wanted a TCP port"),
        ("ansible_port=2222", "ansible_port=x", "box1: ansible_port: 'x', wanted a TCP port"),
        ("ansible_become=yes", "ansible_become_pass=geheim", "passwords are not accepted"),
        ("box1 ansible", "box[1:9] ansible", "hosts:3: 'box[1:9]"),
        (
            "ansible_host=192.0.2.11",
            "ansible_host=-oProxyCommand=x",
            "'-oProxyCommand=x', wanted a host name",
        ),
    ],
)
def test_a_wrong_inventory(tmp_path: Path, old: str, new: str, words: str) -> None:
    """An inventory that describes no bench, or holds a password, is refused."""
    with pytest.raises(ConfigError) as caught:
        inventory.read(written(tmp_path, INI.replace(old, new, 1), "hosts"))
    assert words in str(caught.value) and "geheim" not in str(caught.value)


def test_an_inventory_that_grows(tmp_path: Path) -> None:
    """Aliases that make ten million groups of one are refused, not walked."""
    lines = ["a: &a {hosts: {h: }}"]
    for above, name in zip("abcdefg", "bcdefgh", strict=True):
        lines += [f"{name}: &{name} {{children: {{{', '.join(f'{name}{n}: *{above}' for n in range(10))}}}}}"]
    with pytest.raises(ConfigError, match="more than 1000 groups"):
        inventory.read(written(tmp_path, "\n".join(lines), "hosts.yaml"))


def test_places() -> None:
    """A host is named as ssh does, with a port and a namespace if need be."""
    target = place("dut", "tester@10.0.0.7:2222/left")
    assert target.login and (target.login.user, target.login.address, target.login.port) == (
        "tester",
        "10.0.0.7",
        2222,
    )
    assert (
        target.netns == "left" and place("dut", "here").login is None and place("dut", "here/x").netns == "x"
    )
    for bad in ("", "-oProxyCommand=x", "a b", "host:0", "host:99999", "root@", "host/../x"):
        with pytest.raises(ConfigError):
            place("dut", bad)


def test_pairs_of_ports() -> None:
    """Only ports that hear each other alone are a cable."""
    assert pairs({"a": {"x"}, "b": {"y"}}) == [("a", "x"), ("b", "y")]
    assert pairs({"a": {"x"}, "b": {"y", "z"}, "c": {"y", "z"}}) == [("a", "x")]
    with pytest.raises(RigError, match="no port of the peer receives"):
        pairs({})
    with pytest.raises(RigError, match="a is received by x, y"):
        pairs({"a": {"x", "y"}})
