"""Decompresses a batch, up to a limit: a few kilobytes may say that they are gigabytes."""

from __future__ import annotations

import io
import zlib

import lz4.frame
import snappy
import zstandard

LIMIT_BYTES = 32 * 1024 * 1024
"""Four times the largest record that we accept."""

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class TooLarge(Exception):
    pass


def decompress(codec: int, data: bytes, limit: int = LIMIT_BYTES) -> bytes:
    """The content of a batch with this compression type.

    Raises `TooLarge` once it is over `limit` bytes, and any other exception when it cannot be decompressed.
    """
    return _DECODERS[codec](data, limit)


def _gzip(data: bytes, limit: int) -> bytes:
    pieces: list[bytes] = []
    while data:  # one or more members
        member = zlib.decompressobj(wbits=31)
        pieces.append(member.decompress(data, limit + 1))
        limit = _left(limit, pieces[-1])
        if not member.eof:
            raise EOFError("it ends in the middle")
        data = member.unused_data.lstrip(b"\x00")
    return b"".join(pieces)


def _lz4(data: bytes, limit: int) -> bytes:
    pieces: list[bytes] = []
    while data:  # one or more frames
        frame = lz4.frame.LZ4FrameDecompressor()
        pieces.append(frame.decompress(data, limit + 1))
        limit = _left(limit, pieces[-1])
        if not frame.eof:
            raise EOFError("it ends in the middle")
        data = frame.unused_data or b""
    return b"".join(pieces)


def _zstd(data: bytes, limit: int) -> bytes:
    pieces: list[bytes] = []
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
        while piece := reader.read(limit + 1):
            pieces.append(piece)
            limit = _left(limit, piece)
    return b"".join(pieces)


def _snappy(data: bytes, limit: int) -> bytes:
    """One block, or blocks after a header, each with its length: the format of Java's library."""
    if not data.startswith(_XERIAL):
        return _snappy_block(data, limit)
    pieces: list[bytes] = []
    at = _XERIAL_HEADER_BYTES
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        pieces.append(_snappy_block(data[at + 4 : end], limit))
        limit = _left(limit, pieces[-1])
        at = end
    return b"".join(pieces)


def _snappy_block(block: bytes, limit: int) -> bytes:
    """It starts with its length when decompressed, seven bits a byte, the lowest first."""
    length = shift = 0
    for byte in block[:5]:
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if length > limit:
        raise TooLarge
    content: bytes = snappy.decompress(block)
    return content


def _left(limit: int, piece: bytes) -> int:
    if len(piece) > limit:
        raise TooLarge
    return limit - len(piece)


_DECODERS = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
