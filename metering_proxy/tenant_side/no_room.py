"""What a caller is told for whose call a limit has no room: when to come back, or what to ask for instead. Its
shape on each wire is refusals.py's matter."""

from datetime import UTC, datetime

from infra.kit import money
from infra.kit.errors import AlcoveError
from metering_proxy.ledger.ops import Refused, Reserve


def refused(answer: Refused, op: Reserve, limit_member: str | None) -> AlcoveError:
    """The refusal for a limit: 402 for what is used up for a day or a month, 429 for what a moment mends, and 413
    for a request that would find no room even if nothing were used. Whose limit is nothing is told no time either.

    `limit_member`: where the request may say its token limit, if that helps.
    """
    if answer.measure == "concurrent":
        return AlcoveError(
            "rate_limited",
            f"{answer.limit} calls are running already, as many as the plan allows at once",
            reason=answer.kind,
            retry_after_s=1,
        )
    period = answer.kind.rpartition("_")[2]
    if answer.limit > 0 and answer.fits is not None:
        return _too_large(answer, op, period, limit_member if answer.fits > 0 else None)
    if period == "minute":
        return AlcoveError(
            "rate_limited",
            f"the plan allows {answer.limit:,} {answer.measure} a minute",
            reason=answer.kind,
            resets_at=answer.resets_at,
        )
    what = (
        "what the plan pays for" if answer.measure == "charge" else f"the plan's {answer.measure}"
    )
    used_up = f"this {period} has used up {what}"
    if answer.resets_at is not None:
        begins = datetime.fromtimestamp(answer.resets_at / 1000, UTC)
        used_up += f"; the next begins at {begins:%Y-%m-%d %H:%M} UTC"
    return AlcoveError(
        "quota_exhausted",
        used_up if answer.limit else f"the plan allows no {answer.measure} a {period}",
        reason=f"quota_{answer.kind}",
        resets_at=answer.resets_at,
    )


def _too_large(answer: Refused, op: Reserve, period: str, limit_member: str | None) -> AlcoveError:
    if answer.measure == "charge":
        most = money.format_usd(op.bound.charge_nanos(op.wanted))
        against = f"cost {most}, and the plan pays {money.format_usd(answer.limit)} a {period}"
        instead = "send less, ask a cheaper model"
    else:
        most = f"{op.bound.tokens(op.wanted):,}"
        against = f"use {most} tokens, and the plan allows {answer.limit:,} a {period}"
        instead = "send less"
    if limit_member is not None:
        instead += f", or lower {limit_member} to {answer.fits:,}"
    return AlcoveError(
        "too_large",
        f"this request can {against}: waiting does not help; {instead}",
        reason=f"larger_than_{answer.kind}",
        field=limit_member,
    )
