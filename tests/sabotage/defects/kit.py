"""Defects in the plumbing."""

from tests.sabotage.defect import Defect

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
        file="infra/kit/db.py",
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
]
