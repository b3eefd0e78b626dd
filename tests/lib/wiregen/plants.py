"""Payload planted anywhere: `python -m tests.lib.wiregen.plants --count 10000` counts what is called equal.

Each seed is a good capture with a piece of payload or reply at a random place of a random frame: over what
is there or put in between, in the frame itself or in a copy of it. Headers, options, tags and trailers are
places like others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random

from tests.lib.wiregen.engines import end_core, start_core
from tests.lib.wiregen.frames import Frame
from tests.lib.wiregen.good import good_scene
from tests.lib.wiregen.scene import Case, Scene

LEAST, TELLING, NEEDLE = 31, 6, 16  # docs/reference/wire.md, "How short a piece of payload can be"
TOGETHER = 16  # plants in copies of one scene
SIDE_BY_SIDE = 8


@lru_cache(maxsize=2)
def scene_of(seed: int) -> Scene:
    """A good capture that has enough payload, before it is written."""
    for turn in range(1000):
        rng = Random(f"plant {seed} {turn}")
        scene = good_scene(rng, bulk=0)
        if scene.payload is None or not any(pieces(source) for source in sources(scene)):
            continue
        scene.cut()
        scene.log()
        scene.lay()
        return scene
    raise AssertionError("no scene with payload")


def sources(scene: Scene) -> list[bytes]:
    """Return what must not be seen: payload and reply."""
    return [source for source in (scene.payload, scene.reply) if source]


def pieces(source: bytes) -> list[int]:
    """Where needles are that count."""
    places = range(0, len(source) - NEEDLE + 1, NEEDLE)
    return [at for at in places if len(set(source[at : at + NEEDLE])) >= TELLING]


def piece(rng: Random, scene: Scene) -> bytes:
    """At least LEAST bytes of payload or reply, with a needle that counts."""
    source = rng.choice([source for source in sources(scene) if pieces(source)])
    needle = rng.choice(pieces(source))
    low = max(0, needle - rng.randint(0, LEAST - NEEDLE))
    return source[low : max(low + LEAST, needle + NEEDLE) + rng.choice((0, 0, rng.randint(0, 60)))]


def planted(seed: int) -> Case:
    """The capture of this seed."""
    rng, scene = Random(f"plant {seed}"), scene_of(seed // TOGETHER)
    frames, rest = list(scene.frames), scene.frames
    number, data = rng.randrange(len(frames)), piece(rng, scene)
    old = frames[number]
    at = rng.choice((rng.randint(0, len(old.data)), rng.randint(0, min(len(old.data), 90))))
    covered = len(data) if rng.random() < 0.7 else 0
    new = old.data[:at] + data + old.data[at + covered :]
    frame = Frame(new, max(old.orig + len(new) - len(old.data), len(new)), old.link)
    if rng.random() < 0.5:
        frames[number] = frame
    else:
        frames.insert(rng.randint(0, len(frames)), frame)
    scene.frames, scene.rng = frames, rng
    case = scene.case()
    scene.frames = rest
    return case


def outcomes(seeds: Iterator[int], folder: Path) -> Iterator[tuple[int, str]]:
    """Yield what the native core says to each plant."""
    while batch := list(islice(seeds, SIDE_BY_SIDE)):
        begun = [start_core(planted(seed), folder / str(i)) for i, seed in enumerate(batch)]
        for seed, running in zip(batch, begun, strict=True):
            with running:
                yield seed, end_core(running).get("outcome", "refused")


def main() -> int:
    """The command line; 1 if a plant was called equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="start", type=int, default=0)
    parser.add_argument("--count", type=int, default=10000)
    args = parser.parse_args()
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed, outcome in outcomes(iter(range(args.start, args.start + args.count)), Path(folder)):
            found[outcome] += 1
            if outcome == "equal":
                sys.stdout.write(f"planted({seed}): equal\n")
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.items()))
    sys.stdout.write(f"{args.count} plants: {counts}\n")
    return 1 if found["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
