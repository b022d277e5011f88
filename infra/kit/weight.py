"""How heavy a JSON body is to parse: bounding its bytes alone does not bound the time and memory that it takes.

8 MiB of empty lists hold up the process, which is everybody's, for a second, and take 200 MB.
"""

import re

# Possessive, and open at its end: no text makes it look at a byte twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def too_heavy(body: bytes, most: int, *, most_marks: int) -> bool:
    """Whether more than `most` values may stand in `body`; a container weighs four, as it takes so much
    longer. Marks inside texts weigh nothing, but are told apart from others only where there are so many
    that it matters, and no more than `most_marks`, beyond which that alone would take too long."""
    weight = _weight(body)
    if weight > most and max(weight, body.count(b'"')) <= most_marks:
        weight = _weight(_STRING.sub(b"", body))
    return weight > most


def _weight(body: bytes) -> int:
    return body.count(b",") + 4 * (body.count(b"[") + body.count(b"{"))
