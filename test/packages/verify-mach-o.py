"""Reads a Mach-O executable by Apple's headers, with nothing of the signer's, and says what its ad-hoc signature is worth.

Prints one line and ends with 0 when the signature is whole; with 1 and the reason when it is not.
"""
import hashlib
import struct
import sys


def main(path):
    with open(path, "rb") as file:
        data = file.read()
    magic, _, _, _, count, size, _, _ = struct.unpack_from("<8I", data)
    assert magic == 0xFEEDFACF, "not a 64-bit Mach-O file"
    at, segments, signature, first = 32, {}, None, len(data)
    for _ in range(count):
        kind, length = struct.unpack_from("<2I", data, at)
        assert length >= 8 and length % 8 == 0, "a load command of a strange size"
        if kind == 0x19:
            name, address, memory, offset, used, _, _, sections = struct.unpack_from("<16s4Q2iI", data, at + 8)
            segments[name.rstrip(b"\0")] = (address, memory, offset, used)
            for index in range(sections):
                (begins,) = struct.unpack_from("<I", data, at + 72 + index * 80 + 48)
                first = min(first, begins or first)
        if kind == 0x1D:
            assert signature is None, "two signatures"
            signature = struct.unpack_from("<2I", data, at + 8)
        at += length
    assert at == 32 + size <= first, "load commands run into what they load"
    assert signature, "no signature"
    begin, length = signature
    _, memory, offset, used = segments[b"__LINKEDIT"]
    assert begin % 16 == 0 and begin >= offset, "the signature is not in __LINKEDIT"
    assert begin + length == offset + used == len(data), "the signature is not the end of the file"
    assert memory >= used and memory % 0x1000 == 0, "__LINKEDIT is larger than the memory it gets"
    ends = sorted((start, start + long) for start, long, _, _ in segments.values())
    assert all(one[1] <= other[0] for one, other in zip(ends, ends[1:])), "segments overlap in memory"

    blob = data[begin:]
    kind, blob_size, slots = struct.unpack_from(">3I", blob)
    assert kind == 0xFADE0CC0 and blob_size <= length and slots == 1, "not one blob in the signature"
    slot, where = struct.unpack_from(">2I", blob, 12)
    assert slot == 0, "the blob is no code directory"
    directory = blob[where:blob_size]
    kind, own, version, flags, hashes, name, special, pages, limit = struct.unpack_from(">9I", directory)
    hash_size, hash_type, _, page_bits = struct.unpack_from(">4B", directory, 36)
    assert kind == 0xFADE0C02 and own == len(directory), "a code directory of a strange size"
    assert (hash_type, hash_size, special) == (2, 32, 0) and flags == 2, "not ad hoc, or not by SHA-256 alone"
    assert limit == begin, "not all of the file is signed"
    base, text, main_binary = struct.unpack_from(">3Q", directory, 64)
    assert version >= 0x20400 and (base, text) == segments[b"__TEXT"][2:] and main_binary == 1, "another __TEXT"
    page = 1 << page_bits
    assert pages == (limit + page - 1) // page and hashes + pages * 32 == own, "not a hash for each page"
    for number in range(pages):
        found = hashlib.sha256(data[number * page : min((number + 1) * page, limit)]).digest()
        assert found == directory[hashes + number * 32 : hashes + number * 32 + 32], f"page {number} differs"
    identifier = directory[name : directory.index(b"\0", name)].decode()
    print(f"{identifier}: {pages} pages of {page} bytes, all as signed")


try:
    main(sys.argv[1])
except (AssertionError, KeyError, IndexError, ValueError, struct.error) as error:
    print(error)
    sys.exit(1)
