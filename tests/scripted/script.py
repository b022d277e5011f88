"""The script: which request is expected next, and what it gets. No HTTP here.

Steps of one lane are taken in their order; a request is offered to the next step of each lane. A
request that no step expects and a step that no request took are both failures of the test.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.scripted.reply import Reply
from tests.scripted.request import Request


@dataclass(frozen=True)
class Expectation:
    """A condition on a request, with the words that a failure prints."""

    words: str
    accepts: Callable[[Request], bool]


def that(words: str, accepts: Callable[[Request], bool]) -> Expectation:
    """Any condition of the test's own."""
    return Expectation(words, accepts)


anything = Expectation("anything", lambda _: True)
no_tools = Expectation("offers no tools", lambda r: not r.tools)
has_tools = Expectation("offers tools", lambda r: bool(r.tools))


def last_contains(words: str) -> Expectation:
    """The last message says `words`."""
    return Expectation(f"last message contains {words!r}", lambda r: words in r.last_text)


def has_tool(name: str) -> Expectation:
    """The tool `name` is offered."""
    return Expectation(f"offers {name}", lambda r: name in r.tools)


def has_result(words: str) -> Expectation:
    """A tool's result that came along contains `words`."""
    return Expectation(
        f"brings a result with {words!r}",
        lambda r: any(words in result for result in r.tool_results.values()),
    )


def model_is(name: str) -> Expectation:
    """The model asked for is `name`."""
    return Expectation(f"asks {name}", lambda r: r.model == name)


def on_wire(name: str) -> Expectation:
    """It came as `openai`, `anthropic`, `responses`, `gemini`, `embeddings` or `plain`."""
    return Expectation(f"on {name}", lambda r: r.wire == name)


Answer = Reply | Callable[[Request], Reply]


@dataclass
class Step:
    """One expected request. `standing`: any number of times, none included."""

    expects: tuple[Expectation, ...]
    answer: Answer
    lane: str
    standing: bool = False
    taken: int = 0

    def __str__(self) -> str:
        return f"[{self.lane}] " + " and ".join(e.words for e in self.expects)

    def accepts(self, request: Request) -> bool:
        """Whether every expectation accepts `request`."""
        return all(e.accepts(request) for e in self.expects)


class Script:
    """Ordered steps, and what went against them."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self.unexpected: list[Request] = []

    def then(self, *expects: Expectation, reply: Answer, lane: str = "main") -> None:
        """The next request of `lane` that meets all of `expects` gets `reply`."""
        self._steps.append(Step(expects or (anything,), reply, lane))

    def always(self, *expects: Expectation, reply: Answer) -> None:
        """Requests that no ordered step takes and that meet `expects` get `reply`, any number of times."""
        self._steps.append(Step(expects or (anything,), reply, "standing", standing=True))

    def take(self, request: Request) -> Reply | None:
        """The answer to `request`; None (and a failure) where nothing expects it."""
        for step in self._next():
            if step.accepts(request):
                step.taken += 1
                request.step = str(step)
                return step.answer if isinstance(step.answer, Reply) else step.answer(request)
        self.unexpected.append(request)
        return None

    def remaining(self) -> list[Step]:
        """Steps that are still to come."""
        return [s for s in self._steps if not s.standing and not s.taken]

    def _next(self) -> list[Step]:
        heads: dict[str, Step] = {}
        for step in self.remaining():
            heads.setdefault(step.lane, step)
        return [*heads.values(), *(s for s in self._steps if s.standing)]
