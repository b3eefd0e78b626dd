"""Commands that the lab's agent answers itself: to start a program costs an emulated guest 20 to 50 ms.

It says what the program would have printed, byte for byte. The agent runs the program for everything else,
and for every error. Not over ssh: to start one costs little there, and a host's programs are part of the rig.
"""

from __future__ import annotations

import os
import stat

from offload.suite.bench.vm.guest import settings
from offload.suite.bench.vm.guest.nic_ioctl import Nic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Said = tuple[int, bytes]  # exit code, standard output
    Key = tuple[tuple[str, ...], bytes]
LONGEST = 4 << 20  # bytes of a file
MOST = 256  # answers that are remembered
SEEN = (("--json", "-k"), ("-k",), ("-i",))  # forms of ethtool that print what one ioctl says


class Known:
    """Answers by program; for none that is not there. `path`: the folders where programs are looked for."""

    def __init__(self, path: str) -> None:
        self._folders = path.split(":")
        self._programs: dict[str, str] = {}
        self._printed: dict[Key, bytes] = {}
        self._handlers: dict[str, Callable[[list[str]], Said | None]] = {
            "cat": _cat,
            "ethtool": self._ethtool,
            "grep": _grep,
            "ip": settings.ip,
            "rm": _rm,
            "stat": _stat,
            "sysctl": settings.sysctl,
            "test": _test,
            "uname": _uname,
        }

    def answer(self, argv: list[str]) -> Said | None:
        """Return what the command would have said in this namespace; None if the program must be run."""
        handler = self._handlers.get(argv[0])
        if handler is None or not self._there(argv[0]):
            return None
        try:
            return handler(argv[1:])
        except (OSError, ValueError):
            return None

    def _there(self, name: str) -> bool:
        """Say whether the program is where it was found."""
        if name not in self._programs:
            places = [f"{folder}/{name}" for folder in self._folders if os.path.exists(f"{folder}/{name}")]  # noqa: PTH110
            if not places:
                return False
            self._programs[name] = places[0]
        return os.path.exists(self._programs[name])  # noqa: PTH110

    def _ethtool(self, words: list[str]) -> Said | None:
        """`-S` as ethtool prints it; others as it printed them when the kernel said the same."""
        if words[0] == "-S" and len(words) == 2:
            return 0, Nic(words[1]).statistics()
        if words[0] == "-K":
            return settings.ethtool(words)
        key = self.key(["ethtool", *words])
        return (0, self._printed[key]) if key in self._printed else None

    def key(self, argv: list[str]) -> Key | None:
        """Return what the output of this command depends on; None if that is not known."""
        if argv[0] != "ethtool" or tuple(argv[1:-1]) not in SEEN:
            return None
        try:
            nic = Nic(argv[-1])
            return tuple(argv), nic.driver() if argv[1] == "-i" else nic.features()
        except (OSError, ValueError):
            return None

    def learn(self, argv: list[str], before: Key, printed: bytes) -> None:
        """Remember what the program printed, if the kernel says now what it said before."""
        if self.key(argv) == before:
            if len(self._printed) >= MOST:
                self._printed.clear()
            self._printed[before] = printed


def _content(path: str) -> bytes:
    """A file's bytes; ValueError for one that may make us wait, or that is long."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError(path)
        data = b""
        while piece := os.read(fd, 65536):
            data += piece
            if len(data) > LONGEST:
                raise ValueError(path)
        return data
    finally:
        os.close(fd)


def _names(words: list[str]) -> list[str]:
    """Words that are names of files, all of them; ValueError otherwise."""
    if not words or any(word.startswith("-") or not word for word in words):
        raise ValueError(words)
    return words


def _cat(words: list[str]) -> Said:
    return 0, b"".join([_content(path) for path in _names(words)])


def _grep(words: list[str]) -> Said | None:
    """`-sH '' FILE...`: every line of text with its file; exit code 2 if a file cannot be read."""
    if words[:2] != ["-sH", ""]:
        return None
    said, missing = [], False
    for path in _names(words[2:]):
        try:
            data = _content(path)
        except OSError:
            missing = True
            continue
        if b"\0" in data or not data.isascii():
            return None  # grep has other words for what is not text
        lines = data.removesuffix(b"\n").split(b"\n") if data else []
        said += [path.encode() + b":" + line + b"\n" for line in lines]
    return 2 if missing else int(not said), b"".join(said)


def _rm(words: list[str]) -> Said | None:
    """`-f FILE...`; the program handles a path that is no file, and all that follow."""
    if words[:1] != ["-f"]:
        return None
    for path in _names(words[1:]):
        try:  # noqa: SIM105 - contextlib is one more import in every boot
            os.unlink(path)  # noqa: PTH108
        except FileNotFoundError:
            pass
    return 0, b""


def _stat(words: list[str]) -> Said | None:
    """`-c %s FILE`."""
    if words[:2] != ["-c", "%s"]:
        return None
    return 0, b"".join([b"%d\n" % os.lstat(path).st_size for path in _names(words[2:])])


def _test(words: list[str]) -> Said | None:
    """`-e FILE`."""
    if words[:1] != ["-e"] or len(words) != 2:
        return None
    try:
        os.stat(_names(words[1:])[0])  # noqa: PTH116
    except FileNotFoundError:
        return 1, b""
    return 0, b""


def _uname(words: list[str]) -> Said | None:
    """Some of -r, -v, -m, always printed in this order."""
    here = os.uname()
    said = {"-r": here.release, "-v": here.version, "-m": here.machine}
    if not words or not set(words) <= set(said):
        return None
    return 0, " ".join(said[word] for word in said if word in words).encode() + b"\n"
