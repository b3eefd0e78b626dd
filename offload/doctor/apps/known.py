"""Known bugs of TLS libraries and programs that kernel TLS brings out, by the version that is installed."""

from __future__ import annotations

from offload.doctor.apps.model import App, Service
from offload.doctor.kernel import facts
from offload.doctor.versions import copies, dots
from offload.errata.kernel import Series

HTTP2_EIO = (3, 2)  # nginx issue 651: 3.1.6 does not have it


def moving_buffer(app: App, service: Service) -> None:
    """Note a service of a program that may repeat a write from another address: stunnel, HAProxy."""
    if service.ask.text != "on" or copies(app.library_version()):
        return
    service.notes.add(
        "D829",
        f"{app.shown} runs with {app.library}; {service.where}",
        ["tx"],
        name=service.title(),
        library=app.library,
    )


def lingering_http2(app: App, service: Service, http2: str, linger: str) -> None:
    """Note an nginx that reads on after HTTP/2 has ended: `http2` and `linger` are places, or ''."""
    if service.ask.text == "on" and http2 and linger and app.library_version() >= HTTP2_EIO:
        service.notes.add(
            "D830",
            f"{http2}: HTTP/2; lingering_close: {linger}; {app.library}",
            ["rx"],
            name=service.title(),
            library=app.library,
            put=service.put,
        )


def keys_change(service: Service, series: Series | None) -> None:
    """Note TLS 1.3 under kernel TLS on a kernel that cannot change the keys of a connection."""
    first = tuple(facts()["rekey"])
    if (
        service.ask.text == "on"
        and service.stop
        and service.offers("1.3")
        and series is not None
        and series < first
    ):
        service.notes.add(
            "D832",
            f"Linux {dots(series)}; {service.versions.where}",
            name=service.title(),
            kernel=dots(series),
            first=dots(first),
        )
