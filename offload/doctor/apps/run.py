"""`ktls-offload doctor --app nginx`: read the program's configuration, look at the card, judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offload.card.profile import DIRECTIONS
from offload.doctor.apps import haproxy, nginx, openssl, storage, stunnel
from offload.doctor.apps.files import Files
from offload.doctor.apps.judge import Answer, Judge
from offload.doctor.examine import Diagnosis, Doctor
from offload.errors import ConfigError
from offload.host.base import Host

APPS = {
    "nginx": nginx.look,
    "haproxy": haproxy.look,
    "stunnel": stunnel.look,
    "openssl": openssl.look,
    "nfs": storage.nfs,
    "nvme": storage.nvme,
}
PATHS = {
    "nginx": nginx.PATH,
    "haproxy": haproxy.PATH,
    "stunnel": stunnel.PATH,
    "openssl": "openssl.cnf",
    **storage.PATHS,
}


def ask(
    host: Host,
    name: str,
    path: str = "",
    wanted: Sequence[str] = (),
    *,
    directions: Sequence[str] = DIRECTIONS,
    environment: Mapping[str, str] | None = None,
    diagnosis: Diagnosis | None = None,
) -> Answer:
    """The answer about a program. ConfigError if it has no configuration; NoDevice for a device that is none.

    `diagnosis`: what the doctor said, if somebody has asked. `environment`: what the program is started
    with, as far as OpenSSL looks at it (OPENSSL_CONF).
    """
    if "\0" in path:
        raise ConfigError("--config: a file name cannot contain a zero byte")
    files = Files(host)
    app = APPS[name](files, path, environment or {})
    if not files.read:
        why = f": {files.problems[0][1]}" if files.problems else ""
        raise ConfigError(
            f"{name}: no configuration at {path or PATHS[name]}{why}", "use --config FILE to name it"
        )
    return Judge(host, app, diagnosis or Doctor(host, directions).diagnose(wanted)).answer()
