"""What the simulated NIC is told of a card: the profile's directions, ciphers, defaults and counters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from offload.card.profile import find, load, load_all
from offload.errors import ConfigError
from offload.paths import ROOT
from offload.suite.bench.vm import topology
from offload.suite.bench.vm.card import LONGEST, parameter, word

C = ROOT / "native/nicsim"


def test_a_word_says_what_the_profile_says() -> None:
    """Directions with key lengths and defaults, then each counter under the name that the driver has."""
    parts = word(find("agilio-nfp")).split("/")
    assert parts[:3] == ["agilio-nfp", "tx:128:on", "rx:128:on"]
    assert "rx_tls_resync_sent:rx_tls_resync_res_ok" in parts and "tx_tls_ooo" in parts
    assert not [name for name in parts if "bytes" in name or "_ctx" in name], "absent, and not shown"


def test_limits_of_a_card_are_played() -> None:
    """A card that transmits only has no receive; mlx5 drops rules, and shows counters that are dead."""
    assert "rx" not in [part.partition(":")[0] for part in word(find("chelsio-t6")).split("/")]
    mlx5 = word(find("connectx-7")).split("/")
    assert mlx5[1:3] == ["tx:128:256:tls13:on", "rx:128:256:tls13"]
    assert mlx5[3:5] == ["drops-rules", "no-resync-behind-options"]
    assert "tx_tls_resync_bytes:0" in mlx5 and "tx_tls_dump_bytes" in mlx5


def test_a_profile_that_promises_less_is_played_so(tmp_path: Path) -> None:
    """A file of one's own is played as it is, whatever the shipped profile of that name says."""
    text = (ROOT / "nic-profiles/connectx-7.yaml").read_text()
    less = text.replace('  rx: {"1.2": [aes-gcm-128, aes-gcm-256]}', '  rx: {"1.2": [aes-gcm-256]}')
    less = less.replace(
        "not_promised:", 'not_promised:\n  - {direction: rx, cipher: aes-gcm-128, reason: "x"}'
    )
    (tmp_path / "connectx-7.yaml").write_text(less)
    assert "/rx:256:tls13/" in word(load(tmp_path / "connectx-7.yaml"))
    pair = topology.check_personality(f"{tmp_path / 'connectx-7.yaml'},plain")
    assert "/rx:256:tls13/" in parameter(pair) and parameter(pair).endswith(",plain")


def test_every_profile_fits_and_every_name_is_known() -> None:
    """Each shipped profile is one word of the parameter; the model knows what each counter counts."""
    source = (C / "shared/ktls_stats.c").read_text()
    known = set(re.findall(r'\{ "(\w+)", CTR_\w+ \}', source))
    for profile in load_all():
        said = word(profile)
        assert len(said) <= LONGEST and "," not in said and " " not in said
        counts = [part.partition(":")[2] or part for part in said.split("/") if "_" in part]
        strange = {name for name in counts if name not in known} - {"sim_*", "0"}
        assert strange <= {"tx_tls_resync", "rx_tls_resync_res_retry"}, f"{profile.id}: {strange}"


def test_a_card_without_a_profile_is_refused() -> None:
    """A name that no profile has is told before anything boots, with the nearest."""
    with pytest.raises(ConfigError, match="did you mean connectx-7"):
        parameter("conectx-7,plain")
