"""Sealing of secrets at rest: AES-256-GCM with a key id and a bound context.

The context (table, row, field) is authenticated, so that a sealed value cannot be moved to another
row. Nonces are 96 random bits (NIST SP 800-38D, 8.2.2).
"""

import base64
import hashlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from infra.kit.errors import AlcoveError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


class Sealer:
    """Seals with the current key, opens with any key that it knows."""

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        if current not in keys:
            raise AlcoveError("invalid", f"sealing key {current!r} is not among the keys given")
        self._keys = dict(keys)
        self._current = current

    @classmethod
    def from_secrets(cls, *secrets: str) -> "Sealer":
        """A sealer from deployment secrets, the current one first, older ones after it."""
        keys = {}
        for text in secrets:
            key = hashlib.sha256(b"alcove sealing\0" + text.encode()).digest()
            keys[hashlib.sha256(key).hexdigest()[:8]] = key
        return cls(keys, next(iter(keys)))

    def seal(self, text: str, context: str) -> str:
        """The sealed form of `text`: `v1.<key id>.<base64>`."""
        nonce = os.urandom(12)
        cipher = _cipher(self._keys[self._current])
        sealed = cipher.encrypt(nonce, text.encode(), context.encode())
        return f"v1.{self._current}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"

    def open(self, sealed: str, context: str) -> str:
        """The text again. Raises `internal` where the key is unknown or the value or context is not its own."""
        version, key_id, body = [*sealed.split(".", 2), "", ""][:3]
        key = self._keys.get(key_id)
        if version != "v1" or key is None:
            raise AlcoveError(
                "internal", f"sealed with a key that is not here ({key_id or 'none'})"
            )
        from cryptography.exceptions import InvalidTag

        try:
            raw = base64.urlsafe_b64decode(body)
            return _cipher(key).decrypt(raw[:12], raw[12:], context.encode()).decode()
        except (InvalidTag, ValueError):
            raise AlcoveError("internal", "a sealed value was changed or moved") from None

    def is_current(self, sealed: str) -> bool:
        """Whether the value is sealed with the current key (else a rotation should seal it anew)."""
        return sealed.startswith(f"v1.{self._current}.")


def _cipher(key: bytes) -> "AESGCM":
    """Imported at its first use: a process in which nothing is sealed does without seven megabytes."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
