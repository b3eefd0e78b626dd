"""For all tests of daemons: a pytest that one of them starts is as small as in unit tests."""

from tests.unit import conftest  # noqa: F401
