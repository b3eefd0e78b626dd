"""The simulated card's module goes after all that the other tests did to it: runs last."""

from __future__ import annotations

import pytest

from tests.lib.rig.rig import Labs


def test_module_unloads_after_everything(pytestconfig: pytest.Config, labs: Labs) -> None:
    """Without this a reference that a test left behind would show only when somebody wants the module out."""
    if pytestconfig.getoption("--attach"):
        pytest.skip("takes the card out of the lab: not in a lab that somebody else uses")
    rig = labs.get("nicsim")
    mark = rig.lab.console_mark()
    done = rig.lab.root.run(["rmmod", "nicsim"], check=False, timeout=600)
    said = rig.lab.console_faults(mark)
    labs.close()  # the bench is gone
    assert done.rc == 0, done.stderr.decode("utf-8", "replace")
    assert said == [], f"the module took a context with it: {said}"
