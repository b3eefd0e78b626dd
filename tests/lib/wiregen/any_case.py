"""Any capture at all: good, damaged in known ways, odd, or damaged byte by byte."""

from __future__ import annotations

from contextlib import suppress
from random import Random

from tests.lib.wiregen import odd
from tests.lib.wiregen.damage import authentic as damage_authentic
from tests.lib.wiregen.damage import content as damage_content
from tests.lib.wiregen.damage import frames as damage_frames
from tests.lib.wiregen.damage import header as damage_header
from tests.lib.wiregen.damage import strange as damage_strange
from tests.lib.wiregen.damage import tcp as damage_tcp
from tests.lib.wiregen.damage.bytes import wrecked
from tests.lib.wiregen.damage.kinds import KINDS, done, steady_scene
from tests.lib.wiregen.good import good_scene, trouble
from tests.lib.wiregen.scene import Case, Scene

DAMAGES = (damage_content, damage_authentic, damage_header, damage_tcp, damage_frames, damage_strange)


def any_scene(rng: Random) -> Scene:
    """A scene before any damage."""
    scene = steady_scene(rng) if rng.random() < 0.3 else good_scene(rng, bulk=0.03)
    if rng.random() < 0.1:
        scene.checksums = not scene.checksums
    return scene


def any_case(seed: int) -> Case:
    """The capture of this seed: some good, the rest damaged."""
    rng = Random(f"any {seed}")
    scene = any_scene(rng)
    kinds = [KINDS[name] for name in rng.choices(sorted(KINDS), k=rng.choice((0, 0, 1, 1, 2, 3)))]
    odds = rng.choice((0, 0, 0, 1, 2))

    def more(name: str) -> None:
        if name == "records" and len(scene.session.sent(0)) > 2**17 and rng.random() < 0.7:
            with suppress(ValueError, IndexError):
                rng.choice(odd.FAR)(rng, scene)
        if name == "segments" and rng.random() < 0.5:
            trouble(rng, scene)
        for _ in range(odds):
            if rng.random() < 0.6:
                with suppress(ValueError, IndexError, AttributeError, TypeError, StopIteration):
                    rng.choice(odd.LAYERS[name])(rng, scene)

    case, _ = done(scene, kinds, more)
    return wrecked(rng, case) if rng.random() < 0.3 else case
