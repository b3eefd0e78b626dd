"""The Debian packages: what they need, what is in them; the host tool runs with only Python and PyYAML."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from offload import __version__
from offload.cli.main import VERBS

ROOT = Path(__file__).parents[2]
NAME = f"ktls-offload_{__version__}_all.deb"
SUITE = f"ktls-offload-suite_{__version__}_all.deb"
OF_SUITE = [verb.name for verb in VERBS if verb.module.startswith("suite.")]
GROUND = [verb.name for verb in VERBS if verb.name not in (*OF_SUITE, "driver")]
# A throw-away copy of this machine's files: what dpkg does in it is gone with the namespace.
INSTALL = """\
mount -t tmpfs tmpfs "$1" && mkdir "$1/up" "$1/aside" "$1/tree"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/aside" "$1/tree" || exit 99
cp "$2" "$1/tree/package.deb" && cd /
exec chroot "$1/tree" /bin/sh -ec '
  dpkg --force-unsafe-io --force-depends --no-triggers -i /package.deb
  ktls-offload --version
  mkdir -p /var/lib/ktls-offload /etc/network/if-up.d && echo x >/var/lib/ktls-offload/journal.json
  echo "# written by ktls-offload: x" >/etc/network/if-up.d/ktls-offload-eth9
  echo "# by hand" >/etc/network/if-up.d/ktls-offload-mine
  wants=/etc/systemd/system/sys-subsystem-net-devices-eth9.device.wants
  mkdir -p $wants /usr/src/ktls-offload-mlx5-6.1.2-1 /usr/src/ktls-offload-mine
  cat >/usr/src/ktls-offload-mlx5-6.1.2-1/dkms.conf <<EOF
# written by ktls-offload: source of a driver
PACKAGE_NAME="ktls-offload-mlx5"
PACKAGE_VERSION="6.1.2-1"
EOF
  echo "\\"dkms\\": \\"ktls-offload-mlx5/6.1.2-1\\"" >/var/lib/ktls-offload/driver-mlx5@9.8.json
  mkdir -p /lib/modules/9.9/updates/ktls-offload /lib/modules/9.8/updates && touch /boot/initrd.img-9.9
  touch /lib/modules/9.9/updates/ktls-offload/mlx5_core.ko /lib/modules/9.8/updates/mine.ko
  for program in dkms depmod update-initramfs; do
    rm -f /usr/sbin/$program
    cat >/usr/sbin/$program <<EOF
#!/bin/sh
echo $program "\\$@" >>/asked
exit 1
EOF
    chmod +x /usr/sbin/$program
  done
  echo "# written by ktls-offload: x" >/etc/systemd/system/ktls-offload-eth9.service
  ln -s /etc/systemd/system/ktls-offload-eth9.service $wants/
  ls /usr/share/ktls-offload/offload/cli/__pycache__ | grep -c main.cpython
  dpkg --force-unsafe-io --no-triggers --purge ktls-offload
  test -e /etc/network/if-up.d/ktls-offload-mine
  test -e /usr/src/ktls-offload-mine && test -e /lib/modules/9.8/updates/mine.ko
  for path in /var/lib/ktls-offload /etc/network/if-up.d/ktls-offload-eth9 $wants /usr/bin/ktls-offload \
    /etc/systemd/system/ktls-offload-eth9.service /usr/share/ktls-offload /lib/modules/9.9/updates \
    /usr/src/ktls-offload-mlx5-6.1.2-1; do
    if [ -e $path ]; then echo "$path is left"; exit 1; fi
  done
  cat /asked
  echo gone'
