"""Commands of OpenSSL's configuration (SSL_CONF_cmd): what they make of kernel TLS, versions and ciphers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from offload.doctor.apps.model import Said


@dataclass(frozen=True)
class Settings:
    """What commands have set so far; None where none of them spoke. `off`: an -Option came last."""

    ask: Said | None = None
    lowest: Said | None = None
    highest: Said | None = None
    ciphers: Said | None = None
    suites: Said | None = None

    def after(self, command: str, value: str, where: str) -> Settings:
        """What one more command makes of it (case does not matter, SSL_CONF_cmd(3))."""
        said = Said(value, where)
        match command.lower():
            case "options":
                return self._options(value, where)
            case "minprotocol":
                return replace(self, lowest=said)
            case "maxprotocol":
                return replace(self, highest=said)
            case "protocol":
                return self._protocol(value, where)
            case "cipherstring":
                return replace(self, ciphers=said)
            case "ciphersuites":
                return replace(self, suites=said)
        return self

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
