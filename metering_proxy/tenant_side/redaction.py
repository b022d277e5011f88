"""Redaction of a provider's refusal on its way to the caller: some repeat in it the key that they refuse, which is
not the caller's to know. Everything else of it passes unchanged, and so does its length."""

# A shorter one would be found in ordinary words.
_LEAST_BYTES = 8


class Redactor:
    """Puts asterisks where a secret stands, however the bytes around it are cut."""

    def __init__(self, secret: str | None) -> None:
        given = (secret or "").encode()
        self._secret = given if len(given) >= _LEAST_BYTES else b""
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What may go on: all but an end that could be the secret's beginning."""
        if not self._secret:
            return data
        whole = (self._held + data).replace(self._secret, b"*" * len(self._secret))
        keep = next(n for n in range(len(self._secret) - 1, -1, -1) if self._begins(whole, n))
        self._held = whole[len(whole) - keep :]
        return whole[: len(whole) - keep]

    def rest(self) -> bytes:
        """What was held back, at the end."""
        rest, self._held = self._held, b""
        return rest

    def _begins(self, whole: bytes, size: int) -> bool:
        return whole.endswith(self._secret[:size])
