"""For all tests of daemons: as for unit tests."""

from tests.unit.conftest import lean_children  # noqa: F401
