"""Exchanges as messages that every provider accepts: legal roles, each call with exactly one result.

What the rules of the wires are: a user message comes first, roles alternate, an assistant's calls are
answered in the very next message, ids are unique in a request.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agent.errors import ContextTooLong
from agent.providers.wire import Asking, Message, Result
from agent.text import cut, cut_end, estimate_tokens
from agent.transcript import Exchange, Round

_OLD_RESULT_CHARS = 1_500
_SMALLEST_CHARS = 400
_MESSAGE_TOKENS = 8
_ANSWER_NOW = "[No more tools in this turn. Answer now with what you have.]"
_NO_ANSWER = "(This answer was broken off.)"


def can_squeeze(exchange: Exchange) -> bool:
    """Whether an exchange has results that could be told shorter."""
    return any(len(c.result or "") > _SMALLEST_CHARS for one in exchange.rounds for c in one.calls)


def size(exchange: Exchange) -> int:
    """About how many tokens an exchange takes as part of the history."""
    tokens = estimate_tokens(exchange.user_text) + _MESSAGE_TOKENS
    for one in exchange.rounds:
        tokens += estimate_tokens(one.text) + _MESSAGE_TOKENS
        for call in one.calls:
            tokens += estimate_tokens(f"{call.name}{call.arguments}") + 2 * _MESSAGE_TOKENS
            tokens += estimate_tokens(_shorter(call.result or "", _OLD_RESULT_CHARS))
    return tokens


@dataclass(frozen=True, slots=True)
class Dialogue:
    """How exchanges become messages.

    `with_calls` False: for a model that knows no tools. `squeezed`: every result is told short.
    """

    preface: str
    with_calls: bool
    squeezed: bool = False

    def messages(
        self,
        history: Sequence[Exchange],
        current: Exchange,
        *,
        room_tokens: int,
        may_call: bool,
    ) -> list[Message]:
        """The messages of one call, with the current exchange last.

        Raises ContextTooLong where the current exchange does not fit into `room_tokens`.
        """
        written: list[Message] = []
        unanswered: list[str] = []
        for exchange in history:
            unanswered.append(exchange.user_text)
            if exchange.answered:
                written.append(Message("user", "\n\n".join(unanswered)))
                written.extend(self._closed(exchange))
                unanswered = []
        asked = "\n\n".join((*unanswered, current.user_text))
        now = [Message("user", self.preface + asked), *self._rounds(current.rounds)]
        if self.squeezed:
            now = [_shortened(message, _SMALLEST_CHARS) for message in now]
        if not may_call:
            now = _told_to_answer(now)
        return _with_unique_ids([*written, *_fitted(now, room_tokens)])

    def _closed(self, exchange: Exchange) -> list[Message]:
        """A past exchange's answer: results made short, and an end where it was broken off after a result."""
        messages = [_shortened(m, _OLD_RESULT_CHARS) for m in self._rounds(exchange.rounds)]
        if not messages or messages[-1].role == "user":
            messages.append(Message("assistant", _NO_ANSWER))
        return messages

    def _rounds(self, rounds: Iterable[Round]) -> list[Message]:
        if not self.with_calls:
            said = "\n\n".join(one.text for one in rounds if one.text.strip())
            return [Message("assistant", said)] if said else []
        messages: list[Message] = []
        for one in rounds:
            if one.calls:
                messages.append(
                    Message(
                        "assistant",
                        one.text,
                        calls=tuple(Asking(c.call_id, c.name, c.arguments) for c in one.calls),
                    )
                )
                results = (Result(c.call_id, c.result or "", c.failed) for c in one.calls)
                messages.append(Message("user", results=tuple(results)))
            elif one.text.strip():
                messages.append(Message("assistant", one.text))
        return messages


def _told_to_answer(messages: list[Message]) -> list[Message]:
    """The same with a last word to the model, at the end of the last result."""
    last = messages[-1]
    if not last.results:
        return messages
    *before, result = last.results
    told = replace(result, text=f"{result.text}\n{_ANSWER_NOW}")
    return [*messages[:-1], replace(last, results=(*before, told))]


def _fitted(messages: list[Message], room_tokens: int) -> list[Message]:
    """The current exchange, made to fit: older results first, then the longest part, each time shorter."""
    for limit in (None, _OLD_RESULT_CHARS, _SMALLEST_CHARS):
        if limit is not None:
            messages = [_shortened(m, limit) for m in messages[:-1]] + messages[-1:]
        if _size(messages) <= room_tokens:
            return messages
    for limit in (8_000, 4_000, 2_000, 1_000, _SMALLEST_CHARS):
        messages = [*messages[:-1], _shortened(messages[-1], limit)]
        if _size(messages) <= room_tokens:
            return messages
    raise ContextTooLong(
        "too_large", "This message is too long for the model.", reason="message_too_long"
    )


def _size(messages: Iterable[Message]) -> int:
    return sum(
        _MESSAGE_TOKENS
        + estimate_tokens(m.text)
        + sum(estimate_tokens(f"{c.name}{c.arguments}") + _MESSAGE_TOKENS for c in m.calls)
        + sum(estimate_tokens(r.text) + _MESSAGE_TOKENS for r in m.results)
        for m in messages
    )


def _shortened(message: Message, limit: int) -> Message:
    if not message.results:
        return message
    return replace(
        message, results=tuple(replace(r, text=_shorter(r.text, limit)) for r in message.results)
    )


def _shorter(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head, tail = cut(text, limit * 2 // 3), cut_end(text, limit // 4)
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"


def _with_unique_ids(messages: list[Message]) -> list[Message]:
    """Ids that a provider gave twice (some number their calls anew in every turn) get a suffix."""
    seen: set[str] = set()
    current: dict[str, str] = {}
    written: list[Message] = []
    for message in messages:
        if message.calls:
            current = {call.id: _fresh(call.id, seen) for call in message.calls}
            calls = tuple(replace(call, id=current[call.id]) for call in message.calls)
            message = replace(message, calls=calls)
        elif message.results:
            results = tuple(replace(r, id=current.get(r.id, r.id)) for r in message.results)
            message = replace(message, results=results)
        written.append(message)
    return written


def _fresh(identity: str, seen: set[str]) -> str:
    number, fresh = 1, identity
    while fresh in seen:
        number += 1
        fresh = f"{identity}-{number}"
    seen.add(fresh)
    return fresh
