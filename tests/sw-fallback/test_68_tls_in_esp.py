"""Without a NIC that offloads TLS in ESP is whole, and encrypted twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lib.ipsec_tls import whole
from tests.lib.life import Life
from tests.lib.rig import Rig

pytestmark = [pytest.mark.once, pytest.mark.requires("lab", "tls", "ipsec", "wire", "eyes")]


def test_whole_by_software(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """Without a NIC TLS in ESP without a cipher arrives whole both ways, and none of it is in clear."""
    whole(rig, life, evidence)
