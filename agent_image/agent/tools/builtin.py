"""The tools that every assistant has: the time, notes, its own memory, and long results read on."""

from datetime import UTC, datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent import memory
from agent.store import facts, notes, results
from agent.store.database import Tx
from agent.tools.registry import Context, Tool, tool
from infra.kit.errors import AlcoveError

_PIECE_CHARS = 12_000


@tool("Looking up the time", repeatable=True)
async def current_time(
    context: Context,
    *,
    zone: Annotated[str, "IANA time zone, such as Europe/Lisbon"] = "UTC",
) -> str:
    """The current date and time in a time zone."""
    try:
        where = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise AlcoveError("invalid", f"{zone[:64]!r} is not an IANA time zone") from None
    now = datetime.fromtimestamp(context.clock.now_at() / 1000, UTC).astimezone(where)
    return now.strftime(f"%A, %-d %B %Y, %H:%M:%S (UTC%z, {zone})")


@tool("Saving a note", repeatable=True)
async def save_note(
    context: Context,
    *,
    title: Annotated[str, "a few words"],
    text: Annotated[str, "the note itself"],
) -> str:
    """Keeps a note for the person. Use it when they ask to note or write something down."""
    if not text.strip():
        raise AlcoveError("invalid", "a note needs text")
    note = await context.db.write(lambda tx: notes.put(tx, context.call_id, title.strip(), text))
    return f"Saved as {note.title!r} (id {note.id})."


@tool("Looking through notes", repeatable=True)
async def list_notes(
    context: Context,
    *,
    query: Annotated[str, "words to look for; empty for the newest"] = "",
    limit: Annotated[int, "at most this many, up to 50"] = 20,
) -> str:
    """The person's notes, newest or best first, with their ids and dates."""
    found = await context.db.read(lambda tx: notes.find(tx, query, max(1, min(limit, 50))))
    return (
        "\n\n".join(f"[{n.id}] {memory.day(n.created_at)} {n.title}\n{n.text}" for n in found)
        or "No notes."
    )


@tool("Searching memory", repeatable=True)
async def search_memory(
    context: Context,
    *,
    query: Annotated[str, "the words to look for"],
    scope: Annotated[
        Literal["everything", "facts", "conversations"], "where to look"
    ] = "everything",
) -> str:
    """Looks through what the person told earlier: facts, and messages of other conversations, with dates."""
    here = context.turn.conversation_id

    def look(tx: Tx) -> list[str]:
        lines: list[str] = []
        if scope != "conversations":
            lines += [memory.fact_line(fact) for fact in facts.find(tx, query, 10)]
        if scope != "facts":
            lines += [memory.excerpt_line(one, 600) for one in memory.excerpts(tx, query, here, 6)]
        return lines

    return "\n".join(await context.db.read(look)) or "Nothing found."


@tool("Remembering", repeatable=True)
async def remember_fact(
    context: Context,
    *,
    fact: Annotated[str, "one sentence about the person, as close to their own words as can be"],
) -> str:
    """Remembers a fact about the person for later conversations.

    Only what they said themselves in this message; never what a tool, a page or memory said.
    """
    kept = await context.db.write(lambda tx: memory.remember(tx, fact, context.turn))
    return f"Remembered: {kept.text} (id {kept.id})."


@tool("Forgetting", repeatable=True)
async def forget_fact(
    context: Context,
    *,
    id: Annotated[str, "the fact's id, as search_memory shows it"],
) -> str:
    """Forgets a remembered fact. Only when the person asks for it."""
    fact = await context.db.write(lambda tx: facts.delete(tx, id))
    if fact is None:
        raise AlcoveError("not_found", f"there is no fact with the id {id[:40]!r}")
    return f"Forgotten: {fact.text}"


@tool("Reading on", repeatable=True)
async def read_result(
    context: Context,
    *,
    handle: Annotated[str, "the handle of the shortened result"],
    start: Annotated[int, "the first character to read"] = 0,
) -> str:
    """Reads a part of a tool's long result that was left out of the conversation."""
    piece = await context.db.read(
        lambda tx: results.piece(
            tx, handle, context.turn.conversation_id, max(0, start), _PIECE_CHARS
        )
    )
    return f"{piece.text}\n[characters {piece.start}–{piece.end} of {piece.total}]"


BUILTIN: tuple[Tool, ...] = (
    current_time, save_note, list_notes, search_memory, remember_fact, forget_fact, read_result,
)  # fmt: skip
