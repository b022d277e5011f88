"""Defects in the plumbing."""

from tests.sabotage.defect import Defect

_BOUNDED = "tests/kit/test_bounded.py"
_DB = "tests/kit/test_db.py"
_WEIGHT = "tests/kit/test_weight.py"

KIT = [
    Defect(
        name="follow-a-symbolic-link",
        why="a tenant's link at its socket's place would lead the gateway to the spawner",
        file="infra/kit/unix.py",
        old="node = os.open(path.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)",
        new="node = os.open(path.name, os.O_PATH | os.O_CLOEXEC, dir_fd=directory)",
        tests=("tests/kit/test_unix.py",),
    ),
    Defect(
        name="trust-any-owner-of-a-socket",
        why="a stranger's listener in a tenant's directory would be given the instance secret",
        file="infra/kit/unix.py",
        old="if owner_uid is not None and found.st_uid != owner_uid:",
        new="if owner_uid is None and found.st_uid != owner_uid:",
        tests=("tests/kit/test_unix.py", "tests/kit/relay/test_endings.py"),
    ),
    Defect(
        name="begin-deferred",
        why="SQLite would refuse most writes of two processes, or lose what one of them read",
        file="infra/kit/sqlite.py",
        old='"BEGIN" if reads else "BEGIN IMMEDIATE"',
        new='"BEGIN"',
        tests=(
            "tests/kit/test_db.py::test_no_other_process_begins_to_write_when_a_transaction_is_open",
        ),
    ),
    Defect(
        name="talk-after-a-head",
        why="a refusal's words behind the answer to a HEAD would be read as the next answer",
        file="infra/kit/httpd/refusals.py",
        old="if head_only or self._unheard else",
        new="if self._unheard else",
        tests=("tests/kit/httpd/test_strictness.py",),
    ),
    Defect(
        name="wait-for-a-head-for-ever",
        why="who connects and says nothing would keep a place of the gateway's for good",
        file="infra/kit/bounded.py",
        old="        super().connection_made(transport)\n        self._patience.set(self.limits.head_s)\n",
        new="        super().connection_made(transport)\n",
        tests=(_BOUNDED,),
    ),
    Defect(
        name="let-a-head-grow",
        why="one stranger's headers would take the memory of everybody",
        file="infra/kit/bounded.py",
        old="if self._silent_bytes > self.limits.head_bytes and not",
        new="if self._silent_bytes < 0 and not",
        tests=(_BOUNDED,),
    ),
    Defect(
        name="take-a-trailer-for-a-header",
        why="a caller could say where it comes from after it was let in",
        file="infra/kit/bounded.py",
        old="        if self._in_head:\n            super().on_header(name, value)\n",
        new="        super().on_header(name, value)\n",
        tests=(_BOUNDED,),
    ),
    Defect(
        name="wait-for-a-reader-for-ever",
        why="who takes nothing would hold a stream and its memory for good",
        file="infra/kit/bounded.py",
        old="        self._drain.set(self.limits.write_s)\n",
        new="",
        tests=(_BOUNDED,),
    ),
    Defect(
        name="call-a-mistake-an-outage",
        why="a statement that is wrong would be tried again for ever and told to people as bad luck",
        file="infra/kit/db.py",
        old="        if isinstance(error, DBAPIError) and not _is_away(error):\n            raise\n",
        new="",
        tests=(f"{_DB}::test_error_stays_what_it_is_when_the_statement_is_wrong",),
    ),
    Defect(
        name="call-an-outage-a-mistake",
        why="a full disk would be a bug of ours, with no word of trying again",
        file="infra/kit/sqlite.py",
        old="    return code & 0xFF in _AWAY\n",
        new="    return False\n",
        tests=(f"{_DB}::test_database_is_unavailable_and_keeps_nothing_when_it_is_full",),
    ),
    Defect(
        name="weigh-a-list-as-a-number",
        why="eight mebibytes of empty lists would hold up everybody for a second",
        file="infra/kit/weight.py",
        old='return body.count(b",") + 4 * (',
        new='return body.count(b",") + 1 * (',
        tests=(_WEIGHT,),
    ),
    Defect(
        name="weigh-marks-in-texts",
        why="a long letter with many commas would be refused as an attack",
        file="infra/kit/weight.py",
        old='_weight(_STRING.sub(b"", body))',
        new="_weight(body)",
        tests=(_WEIGHT,),
    ),
]
