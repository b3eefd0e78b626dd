"""Without a NIC that offloads TLS in ESP is whole, and encrypted twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lib.life.life import Life
from tests.lib.rig.rig import Rig
from tests.lib.wire.ipsec_tls import whole

pytestmark = [pytest.mark.once, pytest.mark.requires("lab", "tls", "ipsec", "wire", "wire-tap")]


def test_payload_intact_by_software(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """Without a NIC TLS in ESP without a cipher arrives whole both ways, and none of it is in clear."""
    whole(rig, life, evidence)
