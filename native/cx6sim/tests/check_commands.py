"""The command queue: mailboxes are read and written, and what is wrong gets its own status."""

from __future__ import annotations

import struct

from parts import put
from rig import BASE, FIELDS, Guest, Rig, at, got

BAD_OP, BAD_PARAM, BAD_RESOURCE = 2, 3, 5


def number(value: int) -> bytes:
    """The third and fourth word of a command that names an object."""
    return struct.pack(">II", value, 0)


def check_the_capabilities_have_tls(rig: Rig) -> None:
    """QUERY_HCA_CAP says TLS both ways, one port, and 16 bytes of header before it all."""
    with rig.pair() as (_, guest, _):
        said = guest.command(0x100, 1, bytes(8), 16 + 4096)
        assert all(got(said, 16, f"cmd_hca_cap__{name}") == 1 for name in ("tls_tx", "tls_rx", "num_ports"))
        assert got(guest.command(0x100, 0x11 << 1, bytes(8), 272), 16, "tls_cap__tls_1_2_aes_gcm_256") == 1
        assert not any(guest.command(0x100, 0x3E << 1, bytes(8), 16 + 256)[16:]), "of what it lacks: zeros"


def ask_register(guest: Guest, number: int, body: bytes, status: int = 0) -> bytes:
    """Read a register, which begins at byte 16 of the answer."""
    command = struct.pack(">HHI", 0, number, 0) + body
    return guest.command(0x805, 1, command, 16 + len(body), status)


def check_the_firmware_tells_its_version(rig: Rig) -> None:
    """As `devlink dev info` asks: which registers there are, the boot image, its version; no other part."""
    mcam, mcqs, mcqi = 0x907F, 0x9060, 0x9061
    with rig.pair() as (_, guest, _):
        said = ask_register(guest, mcam, bytes(72))
        mask = 16 + FIELDS["mcam_reg__mng_access_reg_cap_mask"][0] // 8
        assert said[mask : mask + 16] == bytes((0, 0, 0, 0x1F)) + bytes(7) + bytes((1,)) + bytes(4)
        assert not any(ask_register(guest, mcam, bytes((0, 0, 0, 1)) + bytes(68))[mask:]), "of another group"
        said = ask_register(guest, mcqs, bytes(16))
        assert [got(said, 16, f"mcqs_reg__{name}") for name in ("identifier", "last_index_flag")] == [1, 1]
        body = bytearray(24 + 124)
        put(body, 0, "mcqi_reg__info_type", 1)
        put(body, 0, "mcqi_reg__data_size", 124)
        data = 16 + FIELDS["mcqi_reg__data"][0] // 8
        version = got(ask_register(guest, mcqi, bytes(body)), data, "mcqi_version__version")
        low, high = guest.word(4) & 0xFFFF, guest.word(0)
        assert version == (high & 0xFFFF) << 24 | (high >> 16) << 16 | low, (
            "the initialization segment has another"
        )
        put(body, 0, "mcqi_reg__info_type", 0)
        assert got(ask_register(guest, mcqi, bytes(body)), data, "mcqi_cap__supported_info_bitmask") == 2
        put(body, 0, "mcqi_reg__component_index", 1)
        ask_register(guest, mcqi, bytes(body), BAD_PARAM)
        ask_register(guest, mcqs, bytes((0, 0, 0, 1)) + bytes(12), BAD_PARAM)
        (
            ask_register(guest, mcqi, bytes(24)),
            ask_register(guest, mcqi, bytes(1)),
            ask_register(guest, mcam, b""),
        )


def check_the_port_tells_its_registers(rig: Rig) -> None:
    """PCAM names PPCNT, without which the driver asks for no counter of the port; no other group is there."""
    mask = FIELDS["pcam_reg__port_access_reg_cap_mask"][0] // 8
    with rig.pair() as (_, guest, _):
        assert ask_register(guest, 0x507F, bytes(72))[16 + mask :] == bytes(14) + b"\1\0" + bytes(
            72 - mask - 16
        )
        assert not any(ask_register(guest, 0x507F, bytes((0, 0, 0, 1)) + bytes(68))[16 + mask :])
        ask_register(guest, 0x507F, b"")


