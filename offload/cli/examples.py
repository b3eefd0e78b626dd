"""The examples of every verb, shown by its --help and in the man page; a test gives each to the parser."""

from __future__ import annotations

import argparse

EXAMPLES = {
    "": """\
ktls-offload doctor                 # is TLS offloaded here? if not, why?
ktls-offload enable eth0 --dry-run  # list what enable would do as root
ktls-offload enable eth0 --persist  # switch it on, also after a reboot
ktls-offload ls --watch             # which connections does the card handle?
ktls-offload restore eth0           # back to the settings before enable
""",
    "status": """\
ktls-offload status                   # all cards
ktls-offload status eth0 --json       # one card, as JSON
""",
    "ls": """\
ktls-offload ls                       # once
ktls-offload ls --watch               # live, with rates; press q to end
ktls-offload ls --json --here         # this network namespace, as JSON
""",
    "connect": """\
ktls-offload connect 192.0.2.2 8443 --ca ca.pem                # show what would happen, then close
ktls-offload connect 192.0.2.2 8443 --policy migration.conf --to /run/vm7.sock
ktls-offload connect --serve /run/ktls-offload.sock --policy migration.conf
""",
    "enable": """\
ktls-offload enable eth0 --dry-run    # list the root actions, one per line
ktls-offload enable eth0              # all that the card's profile promises
ktls-offload enable eth0 eth1 --tx    # two cards, transmit only
ktls-offload enable eth0 --persist    # and keep it on over reboots
ktls-offload enable eth0 --profile my-card.yaml
""",
    "disable": """\
ktls-offload disable eth0             # both directions
ktls-offload disable eth0 --rx        # receive only
ktls-offload disable eth0 --persist=none    # remove the file of enable --persist; switch nothing
""",
    "restore": """\
ktls-offload restore eth0             # one card
ktls-offload restore --all --dry-run  # list what restore would undo
""",
    "cards": """\
ktls-offload cards                    # every card that has a profile
ktls-offload cards --json             # for a program
""",
    "probe": """\
ktls-offload probe eth0                                # print the draft
ktls-offload probe eth0 --try --out my-card.yaml       # test what the card accepts; as root
ktls-offload enable eth0 --profile my-card.yaml
""",
    "completion": """\
ktls-offload completion bash > ~/.local/share/bash-completion/completions/ktls-offload
ktls-offload completion zsh > ~/.zfunc/_ktls-offload    # ~/.zfunc in fpath, before compinit
ktls-offload completion fish > ~/.config/fish/completions/ktls-offload.fish
""",
    "lab": """\
ktls-offload lab up --kernel 7.2              # runs until `lab down`
ktls-offload lab run --in dut -- ip -br address
""",
    "lab up": """\
ktls-offload lab up
ktls-offload lab up --kernel 6.12 --personality chelsio-t6 --name second
""",
    "lab run": """\
ktls-offload lab run --in dut -- ip -br address
ktls-offload lab run -n second --timeout 30 -- dmesg
""",
    "lab traffic": """\
ktls-offload lab traffic                            # two connections each way, until Ctrl-C
ktls-offload lab traffic --direction tx --streams 50
""",
    "lab init": """\
ktls-offload lab init --dut root@dut1 --peer root@peer1 -i lab_key
ktls-offload lab init --one-host ens1f0np0 ens1f1np1     # two ports of this host, cabled to each other
ktls-offload lab init --one-host ens1f0np0 ens1f1np1 --wire ens2f0 ens2f1
""",
    "lab restore": """\
ktls-offload lab restore                # undo `lab init --one-host`
ktls-offload lab restore lab.yaml       # after a killed run: restore the settings of its hosts
""",
    "lab fetch": """\
ktls-offload lab fetch 6.12 7.2       # then `lab up` works offline
""",
    "certify": """\
ktls-offload certify                    # a simulated ConnectX-6 Dx, Linux 6.1
ktls-offload certify --kernel 6.12 --nic chelsio-t6
ktls-offload certify --lab lab.yaml     # a real card, between two hosts
ktls-offload certify --replay results/20261121T130544Z
""",
    "measure": """\
ktls-offload measure              # in a VM: shows what is measured, and how
ktls-offload measure --cost       # in a VM: instructions per byte
ktls-offload measure eth0 --peer netns:far --arm user,sw,hw --streams 1,8
""",
    "report": """\
ktls-offload report show results/20261121T130544Z
ktls-offload report recompute results/20261121T130544Z
ktls-offload report registry archives/ --out site/ --allowed-signers signers
""",
    "wire": """\
ktls-offload wire capture eth1 -o run.pcapng
ktls-offload wire verify run.pcapng --keylog keys.txt --payload sent.bin
ktls-offload wire compare stunnel.pcapng card.pcapng
""",
    "wire compare": """\
ktls-offload wire compare stunnel.pcapng card.pcapng
ktls-offload wire compare stunnel.pcapng card.pcapng --port-a 4433 --port-b 4434
""",
    "wire capture": """\
ktls-offload wire capture eth1 -o run.pcapng
ktls-offload wire capture eth1 -o run.pcapng --seconds 10
""",
}


FIRST = ("certify", "measure")  # many options: their examples stand above them, on the first screen


def show(parser: argparse.ArgumentParser, path: str) -> None:
    """Put the examples of a verb, and of every verb below it, before what its --help ends with."""
    if path in EXAMPLES:
        lines = "\n".join(f"  {line}" for line in EXAMPLES[path].splitlines())
        if path in FIRST:
            parser.description = f"{parser.description}\n\nexamples:\n{lines}"
        else:
            parser.epilog = f"examples:\n{lines}\n" + (f"\n{parser.epilog}" if parser.epilog else "")
        if parser.formatter_class is argparse.HelpFormatter:
            parser.formatter_class = argparse.RawDescriptionHelpFormatter
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for line in action._choices_actions:
                _describe(action.choices[line.dest], line.help or "")
            for name, below in action.choices.items():
                show(below, f"{path} {name}".strip())


def _describe(parser: argparse.ArgumentParser, help_: str) -> None:
    """Begin the --help of a verb with a sentence: its description, or its line in the list of verbs."""
    if any(isinstance(action, argparse._SubParsersAction) for action in parser._actions):
        return  # its own list of verbs says what it is for, and the first screen is full
    text = parser.description or f"{help_}."
    parser.description = text[:1].upper() + text[1:]
