"""Passwords: what is accepted, and how it is kept (argon2id). No account is looked up here.

Rules after NIST SP 800-63B-4, 3.1.1.2: at least 8 characters, no composition rules, nothing common
or made of our own name or the person's address, every printable character welcome, nothing cut off.
"""

import asyncio
import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from infra.kit.errors import AlcoveError

SHORTEST, LONGEST = 8, 1024
PRODUCT = "alcove"


@cache
def _common() -> frozenset[str]:
    text = (Path(__file__).parent / "common_passwords.txt").read_text()
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


def problem(password: str, email: str) -> str | None:
    """Why `password` is refused, as a sentence for the person; None when it is good."""
    plain = _normal(password)
    if len(plain) < SHORTEST:
        return f"Use at least {SHORTEST} characters."
    if len(plain) > LONGEST:
        return f"Use at most {LONGEST} characters."
    folded = plain.casefold()
    if folded in _common() or folded.strip("0123456789!.?*-_ ") in _common() or _is_run(folded):
        return "This password is one of the first that anybody tries. Choose another."
    local = email.casefold().partition("@")[0]
    if folded == email.casefold() or (len(local) >= 4 and _mostly(folded, local)):
        return "Do not use your address as a password."
    if _mostly(folded, PRODUCT):
        return "Do not build the password from our name."
    return None


def check(password: str, email: str) -> None:
    """Raises `invalid` (field `password`) where `problem` finds one."""
    found = problem(password, email)
    if found:
        raise AlcoveError("invalid", found, field="password")


def _normal(password: str) -> str:
    return unicodedata.normalize("NFKC", password)


def _mostly(password: str, word: str) -> bool:
    """Whether `word` is in it and what remains would not do as a password."""
    return word in password and len(password.replace(word, "", 1)) < SHORTEST


def _is_run(text: str) -> bool:
    """Whether it is one character again and again, or each the neighbour of the last (12345678)."""
    steps = {ord(b) - ord(a) for a, b in pairwise(text)}
    return len(steps) == 1 and steps <= {-1, 0, 1}


class Passwords:
    """Hashes and verifies off the event loop, a few at a time: each takes 64 MiB (RFC 9106, 4)."""

    def __init__(self, hasher: PasswordHasher | None = None, at_once: int = 2) -> None:
        self._hasher = hasher or PasswordHasher()
        self._gate = asyncio.Semaphore(at_once)
        self._nobody: str | None = None

    async def hash(self, password: str) -> str:
        """The argon2id hash to store."""
        async with self._gate:
            return await asyncio.to_thread(self._hasher.hash, _normal(password))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether `password` is the stored one; the same work is done when nothing is stored."""
        if self._nobody is None:
            self._nobody = await self.hash("nobody signs in with this")
        plain = _normal(password)[: LONGEST + 1]
        async with self._gate:
            found = await asyncio.to_thread(self._matches, stored or self._nobody, plain)
        return found and stored is not None

    def is_old(self, stored: str) -> bool:
        """Whether it was hashed with other parameters than today's and should be hashed anew."""
        return self._hasher.check_needs_rehash(stored)

    def _matches(self, stored: str, plain: str) -> bool:
        try:
            return self._hasher.verify(stored, plain)
        except (VerificationError, InvalidHashError):
            return False
