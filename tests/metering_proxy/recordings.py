"""Recordings of silence, written by hand: what a header says and what lies behind it."""

import struct


def wav(seconds: float, *, rate: int = 8_000, claimed_bytes: int | None = None) -> bytes:
    """Plain samples; `claimed_bytes`: what the header says of their size, however many there are."""
    data = bytes(int(seconds * rate) * 2)
    size = len(data) if claimed_bytes is None else claimed_bytes
    form = struct.pack("<HHIIHH", 1, 1, rate, rate * 2, 2, 16)
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", size)
    return b"RIFF" + struct.pack("<I", 4 + len(chunks) + len(data)) + b"WAVE" + chunks + data


def flac(samples: int, rate: int = 44_100) -> bytes:
    """A FLAC header that counts its samples."""
    packed = rate << 44 | 1 << 41 | 15 << 36 | samples
    return b"fLaC\x80\x00\x00\x22" + bytes(10) + packed.to_bytes(8, "big") + bytes(16)


def mp3(frames: int) -> bytes:
    """MPEG 1 layer III, 128 kbit/s, 44.1 kHz: 417 bytes and 1,152 samples a frame."""
    return (b"\xff\xfb\x90\x00" + bytes(413)) * frames


def opus(position: int) -> bytes:
    """Two pages: the head of an Opus stream, and one that ends at `position` (of 48,000 a second)."""

    def page(at: int, packet: bytes) -> bytes:
        return (
            b"OggS\x00\x00" + struct.pack("<qIII", at, 1, 0, 0) + bytes([1, len(packet)]) + packet
        )

    return page(0, b"OpusHead" + bytes(11)) + page(position, bytes(20))


def mp4(length: int, scale: int, track: int | None = None) -> bytes:
    """A movie header, and a track that may say otherwise."""

    def box(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I4s", len(content) + 8, kind) + content

    header = bytes(12) + struct.pack(">II", scale, length) + bytes(80)
    inner = box(b"mvhd", header)
    if track is not None:
        media = box(b"mdhd", bytes(12) + struct.pack(">II", scale, track) + bytes(4))
        inner += box(b"trak", box(b"mdia", media))
    return box(b"ftyp", b"M4A \x00\x00\x00\x00") + box(b"moov", inner) + box(b"mdat", bytes(64))


def form(
    recording: bytes, *, model: str = "whisper-1", boundary: str = "b0undary", **more: str
) -> bytes:
    """A multipart body with a recording."""
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in {"model": model, **more}.items()
    ]
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n'
    parts.append(f"{head}Content-Type: audio/wav\r\n\r\n".encode() + recording + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


FORM_TYPE = "multipart/form-data; boundary=b0undary"
