"""The command line and the file: what is refused, with which exit code, and what is left behind."""

from __future__ import annotations

import os

from rig import Rig


def check_wrong_usage_is_1(rig: Rig) -> None:
    """A wrong command line is exit 1, one line, and no file."""
    path = rig.path()
    for args in (
        ["lo"],
        ["lo", path, "more"],
        ["lo", ""],
        ["lo", path, "--snaplen"],
        ["lo", path, "--snaplen", "63"],
        ["lo", path, "--snaplen", "1048577"],
        ["lo", path, "--snaplen", "1e3"],
        ["lo", path, "--buffer", "0"],
        ["lo", path, "--buffer", "1024"],
        ["lo", path, "--buffer", "-5"],
        ["lo", path, "--promiscuous"],
    ):
        done = rig.run(*args)
        assert done.returncode == 1 and done.stdout == "", (args, done)
        assert done.stderr.startswith("wiretap: ") and done.stderr.count("\n") == 1, done.stderr
        assert not path.exists()


def check_help(rig: Rig) -> None:
    """--help is exit 0 and names every option and exit code."""
    done = rig.run("--help")
    assert done.returncode == 0 and done.stderr == ""
    assert all(word in done.stdout for word in ("--snaplen", "--buffer", "2 no such", "4 not", "5 the"))


def check_no_such_interface_is_2(rig: Rig) -> None:
    """An interface that is not there is exit 2; no file is made."""
    path = rig.path()
    for name in ("nothere0", "x" * 100, "a/b"):
        done = rig.run(name, path)
        assert done.returncode == 2 and f"'{name}'" in done.stderr, done
        assert not path.exists()


def check_not_permitted_is_4(rig: Rig) -> None:
    """Without CAP_NET_RAW it is exit 4; no file is made."""
    path = rig.path()
    before = ("setpriv", "--bounding-set", "-net_raw") if os.geteuid() == 0 else ()
    done = rig.run("lo", path, before=before)
    assert done.returncode == 4 and "CAP_NET_RAW" in done.stderr, done
    assert not path.exists()
