"""Reads the names that a 64-bit little-endian ELF library exports."""

import struct

SHT_DYNSYM = 11
SHN_UNDEF, SHN_ABS = 0, 0xFFF1  # version nodes are absolute symbols


def exported_names(path):
    """The sorted names of the library's defined dynamic symbols, version nodes left out."""
    with open(path, "rb") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
        section_offset, = struct.unpack_from("<Q", header, 0x28)
        entry_size, count = struct.unpack_from("<HH", header, 0x3A)

        def read(offset, size):
            file.seek(offset)
            return file.read(size)

        sections = [struct.unpack_from("<IIQQQQIIQQ", read(section_offset + i * entry_size, 64))
                    for i in range(count)]
        for _, kind, _, _, offset, size, link, *_ in sections:
            if kind == SHT_DYNSYM:
                strings = read(sections[link][4], sections[link][5])
                return sorted(_defined(read(offset, size), strings))
    raise ValueError(f"{path} has no dynamic symbols")


def _defined(symbols, strings):
    for at in range(0, len(symbols), 24):
        name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", symbols, at)
        if section not in (SHN_UNDEF, SHN_ABS):
            yield strings[name:strings.index(b"\0", name)].decode()
