"""Commands of OpenSSL's configuration (SSL_CONF_cmd): what they make of kernel TLS, versions and ciphers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from offload.doctor.apps.model import Said

WORDS = {
    "minprotocol": "lowest",
    "maxprotocol": "highest",
    "cipherstring": "ciphers",
    "ciphersuites": "suites",
}


@dataclass(frozen=True)
class Settings:
    """What commands have set so far; None where none of them spoke. `off`: an -Option came last."""

    ask: Said | None = None
    lowest: Said | None = None
    highest: Said | None = None
    ciphers: Said | None = None
    suites: Said | None = None

    def after(self, command: str, value: str, where: str) -> Settings:
        """Return what one more command makes of it (case does not matter, SSL_CONF_cmd(3))."""
        name = command.lower()
        if name == "options":
            return self._options(value, where)
        if name == "protocol":
            return self._protocol(value, where)
        return replace(self, **{WORDS[name]: Said(value, where)}) if name in WORDS else self

    def _options(self, value: str, where: str) -> Settings:
        """`KTLS`, `+KTLS`, `-KTLS` in a list with commas."""
        found = self
        for word in value.split(","):
            if re.fullmatch(r"\+?ktls", word.strip(), re.IGNORECASE):
                found = replace(found, ask=Said("on", where))
            elif word.strip().lower() == "-ktls":
                found = replace(found, ask=Said("off", where))
        return found

    def _protocol(self, value: str, where: str) -> Settings:
        """`-TLSv1.3`, or `-ALL,TLSv1.2`: as far as it takes TLS 1.3 away."""
        words = [word.strip().lower() for word in value.split(",")]
        gone = "-tlsv1.3" in words or ("-all" in words and "tlsv1.3" not in words)
        return replace(self, highest=Said("TLSv1.2", where)) if gone else self
