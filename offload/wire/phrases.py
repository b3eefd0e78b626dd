"""What the codes of docs/wire.md mean to a person: problems with a hint, classes with a cause."""

from __future__ import annotations

# code: (what is the matter, what the number is, what to do about it)
PROBLEMS: dict[str, tuple[str, str, str]] = {
    "capture-damaged": (
        "the capture ends inside a frame, or is damaged there",
        "frame",
        "capture again, and let the capturing program end by itself (`wire capture` writes the end too)",
    ),
    "no-tls": (
        "there is no TLS connection in the capture",
        "",
        "is this the right interface, and the right --port?",
    ),
    "too-many-connections": (
        "more than 65,536 connections",
        "",
        "capture for a shorter time, or give --port",
    ),
    "ambiguous-payload": (
        "several TLS connections, and one payload: it was compared with none",
        "",
        "give --port of the connection that carried it",
    ),
    "no-syn": (
        "the beginning of the connection is not in the capture",
        "",
        "start the capture before the connection",
    ),
    "unread-tcp": (
        "TCP between these addresses cannot be read: a fragment, or a damaged or cut header",
        "frame",
        "look at that frame; capture whole frames (`wire capture` does)",
    ),
    "second-syn": ("a SYN with another number, in a connection that is not closed", "frame", ""),
    "stray-data": (
        "payload that has no place in the stream: its number is far away, or it is on a RST",
        "frame",
        "look at that frame: no sender does this, a card may",
    ),
    "cut-segment": (
        "the capture cut a segment, whose other bytes nobody compared",
        "stream offset",
        "capture whole frames (`wire capture` does)",
    ),
    "urgent": ("a segment is marked urgent, which TLS never is", "stream offset", ""),
    "second-fin": ("the stream ends at two places", "stream offset", ""),
    "clear-record": ("a record in clear where none may be", "stream offset", ""),
    "change-cipher-spec": (
        "a ChangeCipherSpec that is not the one byte 1, or too late",
        "stream offset",
        "",
    ),
    "tail": (
        "there are bytes behind the last whole record, and no end of the stream",
        "stream offset",
        "stop the capture after both ends have closed",
    ),
    "no-key": (
        "no secret for this connection in the keylog",
        "",
        "was it written by an end of this connection (SSLKEYLOGFILE), and to its end?",
    ),
    "no-hello": (
        "it does not begin with ClientHello and ServerHello",
        "",
        "is this TLS, seen from its start?",
    ),
    "version": ("neither TLS 1.2 nor TLS 1.3", "", ""),
    "cipher": (
        "a cipher suite that is not checked",
        "",
        "kernel TLS has AES-GCM and ChaCha20-Poly1305 only",
    ),
    "gap": (
        "bytes are missing from the capture",
        "after stream offset",
        "capture without drops: closer to the wire, with a larger buffer (`wire capture --buffer`)",
    ),
    "reset": ("the connection was reset, not closed", "", "let both ends close it properly"),
    "no-close": (
        "the end of the stream is not in the capture",
        "",
        "stop the capture after both ends have closed; or give the payload, which then has to be complete",
    ),
    "data-after-fin": ("there are bytes after the end of the stream", "stream offset", ""),
    "payload-not-covered": (
        "the capture holds less than the payload",
        "payload offset",
        "is it the payload of this connection, and the capture complete?",
    ),
    "too-much-reorder": ("more than 65,536 pieces waited for an earlier one", "stream offset", ""),
    "old-retransmission": (
        "a retransmission is older than what the native core remembers",
        "stream offset",
        "--engine python remembers all",
    ),
    "handshake-too-long": ("a handshake of more than 128 KiB", "stream offset", ""),
    "clear-alert": ("an alert in clear, before protection began", "stream offset", "the handshake failed"),
    "renegotiation": ("the connection renegotiates, which is not followed", "stream offset", ""),
    "early-data": ("TLS 1.3 early data, which is not followed", "stream offset", ""),
}

CAUSES: dict[str, str] = {
    "bit flip": "one bit is not what it should be",
    "wrong sequence": "made with the sequence number of another record",
    "wrong key": "made with another key of this connection",
    "replay": "bytes of an earlier place were sent again",
    "shift": "the right bytes at the wrong place",
    "wrong payload": "properly encrypted, but not what was to be sent",
    "zero run": "zeros where ciphertext belongs",
    "plaintext": "payload went out in CLEAR, or this tap is on the host's side of the card",
    "wrong keystream": "encrypted with the keystream of another place",
    "bad tag": "the ciphertext is right, its authentication tag is not",
    "garbage": "bytes of unknown origin",
    "unauthentic": "a receiver would refuse this record; with --payload the cause can be named",
    "malformed": "a record that cannot be one",
    "nonce step": "the explicit nonce is not the one before plus 1",
    "nonce reuse": "a nonce was used twice under one key, which breaks AES-GCM",
    "truncation": "the stream was closed before it was complete",
    "excess": "more application data than the payload has",
    "lost framing": "no record begins where one has to",
    "differs": "not what was sent there first",
}