def check_pages_come_back(rig: Rig) -> None:
    """The pages that the driver gives are those that it gets back, each once."""
    with rig.pair() as (_, guest, _):
        pages = [BASE + 0x1000 * i for i in range(100)]
        list_ = b"".join(struct.pack(">Q", page) for page in pages)
        guest.command(0x108, 1, struct.pack(">II", 0, len(pages)) + list_)
        back: list[int] = []
        while len(back) < 100:
            said = guest.command(0x108, 2, struct.pack(">II", 0, 30), 16 + 8 * 30)
            count = got(said, 0, "manage_pages_out__output_num_entries")
            assert count, "it keeps pages"
            back += struct.unpack_from(f">{count}Q", said, 16)
        assert sorted(back) == pages
        said = guest.command(0x108, 2, struct.pack(">II", 0, 30), 16 + 8 * 30)
        assert got(said, 0, "manage_pages_out__output_num_entries") == 0


def check_objects_have_numbers(rig: Rig) -> None:
    """What is made has a number of its own, and is gone when it is destroyed."""
    with rig.pair() as (_, guest, _):
        numbers = [struct.unpack_from(">I", guest.command(0x912, 0, bytes(200)), 8)[0] for _ in range(300)]
        assert len(set(numbers)) == 300
        for tis in numbers:
            guest.command(0x914, 0, number(tis))
        guest.command(0x914, 0, number(numbers[0]), status=BAD_RESOURCE)
        again = struct.unpack_from(">I", guest.command(0x912, 0, bytes(200)), 8)[0]
        assert again == min(numbers), "a number is free again"


def check_what_is_wrong_is_refused(rig: Rig) -> None:
    """An unknown opcode, queues of impossible size, pages that are not listed, objects that are not there."""
    with rig.pair() as (model, guest, _):
        guest.command(0xBAD, status=BAD_OP)
        assert model.control({"card": 0})["unknown"] == 1
        guest.command(0x401, 0, number(77), status=BAD_RESOURCE)
        guest.command(0x301, 0, bytes(at("create_eq_in__pas") - 8), status=BAD_PARAM)  # no page at all
        guest.command(0x933, 0, bytes(1000), status=BAD_RESOURCE)
        guest.command(0x108, 1, struct.pack(">II", 0, 2**32 - 1), status=BAD_PARAM)
        guest.command(0xA00, 0, bytes(100), status=BAD_PARAM)
        body = bytearray(at("create_cq_in__pas") - 8 + 8)
        context = at("create_cq_in__cq_context") - 8
        body[context + FIELDS["cqc__log_cq_size"][0] // 8] = 0x1F
        guest.command(0x400, 0, bytes(body), status=BAD_PARAM)


def check_a_broken_chain_of_mailboxes_is_not_followed(rig: Rig) -> None:
    """A wrong token, a chain that ends early or leads out of memory, and lengths of gigabytes."""
    with rig.pair() as (_, guest, _):
        query = struct.pack(">HHHHQ", 0x100, 0, 0, 1, 0)
        assert guest.raw_command(query, 16 + 4096, token=8)[0] == 2
        for ilen, olen, box in (
            (2**31, 16, 0),
            (16, 2**31, 0),
            (64, 16, 0),
            (64, 16, 2**63),
            (64, 16, BASE - 8),
        ):
            entry = struct.pack(">B3xIQ", 7, ilen, box) + query + bytes(16)
            guest.memory[0:64] = entry + struct.pack(">QIBBBB", box, olen, 9, 0, 0, 1)
            guest.write(0x18, (1).to_bytes(4, "big"))
            assert guest.memory[63] >> 1, (ilen, olen, box)
        assert guest.raw_command(query, 16 + 4096)[0] == 0


def check_reset_makes_it_new(rig: Rig) -> None:
    """After a reset of the function nothing is left of what was made."""
    with rig.pair() as (model, guest, _):
        guest.command(0x912, 0, bytes(200))
        assert model.control({"card": 0})["tis"] == 1
        guest.ask(13)
        assert model.control({"card": 0})["tis"] == 0
        guest.start()
        guest.command(0x104)