"""
# what purge asks of the system, so that the next boot loads Debian's driver
ASKED = """\
depmod 9.9
update-initramfs -u -k 9.9
dkms remove ktls-offload-mlx5/6.1.2-1 --all
depmod 9.8
gone
"""


def build(tree: Path, folder: Path) -> Path:
    """The package of a copy of the project, made into a folder."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    subprocess.run([tree / "packaging/build-deb", folder], check=True, capture_output=True, env=env)
    return folder / NAME


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the package is made of, as they are now: whoever edits meanwhile does not disturb."""
    found = tmp_path_factory.mktemp("tree")
    leave = shutil.ignore_patterns("__pycache__", "core")
    for name in ("offload", "nic-profiles", "docs", "packaging"):
        shutil.copytree(ROOT / name, found / name, ignore=leave)
    for name in ("README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, found)
    return found


@pytest.fixture(scope="module")
def package(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built once."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is not installed: not a Debian system")
    return build(tree, tmp_path_factory.mktemp("deb"))


@pytest.fixture(scope="module")
def unpacked(package: Path) -> Path:
    """Its files in a bare folder."""
    root = package.parent / "root"
    subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    return root


@pytest.fixture(scope="module")
def both(package: Path) -> Path:
    """The files of both packages in a bare folder."""
    root = package.parent / "both"
    for name in (NAME, SUITE):
        subprocess.run(["dpkg-deb", "-x", package.parent / name, root], check=True)
    return root


@pytest.fixture(scope="module")
def only(package: Path) -> Path:
    """A folder with PyYAML and nothing else."""
    folder = package.parent / "only"
    folder.mkdir()
    (folder / "yaml").symlink_to(Path(yaml.__file__).parent)
    return folder


def field(package: Path, name: str) -> str:
    """A field of the control file."""
    argv = ["dpkg-deb", "-f", package, name]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def call(root: Path, only: Path, *argv: str, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The unpacked command: no site packages, no user's ones, only Python's own library and PyYAML."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(only), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(cache)} if cache else {}
    command = ["/usr/bin/python3", "-S", root / "usr/bin/ktls-offload", *argv]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd="/")


def test_it_needs_python_and_yaml_only(package: Path) -> None:
    """The package depends on python3 and python3-yaml; the programs it asks are recommended."""
    assert field(package, "Depends") == "python3 (>= 3.9), python3-yaml"
    assert field(package, "Recommends") == "ethtool, iproute2, kmod"
    assert (field(package, "Version"), field(package, "Architecture")) == (__version__, "all")


def test_the_suite_is_installed_alongside(package: Path, unpacked: Path) -> None:
    """The suite is a package of its own: the host tool has none of its files, and needs none."""
    suite = package.parent / SUITE
    assert field(suite, "Depends") == f"ktls-offload (= {__version__}), python3 (>= 3.11), python3-yaml"
    listed = subprocess.run(["dpkg-deb", "-c", suite], check=True, capture_output=True, text=True).stdout
    places = {line.split()[-1] for line in listed.splitlines() if not line.endswith("/")}
    ours, said = "./usr/share/ktls-offload/offload/suite/", "./usr/share/doc/ktls-offload-suite/"
    assert f"{ours}certify/verbs.py" in places and all(p.startswith((ours, said)) for p in places)
    assert not (unpacked / "usr/share/ktls-offload/offload/suite").exists()


@pytest.mark.parametrize("verb", OF_SUITE)
def test_what_the_suite_brings_is_not_offered(unpacked: Path, only: Path, verb: str) -> None:
    """Without its package a verb of the suite is not in --help, and says what to install when it is typed."""
    assert f"\n    {verb} " not in call(unpacked, only, "--help").stdout
    done = call(unpacked, only, verb)
    wanted = "in a checkout: make" + (" deb" if verb not in ("certify", "measure") else "")
    assert done.returncode == 2 and f"hint: {wanted}" in done.stderr, done.stderr


def test_everything_is_in_it(unpacked: Path) -> None:
    """Command, profiles, man page, completions and documentation are in the package."""
    share = unpacked / "usr/share"
    for place in (
        "man/man1/ktls-offload.1.gz",
        "bash-completion/completions/ktls-offload",
        "zsh/vendor-completions/_ktls-offload",
        "fish/vendor_completions.d/ktls-offload.fish",
        "doc/ktls-offload/copyright",
        "doc/ktls-offload/changelog.gz",
        "doc/ktls-offload/docs/reference/reasons.md",
        "doc/ktls-offload/docs/assets/report-certified-light.png",
    ):
        assert (share / place).stat().st_size > 100, place
    ours = {p.name for p in (ROOT / "nic-profiles").glob("*.yaml")}
    assert {p.name for p in (share / "ktls-offload/nic-profiles").iterdir()} == {*ours, "README.md"}
    kinds = {p.suffix for p in (share / "ktls-offload").rglob("*") if p.is_file()}
    assert kinds <= {".py", ".yaml", ".toml", ".json", ".html", ".css", ".sh", ".md"}, "only what runs"


@pytest.mark.parametrize("verb", GROUND)
def test_the_ground_floor_runs_bare(unpacked: Path, only: Path, verb: str) -> None:
    """Each operator's verb opens with Python's library and PyYAML alone."""
    done = call(unpacked, only, verb, "--help")
    assert done.returncode == 0 and f"usage: ktls-offload {verb}" in done.stdout, done.stderr


def test_it_works_bare(unpacked: Path, only: Path) -> None:
    """`status` answers from the unpacked package, and its profiles are found."""
    done = call(unpacked, only, "status", "--json")
    assert done.returncode == 0 and '"schema": 1' in done.stdout, done.stderr
    done = call(unpacked, only, "completion", "bash")
    profiles = {path.stem for path in (ROOT / "nic-profiles").glob("*.yaml")}
    assert done.returncode == 0 and profiles <= set(re.findall(r"[\w-]+", done.stdout)), done.stderr


@pytest.mark.parametrize("verb", [v.name for v in VERBS if v.name not in GROUND])
def test_the_rest_says_what_it_needs(both: Path, only: Path, verb: str) -> None:
    """A verb that needs more opens too, or names it; never a traceback."""
    done = call(both, only, verb, "--help")
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("suite", [True, False])
@pytest.mark.parametrize(
    "words",
    [
        "certify",
        "certify --lab x.yaml",
        "lab up",
        "lab fetch",
        "lab traffic",
        "measure",
        "measure --cost",
        "wire capture lo --output x.pcap",
    ],
)
def test_what_needs_a_checkout_says_so(
    both: Path, unpacked: Path, only: Path, words: str, suite: bool, tmp_path: Path
) -> None:
    """A verb that no package can do names the line to type, and downloads nothing."""
    done = call(both if suite else unpacked, only, *words.split(), cache=tmp_path)
    assert (
        done.returncode == 2
        and "needs a source checkout" in done.stderr
        and "hint: in a checkout: make" in done.stderr
    )
    assert not list(tmp_path.iterdir()) and not done.stdout


def test_a_missing_library_is_named_by_its_package(both: Path, only: Path, tmp_path: Path) -> None:
    """A verb that lacks a library names the package that has it, not what pip could fetch."""
    (tmp_path / "report.json").write_text("{}")
    (tmp_path / "events.jsonl").write_text("")
    done = call(both, only, "report", "recompute", str(tmp_path))
    assert done.returncode == 2 and "hint: apt install python3-jinja2" in done.stderr, done.stderr


def test_pages_are_named_where_they_lie(unpacked: Path, only: Path) -> None:
    """Each page that a message names is there, by the path of the package."""
    pages = unpacked / "usr/share/doc/ktls-offload/docs"
    files = [p for p in (unpacked / "usr/share/ktls-offload").rglob("*") if p.suffix in (".py", ".yaml")]
    text = "\n".join(p.read_text() for p in files) + call(unpacked, only, "ls", "--help").stdout
    assert not re.findall(r"(?:^|[^/\w.-])docs/[a-z/0-9-]+\.md", text, re.M)
    named = set(re.findall(r"/usr/share/doc/ktls-offload/docs/([a-z/0-9-]+\.md)", text))
    assert {"reference/reasons.md", "use/ls.md"} <= named and not [
        name for name in named if not (pages / name).is_file()
    ]


def test_the_same_files_give_the_same_package(tree: Path, package: Path, tmp_path: Path) -> None:
    """A second build is the same, byte for byte."""
    again = build(tree, tmp_path)
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(package.read_bytes()).digest()


def test_what_it_lacks_is_named(tree: Path, tmp_path: Path) -> None:
    """Without PyYAML, as on a fresh machine, the build says what to install, and leaves nothing half done."""
    bare = tmp_path / "python3"
    bare.write_text('#!/bin/sh\nexec /usr/bin/python3 -S "$@"\n')
    bare.chmod(0o755)
    env = {**os.environ, "PYTHON": str(bare), "PYTHONPATH": ""}
    argv = [tree / "packaging/build-deb", tmp_path / "out"]
    done = subprocess.run(argv, capture_output=True, text=True, env=env)
    assert done.returncode == 7 and not (tmp_path / "out").exists()
    assert done.stderr == f"build-deb: error: no PyYAML for {bare}: apt install python3-yaml\n"


def test_lintian_finds_nothing(package: Path) -> None:
    """Debian's own checker has neither error nor warning."""
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    done = subprocess.run(["lintian", "--allow-root", package], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr


def test_it_installs_and_goes(package: Path, tmp_path: Path) -> None:
    """dpkg installs it in a copy of this system, it runs, and purge leaves nothing."""
    argv = ["unshare", "-m", "/bin/sh", "-ec", INSTALL, "sh", str(tmp_path), str(package)]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode in (1, 99) and os.geteuid() != 0 or done.returncode == 99:
        pytest.skip("needs root and overlayfs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ktls-offload {__version__}\n1\n" in done.stdout and done.stdout.endswith(ASKED)
    assert "Linux 9.9 has Debian's own driver again" in done.stdout
