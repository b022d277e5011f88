"""A call that is under way: what was agreed, what is held, and how it would end at this moment.

calls.py begins it, sending.py carries it out, ending.py ends it.
"""

from dataclasses import dataclass, field

from opentelemetry.trace import Span

from metering_proxy.keys import Key
from metering_proxy.ledger.ledger import Hold
from metering_proxy.tenant_side.terms import Terms
from metering_proxy.wires.wire import Reader, Wire


@dataclass(slots=True)
class Call:
    """A call that holds money. `outcome` says how the attempt under way ended, should it end at this moment.

    `blamed`: a failure would be the provider's own. `failure`: a word for what went wrong, if anything.
    `others`: on whose terms it may go on if this attempt fails.
    """

    id: str
    wire: Wire
    key: Key
    terms: Terms
    hold: Hold
    reader: Reader
    began_s: float
    others: list[Terms] = field(default_factory=list)
    span: Span | None = None
    outcome: str = "no_answer"
    status: int = 0
    sent: bool = False
    blamed: bool = False
    failure: str | None = None
    settled: bool = False

    @property
    def limit(self) -> int:
        """The token limit of this attempt."""
        return min(self.hold.limit, self.terms.wanted)

    def let_body_go(self) -> None:
        """Its request will not be sent again, so its text is needed no more, however long the answer takes."""
        self.others.clear()
        self.terms.ask.let_document_go()

    def go_on(self, onward: Terms) -> None:
        """Begins the next attempt."""
        self.terms = onward
        self.reader = self.wire.reader(onward.ask, onward.route.connection.kind.dialect)
        self.outcome, self.status, self.sent = "no_answer", 0, False
        self.blamed, self.failure = False, None

    def broke(self, reason: str | None, *, blamed: bool) -> None:
        """The attempt broke off, by the provider's doing or not."""
        self.failure, self.blamed = reason, blamed

    def ended(self, *, gone: bool) -> None:
        """The answer has come to its end. `gone`: its caller had left."""
        found = self.reader.found
        if found.failed:
            self.errs()
        else:
            self.outcome = "left" if gone else "complete"

    def errs(self) -> None:
        """An error came in the place of an answer, or within one."""
        self.outcome, self.failure = "error", self.reader.found.complaint or "error_answer"
