"""A packed answer, unpacked for the meter as it comes; what its caller gets stays packed."""

import zlib

_READABLE = ("gzip", "x-gzip", "deflate")
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


class Unpacker:
    """Of one answer with that content encoding. At most `most_bytes` come out at once: it may be a trap.

    `plain`: it is not packed. `knows`: whether it is packed in a way that can be read. `broken`: from some
    point on nothing came out that can be trusted.
    """

    __slots__ = ("_member", "_most_bytes", "broken", "knows", "plain")

    def __init__(self, encoding: str, most_bytes: int) -> None:
        self.plain = encoding in ("", "identity")
        self.knows = self.plain or encoding in _READABLE
        self.broken = False
        self._most_bytes = most_bytes
        self._member = None if self.plain else zlib.decompressobj(_GZIP_OR_ZLIB)

    def feed(self, chunk: bytes) -> bytes:
        """What `chunk` unpacks to. Members may follow each other: each event of a stream may be one."""
        if self._member is None:
            return chunk
        parts: list[bytes] = []
        room = self._most_bytes
        while chunk and not self.broken:
            if self._member.eof:
                chunk = chunk.lstrip(b"\0")  # padding
                if not chunk:
                    break
                self._member = zlib.decompressobj(_GZIP_OR_ZLIB)
            try:
                parts.append(self._member.decompress(chunk, room + 1))
            except zlib.error:
                self.broken = True
                break
            room -= len(parts[-1])
            self.broken = room < 0 or bool(self._member.unconsumed_tail)
            chunk = self._member.unused_data
        return b"".join(parts)

    def end(self) -> None:
        """Nothing more comes: a member that has not ended is broken off."""
        self.broken = self.broken or not (self._member is None or self._member.eof)
