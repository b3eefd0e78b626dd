"""The examples of every verb, shown by its --help and in the man page; a test gives each to the parser."""

from __future__ import annotations

import argparse

EXAMPLES = {
    "": """\
ktls-offload doctor                   # is TLS offloaded here, and if not, why not?
ktls-offload enable eth0 --dry-run    # what would be done as root
ktls-offload enable eth0 --persist    # switch it on, and keep it so over reboots
ktls-offload ls --watch               # see it work
ktls-offload restore eth0             # back to what was there before
""",
    "status": """\
ktls-offload status                   # every card here
ktls-offload status eth0 --json       # one, for a program
""",
    "ls": """\
ktls-offload ls                       # once
ktls-offload ls --watch               # live, with rates; q ends it
ktls-offload ls --json --here         # this network namespace, for a program
""",
    "connect": """\
ktls-offload connect 192.0.2.2 8443 --ca ca.pem                # what would be; closes again
ktls-offload connect 192.0.2.2 8443 --policy migration.conf --to /run/vm7.sock
ktls-offload connect --serve /run/ktls-offload.sock --policy migration.conf
""",
    "enable": """\
ktls-offload enable eth0 --dry-run    # the root actions, one per line; nothing is done
ktls-offload enable eth0              # what the card's profile promises
ktls-offload enable eth0 eth1 --tx    # two cards, transmit only
ktls-offload enable eth0 --persist    # and keep it so over reboots
ktls-offload enable eth0 --profile my-card.yaml
""",
    "disable": """\
ktls-offload disable eth0             # both directions
ktls-offload disable eth0 --rx        # receive only
ktls-offload disable eth0 --persist=none    # remove the file that enable --persist wrote; switch nothing
""",
    "restore": """\
ktls-offload restore eth0             # one card
ktls-offload restore --all --dry-run  # what would be put back, everywhere
""",
    "probe": """\
ktls-offload probe eth0                                # print the draft
ktls-offload probe eth0 --try --out my-card.yaml       # with what the card takes, as root
ktls-offload enable eth0 --profile my-card.yaml
""",
    "completion": """\
ktls-offload completion bash > ~/.local/share/bash-completion/completions/ktls-offload
ktls-offload completion zsh > ~/.zfunc/_ktls-offload    # ~/.zfunc in fpath, before compinit
ktls-offload completion fish > ~/.config/fish/completions/ktls-offload.fish
""",
    "lab": """\
ktls-offload lab up --kernel 7.2              # stays until `lab down`
ktls-offload lab run --in dut -- ip -br address
ktls-offload lab shell --in peer
ktls-offload lab down
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
ktls-offload lab init --one-host ens1f0np0 ens1f1np1     # two ports of this host and a cable between them
ktls-offload lab init --one-host ens1f0np0 ens1f1np1 --wire ens2f0 ens2f1
""",
    "lab restore": """\
ktls-offload lab restore
""",
    "lab fetch": """\
ktls-offload lab fetch 6.12 7.2       # so that `lab up` needs no network
""",
    "certify": """\
ktls-offload certify                                   # a simulated ConnectX-6 Dx on 6.1
ktls-offload certify --kernel 6.12 --nic chelsio-t6
ktls-offload certify --replay results/20261121T130544Z
ktls-offload certify --nicsim-patch my-defect.patch
ktls-offload certify --lab lab.yaml                    # a real card, between two hosts
""",
    "measure": """\
ktls-offload measure                                   # in a VM: what is measured, and how
ktls-offload measure --cost                            # in a VM: instructions per byte
ktls-offload measure eth0 --peer netns:far --arm user,sw,hw --streams 1,8
""",
    "report": """\
ktls-offload report show results/20261121T130544Z
ktls-offload report recompute results/20261121T130544Z
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
}  # fmt: skip


def show(parser: argparse.ArgumentParser, path: str) -> None:
    """Put the examples of a verb, and of every verb below it, before what its --help ends with."""
    if path in EXAMPLES:
        lines = "\n".join(f"  {line}" for line in EXAMPLES[path].splitlines())
        parser.epilog = f"examples:\n{lines}\n" + (f"\n{parser.epilog}" if parser.epilog else "")
        if parser.formatter_class is argparse.HelpFormatter:
            parser.formatter_class = argparse.RawDescriptionHelpFormatter
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                show(below, f"{path} {name}".strip())
