"""Search: no text of a person breaks a query, and unspaced scripts are found by one or two characters."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.store import search
from agent.store.database import Database, Tx
from infra.kit.clock import SystemClock

TEXTS = {
    "review": "明天下午三点开项目评审会议",
    "dont": "I don't like C++ at 3 GB/s, use pre-edit",
    "tea": "寿司が好きです",
    "accents": "El café está en Málaga",
    "running": "She was running with the dogs",
    "hindi": "मुझे हिन्दी पसंद है",
    "party": "party 🎉 on Friday",
    "sharp": "we write C# and R here",
    "colon": "x:y and NEAR(a b) AND OR NOT *",
}
AWKWARD = [
    "pre-edit",
    "don't",
    "C++",
    "GB/s",
    '"x',
    "AND",
    "NEAR(",
    "*",
    "",
    "x:y",
    "\0",
    "'",
    "^a",
    "a*b",
    "-",
    "{a}",
]


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(tmp_path / "agent.db", SystemClock())
    database.open()
    await database.write(
        lambda tx: [search.put(tx, "note", ref, text) for ref, text in TEXTS.items()]
    )
    yield database
    await database.close()


async def found(db: Database, query: str, *, every: bool = True) -> set[str]:
    expression = search.match_all(query) if every else search.match_any(search.words(query))
    hits = await db.read(lambda tx: search.find(tx, "note", expression, 20))
    return {hit.ref for hit in hits}


@pytest.mark.parametrize(
    ("query", "ref"),
    [
        ("评审", "review"), ("审", "review"), ("议", "review"), ("项目评审", "review"), ("三点开", "review"),
        ("寿司", "tea"), ("す", "tea"), ("don't", "dont"), ("C++", "dont"), ("GB/s", "dont"),
        ("pre-edit", "dont"), ("malaga cafe", "accents"), ("run dog", "running"), ("x:y", "colon"),
        ("NEAR(a b)", "colon"),
    ],
)  # fmt: skip
async def test_text_is_found_when_its_words_are_asked_for(
    db: Database, query: str, ref: str
) -> None:
    assert ref in await found(db, query)


@pytest.mark.parametrize(
    ("query", "refs"),
    [
        ("C++", {"dont"}), ("c#", {"sharp"}), ("C", {"dont", "sharp"}), ("🎉", {"party"}), ("🎈", set()),
        ("हिन्दी", {"hindi"}), ("हद", set()),
    ],
)  # fmt: skip
async def test_signs_count_when_they_are_what_is_meant(
    db: Database, query: str, refs: set[str]
) -> None:
    assert await found(db, query) == refs


async def test_every_pair_of_characters_is_found_when_the_script_has_no_spaces(
    db: Database,
) -> None:
    text = TEXTS["review"]
    for n in range(len(text) - 1):
        assert "review" in await found(db, text[n : n + 2]), text[n : n + 2]
    assert await found(db, "评议") == set()


@pytest.mark.parametrize("query", AWKWARD)
async def test_query_never_fails_when_it_is_awkward(db: Database, query: str) -> None:
    for every in (True, False):
        await found(db, query, every=every)


def memory_index() -> Iterator[Tx]:
    """The index's tables, as the migration makes them."""
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    script = (Path(search.__file__).parent.parent / "migrations" / "0001.sql").read_text()
    connection.executescript(script)
    yield Tx(connection, 0)
    connection.close()


index = pytest.fixture(memory_index, scope="module")
PIECES = [*AWKWARD, "评", "寿司屋", "NOT", '""', "(", ")", "^", "+", "col:", "naïve", "a_b", "50%"]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=8).map(" ".join))
def test_query_never_fails_whatever_is_typed(index: Tx, query: str) -> None:
    for expression in (search.match_all(query), search.match_any(search.words(query))):
        search.find(index, "note", expression, 5)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join))
def test_text_finds_itself_however_it_is_written(index: Tx, text: str) -> None:
    search.put(index, "note", "it", text)
    for expression in (search.match_all(text), search.match_any(search.words(text))):
        if expression is not None:
            assert [hit.ref for hit in search.find(index, "note", expression, 5)] == ["it"]


async def test_entry_is_gone_when_it_is_dropped_or_put_anew(db: Database) -> None:
    await db.write(lambda tx: search.put(tx, "note", "tea", "only coffee now"))
    assert await found(db, "寿司") == set()
    assert await found(db, "coffee") == {"tea"}
    await db.write(lambda tx: search.drop(tx, "note", "tea"))
    assert await found(db, "coffee") == set()
