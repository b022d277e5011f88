"""How long a recording lasts, from its header. None where that cannot be told, or the header contradicts itself.

Each is read for the longest that a decoder could find in the file: a header that claims less than its bytes hold
is not believed.
"""

import struct
from fractions import Fraction

_MOST_S = 24 * 3600


def seconds(data: bytes) -> Fraction | None:
    """The duration of a WAV, FLAC, MP3, Ogg or MP4 recording in seconds, exactly."""
    try:
        found = _read(data)
    except (struct.error, IndexError, ZeroDivisionError):
        return None
    return found if found is not None and 0 < found <= _MOST_S else None


def _read(data: bytes) -> Fraction | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return _wav(data)
    if data[:4] == b"fLaC":
        return _flac(data)
    if data[:4] == b"OggS":
        return _ogg(data)
    if data[4:8] == b"ftyp":
        return _mp4(data, 0, len(data))
    return _mp3(data)


def _wav(data: bytes) -> Fraction | None:
    """Plain samples only: all bytes behind the header, at the rate that the format itself gives."""
    at, frame, rate = 12, 0, 0
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        at += 8
        if kind == b"fmt ":
            form, channels, rate, byte_rate, frame, bits = struct.unpack_from("<HHIIHH", data, at)
            if form not in (1, 3) or frame != channels * bits // 8 or byte_rate != rate * frame:
                return None
        elif kind == b"data":
            return Fraction(len(data) - at, frame * rate)
        at += size + size % 2
    return None


def _flac(data: bytes) -> Fraction | None:
    """The stream's own count of samples; a FLAC file that does not know it is not read on."""
    if data[4] & 0x7F != 0:
        return None
    packed = int.from_bytes(data[18:26], "big")
    rate, samples = packed >> 44, packed & ((1 << 36) - 1)
    return Fraction(samples, rate)


_MP3_RATES = (44_100, 48_000, 32_000)
_MP3_KBITS = (
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),  # MPEG 1
    (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),  # MPEG 2 and 2.5
)


def _mp3(data: bytes) -> Fraction | None:
    """Every frame counted, since what a first frame says of the others need not be true."""
    at = 0
    if data[:3] == b"ID3":
        at = 10 + sum((data[6 + n] & 0x7F) << (21 - 7 * n) for n in range(4))
    total = Fraction(0)
    while at + 4 <= len(data) and data[at : at + 3] != b"TAG":
        head = int.from_bytes(data[at : at + 4], "big")
        version, layer = head >> 19 & 3, head >> 17 & 3
        bits, rate = head >> 12 & 15, head >> 10 & 3
        if head >> 21 != 0x7FF or version == 1 or layer != 1 or bits in (0, 15) or rate == 3:
            return None
        hertz = _MP3_RATES[rate] >> (0 if version == 3 else 1 if version == 2 else 2)
        samples = 1152 if version == 3 else 576
        kbits = _MP3_KBITS[version != 3][bits]
        total += Fraction(samples, hertz)
        at += samples // 8 * kbits * 1000 // hertz + (head >> 9 & 1)
    return total


def _ogg(data: bytes) -> Fraction | None:
    """The largest position that any page names, at the rate of the stream's first packet."""
    first = data[27 + data[26] :]
    if first.startswith(b"OpusHead"):
        rate = 48_000
    elif first.startswith(b"\x01vorbis"):
        rate = struct.unpack_from("<I", first, 12)[0]
    else:
        return None
    largest, at = 0, 0
    while (at := data.find(b"OggS", at)) >= 0:
        position = struct.unpack_from("<q", data, at + 6)[0]
        largest = max(largest, position)
        at += 4
    return Fraction(largest, rate)


def _mp4(data: bytes, at: int, end: int) -> Fraction | None:
    """The longest of the movie's and its tracks' durations."""
    longest: Fraction | None = None
    while at + 8 <= end:
        size, kind = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            size, head = struct.unpack_from(">Q", data, at + 8)[0], 16
        size = size or end - at
        if size < head:
            return None
        inner: Fraction | None = None
        if kind in (b"moov", b"trak", b"mdia"):
            inner = _mp4(data, at + head, min(end, at + size))
        elif kind in (b"mvhd", b"mdhd"):
            inner = _mp4_header(data, at + head)
        longest = max(filter(None, (longest, inner)), default=None)
        at += size
    return longest


def _mp4_header(data: bytes, at: int) -> Fraction | None:
    if data[at] == 1:
        scale, length = struct.unpack_from(">IQ", data, at + 20)
    else:
        scale, length = struct.unpack_from(">II", data, at + 12)
    return Fraction(length, scale)
