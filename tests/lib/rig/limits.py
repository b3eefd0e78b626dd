"""Known limitations of a card: which test of the run meets one, and that it is met as the profile says.

The only way to meet one: a test says nothing of limitations, it asserts what the card must do. Where the
profile lists a limitation for it, its failure with the expected text is an xfail, and its passing a failure.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from offload.card.profile import Limitation, find

LISTED = pytest.StashKey[tuple[Limitation, ...]]()
MET = pytest.StashKey[str]()


def listed(item: pytest.Item) -> Limitation | None:
    """The limitation that the profile lists for this test, if any."""
    if LISTED not in item.config.stash:
        item.config.stash[LISTED] = find(item.config.getoption("--profile")).limitations
    return next((one for one in item.config.stash[LISTED] if one.names(item.nodeid)), None)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Note that the body failed as listed; innermost, so that what is looked at after the body still is."""
    try:
        return (yield)
    except AssertionError as exc:
        limit = listed(pyfuncitem)
        if limit is None or not limit.seen_in(str(exc)):
            raise
        pyfuncitem.stash[MET] = f"{limit.id}: {str(exc).partition(chr(10))[0]}"
        return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Make an xfail of a limitation that was met, and a failure of one that was not."""
    result = yield
    limit = listed(item)
    if limit is not None and MET not in item.stash:
        if limit.warns():  # the kernel warns once per boot, where the tests that provoke it ran
            return result
        raise AssertionError(f"passed, though the profile lists {limit.id} for it: wanted {limit.expect!r}")
    if limit is not None:
        pytest.xfail(item.stash[MET])
    return result
