"""LIGHT. Identifiers and secrets: how each is made, and nothing about what it identifies."""

import hashlib
import hmac
import os
import secrets
import time

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [high + low for high in _CROCKFORD for low in _CROCKFORD]
_SHIFTS = range(120, -1, -10)
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
# Random bytes are drawn in bulk: a system call for each id would let go of the interpreter's lock.
_ENTROPY_BYTES, _DRAWN = 10, 256
_entropy: list[bytes] = []
os.register_at_fork(after_in_child=_entropy.clear)


def ulid(now_ms: int | None = None) -> str:
    """A 26-character identifier that sorts by the millisecond of its making.

    48 bits of time and 80 random bits in Crockford base 32, lower case
    (https://github.com/ulid/spec).
    """
    moment = int(time.time() * 1000) if now_ms is None else now_ms
    value = (moment << 80) | int.from_bytes(_random_bytes(), "big")
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in _SHIFTS])


def _random_bytes() -> bytes:
    """Ten bytes that nobody else gets: taking from a list is one step, whatever thread asks."""
    while True:
        try:
            return _entropy.pop()
        except IndexError:
            drawn = os.urandom(_ENTROPY_BYTES * _DRAWN)
            _entropy.extend(
                drawn[at : at + _ENTROPY_BYTES] for at in range(0, len(drawn), _ENTROPY_BYTES)
            )


def is_ulid(text: str) -> bool:
    """Whether `text` has the shape of `ulid()`."""
    return len(text) == 26 and all(c in _CROCKFORD for c in text)


def tenant_id() -> str:
    """A new tenant's id: 16 random characters of `a-z2-7`, safe in a path, a label and a DNS name."""
    return "".join(secrets.choice(_BASE32) for _ in range(16))


def is_tenant_id(text: str) -> bool:
    """Whether `text` has the shape of `tenant_id()`. Check it before `text` becomes part of a path."""
    return len(text) == 16 and all(c in _BASE32 for c in text)


def secret(prefix: str = "") -> str:
    """A 256-bit random secret that is safe in a URL and a header, after `prefix`."""
    return prefix + secrets.token_urlsafe(32)


def digest(secret_text: str) -> str:
    """What is stored instead of a secret: its SHA-256 in hex. The secrets here have 256 bits, so no salt."""
    return hashlib.sha256(secret_text.encode()).hexdigest()


def same(a: str, b: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(a.encode(), b.encode())


def instance_secret(deployment_secret: str, tenant: str, generation: int) -> str:
    """The secret that gateway and spawner show to one generation of a tenant's agent (hex)."""
    message = f"{tenant}\x1f{generation}".encode()
    return hmac.new(deployment_secret.encode(), message, hashlib.sha256).hexdigest()
