"""The objects that a driver makes: queues, tables and streams, and the frames that go through them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from rig import BASE, Guest, at, got, put

READY = 1
MAC = (bytes.fromhex("0c42a1000001"), bytes.fromhex("0c42a1000002"))


def sized(name: str, extra: int = 0) -> bytearray:
    """Room for a command from its third word on, up to the array that ends it, and so many bytes of that."""
    return bytearray(at(name) - 8 + extra)


def made(said: bytes) -> int:
    """The number of what a command made."""
    return struct.unpack_from(">I", said, 8)[0] & 0xFFFFFF


def pages(start: int, count: int) -> bytes:
    """Addresses of consecutive pages of guest memory."""
    return struct.pack(f">{count}Q", *(BASE + start + 4096 * i for i in range(count)))


@dataclass
class Queue:
    """A queue of the guest: where it lies, and how far both sides are."""

    number: int
    start: int
    doorbell: int = 0
    next: int = 0
    posted: int = 0
    buffers: list[int] = field(default_factory=list)


def make_eq(guest: Guest, vector: int, mask: int) -> Queue:
    """An event queue of 64 entries."""
    start, body = guest.room(4096), sized("create_eq_in__pas", 8)
    context = at("create_eq_in__eq_context_entry") - 8
    put(body, context, "eqc__log_eq_size", 6)
    put(body, context, "eqc__intr", vector)
    mask_at = at("create_eq_in__event_bitmask") - 8
    body[mask_at : mask_at + 8] = mask.to_bytes(8, "big")
    body[-8:] = pages(start, 1)
    said = guest.command(0x301, 0, bytes(body))
    return Queue(got(said, 0, "create_eq_out__eq_number"), start)


def make_cq(guest: Guest, eq: int = 0) -> Queue:
    """A completion queue of 64 entries."""
    start, body = guest.room(4096), sized("create_cq_in__pas", 8)
    context = at("create_cq_in__cq_context") - 8
    put(body, context, "cqc__log_cq_size", 6)
    put(body, context, "cqc__c_eqn_or_apu_element", eq)
    body[-8:] = pages(start, 1)
    return Queue(got(guest.command(0x400, 0, bytes(body)), 0, "create_cq_out__cqn"), start)


def _work_queue(
    guest: Guest, context: int, kind: str, cq: Queue, log_size: int, log_stride: int
) -> tuple[bytearray, Queue]:
    wq = context + at(f"{kind}__wq")
    body = bytearray(wq + at("wq__pas") + 8)
    queue = Queue(0, guest.room(4096), guest.room(4096))
    put(body, context, f"{kind}__cqn", cq.number)
    put(body, wq, "wq__log_wq_sz", log_size)
    put(body, wq, "wq__log_wq_stride", log_stride)
    put(body, wq, "wq__dbr_addr", BASE + queue.doorbell)
    put(body, wq, "wq__wq_type", 1)
    body[-8:] = pages(queue.start, 1)
    return body, queue


def make_sq(guest: Guest, cq: Queue) -> Queue:
    """A send queue of 64 blocks, ready."""
    context = at("create_sq_in__ctx") - 8
    body, queue = _work_queue(guest, context, "sqc", cq, 6, 6)
    queue.number = made(guest.command(0x904, 0, bytes(body)))
    change = bytearray(at("modify_sq_in__ctx") - 8 + 64)
    put(change, -8, "modify_sq_in__sqn", queue.number)
    put(change, at("modify_sq_in__ctx") - 8, "sqc__state", READY)
    guest.command(0x905, 0, bytes(change))
    return queue


def make_rq(guest: Guest, cq: Queue, strips_vlan: bool = True) -> Queue:
    """A receive queue with 16 buffers of 2048 bytes, ready."""
    context = at("create_rq_in__ctx") - 8
    body, queue = _work_queue(guest, context, "rqc", cq, 4, 4)
    put(body, context, "rqc__vsd", not strips_vlan)
    queue.number = made(guest.command(0x908, 0, bytes(body)))
    change = bytearray(at("modify_rq_in__ctx") - 8 + 64)
    put(change, -8, "modify_rq_in__rqn", queue.number)
    put(change, at("modify_rq_in__ctx") - 8, "rqc__state", READY)
    guest.command(0x909, 0, bytes(change))
    start = guest.room(2048 * 16)
    for i in range(16):
        queue.buffers.append(start + 2048 * i)
        guest.memory[queue.start + 16 * i : queue.start + 16 * i + 16] = struct.pack(
            ">IIQ", 2048, 0x1000, BASE + start + 2048 * i
        )
    post(guest, queue, 16)
    return queue


def post(guest: Guest, queue: Queue, count: int) -> None:
    """Give receive buffers to the card."""
    queue.posted += count
    guest.memory[queue.doorbell : queue.doorbell + 4] = struct.pack(">I", queue.posted & 0xFFFF)


def make_tir(guest: Guest, rq: Queue, tls: bool = False, takes_own: int = 0) -> int:
    """A TIR that leads to one receive queue."""
    context = at("create_tir_in__ctx") - 8
    body = bytearray(context + 240)
    put(body, context, "tirc__inline_rqn", rq.number)
    put(body, context, "tirc__tls_en", tls)
    put(body, context, "tirc__self_lb_block", takes_own)
    return made(guest.command(0x900, 0, bytes(body)))


def lead_all_to(guest: Guest, tir: int, status: int = 0) -> None:
    """A root table whose one entry fits every frame; the command for the entry ends with this status."""
    table = got(guest.command(0x930, 0, bytes(56)), 0, "create_flow_table_out__table_id")
    body = bytearray(at("create_flow_group_in__match_criteria") - 8 + 512)
    put(body, -8, "create_flow_group_in__table_id", table)
    group = got(guest.command(0x933, 0, bytes(body)), 0, "create_flow_group_out__group_id")
    context = at("set_fte_in__flow_context") - 8
    body = bytearray(context + at("flow_context__destination") + 8)
    put(body, -8, "set_fte_in__table_id", table)
    put(body, context, "flow_context__group_id", group)
    put(body, context, "flow_context__action", 4)
    put(body, context, "flow_context__destination_list_size", 1)
    body[-8:] = struct.pack(">II", 2 << 24 | tir, 0)
    guest.command(0x936, 0, bytes(body), status=status)
    body = bytearray(56)
    put(body, -8, "set_flow_table_root_in__table_id", table)
    guest.command(0x92F, 0, bytes(body))


def set_link(guest: Guest, up: bool) -> None:
    """Bring the port up or down."""
    body = bytearray(8 + 16)
    body[0:4] = struct.pack(">HH", 0, 0x5006)
    put(body, 8, "paos_reg__admin_status", 1 if up else 2)
    guest.command(0x805, 0, bytes(body), 32)


def ring(guest: Guest, queue: Queue, wqe: bytes) -> None:
    """Post a WQE and ring the doorbell."""
    blocks = (len(wqe) + 63) // 64
    wqe = wqe.ljust(64 * blocks, b"\0")
    for i in range(blocks):
        place = queue.start + (queue.posted + i) % 64 * 64
        guest.memory[place : place + 64] = wqe[64 * i : 64 * i + 64]
    queue.posted += blocks
    guest.memory[queue.doorbell + 4 : queue.doorbell + 8] = struct.pack(">I", queue.posted & 0xFFFF)
    guest.write(0x20800, struct.pack(">II", 0, queue.number << 8))
    guest.read(0, 4)


def control(queue: Queue, opcode: int, size: int, modifier: int = 0, target: int = 0) -> bytes:
    """The control segment of a WQE of so many bytes; it wants a completion."""
    first = modifier << 24 | (queue.posted & 0xFFFF) << 8 | opcode
    return struct.pack(">IIHBBI", first, queue.number << 8 | size // 16, 0, 0, 8, target << 8)


def send(
    guest: Guest, queue: Queue, frame: bytes, mss: int = 0, tis: int = 0, sums: int = 0xC0, vlan: int = 0
) -> None:
    """Send a frame that lies in guest memory; more than 16 KiB of it in two pieces."""
    start = guest.room(len(frame))
    guest.memory[start : start + len(frame)] = frame
    pieces = [(start, min(len(frame), 16384)), (start + 16384, len(frame) - 16384)]
    data = b"".join(struct.pack(">IIQ", size, 0x1000, BASE + place) for place, size in pieces if size > 0)
    eth = struct.pack(">IBBHIHH", 0, sums, 0, mss, 0, 0x8000 if vlan else 0, vlan)
    head = control(queue, 0x0E if mss else 0x0A, 32 + len(data), target=tis)
    ring(guest, queue, head + eth + data)


def completion(guest: Guest, queue: Queue) -> bytes | None:
    """The next completion, if it is there."""
    place = queue.start + queue.next % 64 * 64
    entry = bytes(guest.memory[place : place + 64])
    if entry[63] >> 4 == 0 and not any(entry) or entry[63] & 1 != queue.next // 64 & 1:
        return None
    queue.next += 1
    return entry


def arrived(guest: Guest, cq: Queue, rq: Queue) -> list[tuple[bytes, bytes]]:
    """Completions and frames that have come."""
    found = []
    while entry := completion(guest, cq):
        place = rq.buffers[struct.unpack_from(">H", entry, 60)[0] % 16]
        size = struct.unpack_from(">I", entry, 44)[0]
        found.append((entry, bytes(guest.memory[place : place + size])))
        post(guest, rq, 1)
    return found


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def tcp(
    payload: bytes, seq: int = 1000, sums: bool = False, flags: int = 0x18, vlan: int = 0, to: int = 1
) -> bytes:
    """A TCP segment over IPv4; without `sums` its checksums are for the card to fill in."""
    ends = bytes([192, 0, 2, 1, 192, 0, 2, 2])
    head = struct.pack("!HHIIBBHHH", 40000, 4433, seq, 1, 5 << 4, flags, 5000, 0, 0)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, (40 + len(payload)) & 0xFFFF, 7, 0x4000, 64, 6, 0) + ends
    if sums:
        pseudo = ends + struct.pack("!BBH", 0, 6, 20 + len(payload))
        head = head[:16] + struct.pack("!H", checksum(pseudo + head + payload)) + head[18:]
        ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    tag = struct.pack("!HH", 0x8100, vlan) if vlan else b""
    return MAC[to] + MAC[0] + tag + b"\x08\0" + ip + head + payload


def sums_right(frame: bytes) -> bool:
    """Whether the checksums of an IPv4 TCP frame are right."""
    ip = frame[14:34]
    size = struct.unpack("!H", ip[2:4])[0] - 20
    segment = frame[34 : 34 + size]
    return checksum(ip) == 0 and checksum(ip[12:20] + struct.pack("!BBH", 0, 6, size) + segment) == 0


@dataclass
class Side:
    """A guest with queues, whose port is up."""

    guest: Guest
    tx_cq: Queue
    sq: Queue
    rx_cq: Queue
    rq: Queue
    tir: int

    def came(self) -> list[tuple[bytes, bytes]]:
        """Completions and frames that have come."""
        return arrived(self.guest, self.rx_cq, self.rq)


def side(guest: Guest, tls: bool = False, strips_vlan: bool = True, takes_own: int = 0) -> Side:
    """All that a guest needs to send and to receive."""
    tx_cq, rx_cq = make_cq(guest), make_cq(guest)
    sq, rq = make_sq(guest, tx_cq), make_rq(guest, rx_cq, strips_vlan)
    tir = make_tir(guest, rq, tls, takes_own)
    lead_all_to(guest, tir)
    set_link(guest, True)
    return Side(guest, tx_cq, sq, rx_cq, rq, tir)
