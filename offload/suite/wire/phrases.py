"""What the codes of docs/reference/wire.md mean to a person: problems with a hint, classes with a cause."""

from __future__ import annotations

# code: (what is the matter, what the number is, what to do about it)
PROBLEMS: dict[str, tuple[str, str, str]] = {
    "capture-damaged": (
        "the capture ends inside a frame, or is damaged there",
        "frame",
        "capture again, and let the capture program finish on its own (`wire capture` writes the end too)",
    ),
    "no-tls": (
        "the capture contains no TLS connection",
        "",
        "is this the right interface, and the right --port?",
    ),
    "too-many-connections": (
        "more than 65,536 connections",
        "",
        "capture for a shorter time, or give --port",
    ),
    "ambiguous-payload": (
        "several TLS connections but one payload: no comparison was made",
        "",
        "give the --port of the connection that carried it",
    ),
    "no-syn": (
        "the beginning of the connection is not in the capture",
        "",
        "start the capture before the connection",
    ),
    "unread-tcp": (
        "TCP between these addresses is unreadable: a fragment, or a damaged or truncated header",
        "frame",
        "inspect that frame; capture whole frames (`wire capture` does)",
    ),
    "second-syn": ("a SYN with another number, in a connection that is not closed", "frame", ""),
    "stray-data": (
        "payload outside the stream: its sequence number is far off, or it is on a RST",
        "frame",
        "inspect that frame: a sender does not do this, but a card may",
    ),
    "cut-segment": (
        "the capture truncated a segment, so the rest was not compared",
        "stream offset",
        "capture whole frames (`wire capture` does)",
    ),
    "urgent": ("a segment is marked urgent, which TLS never uses", "stream offset", ""),
    "second-fin": ("the stream has two different ends", "stream offset", ""),
    "clear-record": ("a plaintext record where none is allowed", "stream offset", ""),
    "change-cipher-spec": (
        "a ChangeCipherSpec that is not the one byte 1, or too late",
        "stream offset",
        "",
    ),
    "tail": (
        "bytes follow the last whole record, but the stream does not end",
        "stream offset",
        "stop the capture after both ends have closed",
    ),
    "no-key": (
        "no secret for this connection in the keylog",
        "",
        "did an end of this connection write it (SSLKEYLOGFILE), and is it complete?",
    ),
    "no-hello": (
        "it does not begin with ClientHello and ServerHello",
        "",
        "is this TLS, seen from its start?",
    ),
    "version": ("neither TLS 1.2 nor TLS 1.3", "", ""),
    "cipher": (
        "an unsupported cipher suite",
        "",
        "kernel TLS has AES-GCM and ChaCha20-Poly1305 only",
    ),
    "gap": (
        "bytes are missing from the capture",
        "after stream offset",
        "capture without drops: closer to the wire, with a larger buffer (`wire capture --buffer`)",
    ),
    "reset": ("the connection was reset, not closed", "", "let both ends close it cleanly"),
    "no-close": (
        "the end of the stream is not in the capture",
        "",
        "stop the capture after both ends have closed; or give the payload, which must then be complete",
    ),
    "data-after-fin": ("bytes follow the end of the stream", "stream offset", ""),
    "payload-not-covered": (
        "the capture holds less than the payload",
        "payload offset",
        "is it the payload of this connection, and is the capture complete?",
    ),
    "too-much-reorder": ("more than 65,536 segments waited for an earlier one", "stream offset", ""),
    "old-retransmission": (
        "a retransmission is older than what the native core remembers",
        "stream offset",
        "--engine python remembers all",
    ),
    "handshake-too-long": ("a handshake of more than 128 KiB", "stream offset", ""),
    "clear-alert": ("a plaintext alert, before protection began", "stream offset", "the handshake failed"),
    "renegotiation": ("the connection renegotiates, which is not supported", "stream offset", ""),
    "early-data": ("TLS 1.3 early data, which is not supported", "stream offset", ""),
}

CAUSES: dict[str, str] = {
    "bit flip": "one bit is wrong",
    "wrong sequence": "made with the sequence number of another record",
    "wrong key": "made with another key of this connection",
    "replay": "bytes of an earlier offset were sent again",
    "shift": "the right bytes at the wrong offset",
    "wrong payload": "correctly encrypted, but not the payload",
    "zero run": "zeros instead of ciphertext",
    "plaintext": "payload went out in PLAINTEXT, or the capture point is on the host's side of the card",
    "wrong keystream": "encrypted with the keystream of another offset",
    "bad tag": "the ciphertext is right, but its authentication tag is wrong",
    "garbage": "bytes of unknown origin",
    "unauthentic": "a receiver would reject this record; use --payload to find the cause",
    "malformed": "an invalid record header",
    "nonce step": "the explicit nonce is not the previous one plus 1",
    "nonce reuse": "a nonce was used twice with one key, which breaks AES-GCM",
    "truncation": "the stream was closed before it was complete",
    "excess": "more application data than the payload contains",
    "lost framing": "no record begins where one must",
    "differs": "differs from the first transmission",
}
