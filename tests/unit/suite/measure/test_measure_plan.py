"""What a person asks `measure` for: defaults, products of options, and one sentence for each mistake."""

from __future__ import annotations

import argparse

import pytest

from offload.errors import ConfigError
from offload.suite.measure.plan import FILES, Setting, amount, plan
from offload.suite.measure.verbs import add_parser, check


def asked(*argv: str) -> argparse.Namespace:
    """The options of `measure ARGV`."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["measure", *argv])


def test_short_and_long_defaults() -> None:
    """The simulated bench takes one short turn of each arm, a card five pairs and a warm-up."""
    short, long = plan(asked(), short=True), plan(asked("eth0"), short=False)
    assert (short.seconds, short.rounds, short.warm) == (1.0, 1, 0)
    assert (long.seconds, long.rounds, long.warm) == (2.0, 5, 1)
    assert short.arms == ("user", "sw", "hw", "hw-zc", "plain")
    assert short.settings == (Setting("stream", "tx", 1, None),) and short.turns() == 5
    assert plan(asked("--rounds", "3"), short=True).warm == 1


def test_products() -> None:
    """Every combination that was asked for is a setting, arms in their own order."""
    found = plan(
        asked("--arm", "hw,sw", "--streams", "1,8,64", "--direction", "rx,tx", "--segmentation", "both"),
        short=True,
    )
    assert found.arms == ("sw", "hw") and len(found.settings) == 12
    assert {s.direction for s in found.settings} == {"tx", "rx"}
    files = plan(asked("--workload", "nginx", "--close"), short=True).settings
    assert [s.size for s in files] == list(FILES) and all(s.close for s in files)
    arms = plan(asked("--arm", "ipsec", "--segmentation", "both,soft,gso,gro"), short=True)
    assert arms.arms == ("sw", "hw", "plain", "esp-null", "esp-128", "esp-256", "esp-128-hw", "esp-256-hw")
    assert [(s.segmentation, s.only) for s in arms.settings] == [
        (True, ""),
        (False, ""),
        (False, "soft"),
        (False, "gso"),
        (False, "gro"),
    ]
    assert "a connection per request" in files[0].say() and "4 KiB each" in files[0].say()


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--arm", "hww"], r"--arm: no 'hww' \(did you mean hw\?\)"),
        (["--arm", ","], "--arm: empty value ','"),
        (["--workload", "nginks"], r"did you mean nginx\?"),
        (["--direction", "up"], "choose one of tx, rx, both"),
        (["--streams", "0"], "--streams: '0'"),
        (["--streams", "1,2000"], "a whole number, 1 to 1024"),
        (["--streams", "1.5"], "--streams: '1.5'"),
        (["--size", "0"], "--size: '0'"),
        (["--size", "2G"], "up to 1G"),
        (["--size", "64KB"], "--size: '64KB'"),
        (["--seconds", "nan"], "--seconds: 'nan'"),
        (["--seconds", "0"], "0.1 to 600"),
        (["--seconds", "soon"], "--seconds: 'soon'"),
        (["--rounds", "-1"], "--rounds: '-1'"),
        (["--segmentation", "maybe"], "no 'maybe'"),
        (["--close"], "--close is for --workload nginx only"),
    ],
)
def test_mistakes(argv: list[str], why: str) -> None:
    """A mistake in an option is one sentence with the option and what was given."""
    argv = [f"{argv[0]}={argv[1]}"] if len(argv) == 2 else argv
    with pytest.raises(ConfigError, match=why):
        plan(asked(*argv), short=True)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["eth0", "--vm"], "--vm is only for the simulated bench, but eth0 is a card"),
        (["eth0", "--kernel", "6.1"], "--kernel is only for the simulated bench"),
        (["eth0", "--cost"], "--cost is only for the simulated bench"),
        (["--peer", "192.0.2.2"], "--peer needs DEV"),
        (["--boots", "3"], "--boots needs --cost"),
        (["--cost", "--rounds", "3"], "--rounds has no effect with --cost"),
        (["--cost", "--arm", "esp-128", "--streams", "2"], "--streams has no effect with --cost and ESP"),
        (["--cost", "--segmentation", "off", "--direction", "tx"], "--direction has no effect with --cost"),
        (["--attach", "lab", "--kernel", "6.1"], "--attach uses a running lab as it is"),
    ],
)
def test_options_that_do_not_go_together(argv: list[str], why: str) -> None:
    """Options of the two kinds of bench are not mixed in silence."""
    with pytest.raises(ConfigError, match=why):
        check(asked(*argv))


def test_amounts() -> None:
    """Bytes are shown in the largest unit that fits whole."""
    assert [amount(n) for n in (1, 1023, 4096, 1 << 20, 3 << 30)] == [
        "1 B",
        "1023 B",
        "4 KiB",
        "1 MiB",
        "3 GiB",
    ]
