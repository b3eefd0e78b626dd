"""What a shell must know to complete the command: scripts for bash, zsh and fish from the tree of verbs.

Why not shtab? Version 1.13 answers the lines of tests/unit/cli/test_completion.py in bash and fish as well.
But its zsh script works by `eval` only, it offers nothing behind `lab run --`, and a bare host would need it.
"""

from __future__ import annotations

from collections.abc import Sequence

from offload import __version__
from offload.cli.tree import Command, Option, Value

Lines = list[str]


def script(shell: str, root: Command, profiles: Sequence[str]) -> str:
    """The script for `bash`, `zsh` or `fish`."""
    make = {"bash": bash, "zsh": zsh, "fish": fish}[shell]
    return "\n".join(make(root, tuple(profiles))) + "\n"


def _head(shell: str) -> str:
    return f"# {shell} completion of ktls-offload {__version__}: `ktls-offload completion {shell}` makes it"


def _q(text: str) -> str:
    """Text as one word of bash or zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def bash(root: Command, profiles: tuple[str, ...]) -> Lines:
    """One function; needs nothing of the bash-completion package."""
    verbs = [c for c in root.walk() if c.path]
    values = [
        f"    {'|'.join(_q(f' {c.words} {name}') for name in option.names)})"
        f" {_bash_offer(option.value, profiles)} ;;"
        for c in verbs
        for option in c.options
        if option.value
    ]
    offers = [f"      {_q(f' {c.words}'.rstrip())}) {_bash_verb(c, profiles)} ;;" for c in root.walk()]
    paths = "|".join(_q(f" {c.words}") for c in verbs)
    begin = BASH_BEGIN.replace("PATHS", paths).splitlines()
    return [_head("bash"), *begin, *values, *BASH_MIDDLE.splitlines(), *offers, *BASH_END.splitlines()]


# bash takes --option=value apart at the sign; behind `--` stands another command
BASH_BEGIN = """\
_ktls_offload() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' word kind='' words='' i
  [[ $prev == "=" ]] && prev=${COMP_WORDS[COMP_CWORD-2]}
  [[ $cur == "=" ]] && prev=${COMP_WORDS[COMP_CWORD-1]} cur=
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    [[ $word == -- ]] && kind='command' && break
    case "$path $word" in PATHS) path+=" $word" ;; esac
  done
  case "$path $prev" in"""
BASH_MIDDLE = """\
    *) case "${kind:-$path}" in
      command) ;;"""
BASH_END = """\
    esac ;;
  esac
  case $kind in
    device) words=$(command ls /sys/class/net 2>/dev/null) ;;
    release) words=$(command ls /lib/modules 2>/dev/null) ;;
    file | profile | folder | command) compopt -o filenames 2>/dev/null ;;
  esac
  mapfile -t COMPREPLY < <(
    compgen -W "$words" -- "$cur"
    [[ $cur == -* ]] || case $kind in
      file | profile) compgen -f -- "$cur" ;;
      folder) compgen -d -- "$cur" ;;
      command) compgen -c -- "$cur" ;;
    esac
  )
}
complete -F _ktls_offload ktls-offload"""


def _bash_offer(value: Value, profiles: tuple[str, ...]) -> str:
    """Assignments that say what a value can be."""
    words = value.choices or (profiles if value.kind == "profile" else ())
    return f"kind={value.kind or 'none'} words={_q(' '.join(words))}"


def _bash_verb(command: Command, profiles: tuple[str, ...]) -> str:
    """As `_bash_offer`, for a verb: its verbs or its first argument, and options after a dash."""
    names = " ".join(n for o in command.options for n in o.names)
    value = command.arguments[0].value if command.arguments else Value("", "")
    if command.verbs:
        value = Value("VERB", "word", tuple(c.path[-1] for c in command.verbs))
    return f"if [[ $cur == -* ]]; then words={_q(names)}; else {_bash_offer(value, profiles)}; fi"


def zsh(root: Command, profiles: tuple[str, ...]) -> Lines:
    """A function per verb, each with _arguments."""
    lines = [
        "#compdef ktls-offload",
        _head("zsh"),
        "_ktls_offload_device() { compadd -- /sys/class/net/*(N:t) }",
        "_ktls_offload_release() { compadd -- /lib/modules/*(N:t) }",
        f"_ktls_offload_profile() {{ compadd -- {' '.join(profiles)}; _files -g '*.yaml' }}",
    ]
    for command in root.walk():
        lines += ["", f"{_zsh_name(command)}() {{", *_zsh_body(command), "}"]
    return [*lines, "", *ZSH_END]


# read by compinit from fpath it is the function's first call; read with `source` it must be declared
ZSH_END = """\
if [[ $funcstack[1] == _ktls_offload ]]; then
  _ktls_offload "$@"
else
  compdef _ktls_offload ktls-offload
fi""".splitlines()


def _zsh_name(command: Command) -> str:
    """The function of a verb."""
    return "_".join(["_ktls_offload", *command.path])


def _zsh_body(command: Command) -> Lines:
    """Options, and then verbs or arguments."""
    specs = [spec for option in command.options for spec in _zsh_option(option)]
    if not command.verbs:
        last = [_zsh_argument(a.value) for a in command.arguments]
        return [f"  _arguments -s -S {' '.join(['', *specs, *last]).strip()}".replace(" '", " \\\n    '")]
    verbs = " ".join(_q(f"{c.path[-1]}:{c.help}") for c in command.verbs)
    cases = [f"      {c.path[-1]}) {_zsh_name(c)} ;;" for c in command.verbs]
    specs += ["'1:verb:->verb'", "'*::argument:->rest'"]
    return [
        "  local curcontext=$curcontext state line",
        "  typeset -A opt_args",
        f"  _arguments -C {' '.join(specs)}".replace(" '", " \\\n    '"),
        "  case $state in",
        f"    verb) local -a verbs=({verbs}); _describe -t verbs verb verbs ;;",
        "    rest) case $words[1] in",
        *cases,
        "    esac ;;",
        "  esac",
    ]


def _zsh_option(option: Option) -> list[str]:
    """One specification for each name; one given shuts out its other names."""
    words = option.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    others = f"({' '.join(option.names)})" if len(option.names) > 1 else ""
    found = []
    for name in option.names:
        join = "" if option.value is None else "=" if name.startswith("--") else "+"
        value = "" if option.value is None else _zsh_value(option.value)
        found.append(_q(f"{others}{name}{join}[{words}]{value}"))
    return found


def _zsh_value(value: Value) -> str:
    """`:NAME:what completes it`."""
    name = value.name.replace(":", "\\:")
    actions = {
        "device": "_ktls_offload_device",
        "profile": "_ktls_offload_profile",
        "release": "_ktls_offload_release",
        "file": "_files",
        "folder": "_files -/",
        "word": f"({' '.join(value.choices)})",
    }
    return f"{'::' if value.optional else ':'}{name}:{actions.get(value.kind, ' ')}"


def _zsh_argument(value: Value) -> str:
    """A positional argument."""
    if value.kind == "command":
        return _q("*::command: _normal")
    return _q(f"*{_zsh_value(value).replace('::', ':', 1)}" if value.many else _zsh_value(value))


def fish(root: Command, profiles: tuple[str, ...]) -> Lines:
    """A line per verb and option, with the verbs so far as its condition."""
    paths = " ".join(_fish_q(c.words) for c in root.walk() if c.path)
    lines = [
        _head("fish"),
        "function __ktls_offload_at",
        "    set -l path",
        "    for word in (commandline -opc)[2..-1]",
        f'        contains -- (string join -- " " $path $word) {paths}; and set path $path $word',
        "    end",
        '    test "$path" = "$argv"',
        "end",
        "complete -c ktls-offload -f",
    ]
    for command in root.walk():
        at = f"complete -c ktls-offload -n {_fish_q(f'__ktls_offload_at {command.words}'.strip())}"
        lines += [f"{at} -a {c.path[-1]} -d {_fish_q(c.help)}" for c in command.verbs]
        lines += [f"{at} {_fish_option(o, profiles)} -d {_fish_q(o.help)}" for o in command.options]
        lines += [f"{at} {_fish_offer(a.value, profiles)}" for a in command.arguments[:1] if a.value.kind]
    return lines


def _fish_q(text: str) -> str:
    """Text as one word of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_option(option: Option, profiles: tuple[str, ...]) -> str:
    """Its names, and what it takes."""
    names = [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names]
    if option.value is None:
        return " ".join(names)
    offer = _fish_offer(option.value, profiles)
    needs = "" if option.value.optional else " -r" if "-F" in offer else " -x"
    return f"{' '.join(names)}{needs} {offer}".rstrip()


def _fish_offer(value: Value, profiles: tuple[str, ...]) -> str:
    """Words, or the names of files."""
    if value.kind in ("file", "folder", "command"):
        return "-F"
    words = " ".join(value.choices or (profiles if value.kind == "profile" else ()))
    if place := {"device": "/sys/class/net", "release": "/lib/modules"}.get(value.kind):
        words = f"(command ls {place} 2>/dev/null)"
    files = " -F" if value.kind == "profile" else ""
    return f"-a {_fish_q(words)}{files}" if words else ""
