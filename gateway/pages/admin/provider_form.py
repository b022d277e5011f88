"""The provider form: from what was typed to what the meter takes, and back. The key goes one way."""

from typing import Any, Literal

from starlette.datastructures import FormData

from infra.kit import money
from infra.kit.errors import field_error
from metering_proxy.wire import ModelRow, NewProvider, Provider, ProviderChange, ProviderKind

Kind = Literal["openai", "anthropic", "compatible"]
_KINDS: dict[str, ProviderKind] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "compatible": "openai_compatible",
}
_NAMES = {"openai": "OpenAI", "anthropic": "Anthropic", "compatible": ""}
FIELDS = ("name", "base_url", "key", "models", "default_model")


def empty(kind: str) -> dict[str, Any]:
    """*values* of a new form."""
    known = kind if kind in _KINDS else "openai"
    return {
        "kind": known,
        "name": _NAMES[known],
        "base_url": "",
        "default_model": "",
        "models": [],
    }


def of(provider: Provider) -> dict[str, Any]:
    """*values* of a connection that is there."""
    rows = [
        {"id": row.id, "input_usd": _usd(row.input_nanos), "output_usd": _usd(row.output_nanos)}
        for row in provider.rows
    ]
    return {
        "kind": provider.kind if provider.kind in ("openai", "anthropic") else "compatible",
        "name": provider.name,
        "base_url": provider.base_url,
        "default_model": provider.default_model or "",
        "models": rows,
    }


def typed(sent: FormData) -> dict[str, Any]:
    """*values* as they were typed, but for the key."""
    kind = _text(sent, "kind")
    return {
        "kind": kind if kind in _KINDS else "openai",
        "name": _text(sent, "name"),
        "base_url": _text(sent, "base_url"),
        "default_model": _text(sent, "default_model"),
        "models": [
            {"id": model, "input_usd": cost_in, "output_usd": cost_out}
            for model, cost_in, cost_out in _model_fields(sent)
        ],
    }


def as_new(sent: FormData) -> NewProvider:
    """The connection to make, off until its test has passed. Raises `invalid` with `fields`."""
    kind = _text(sent, "kind")
    if kind not in _KINDS:
        raise field_error("", "Choose who it is.")
    name = _name(sent)
    compatible = kind == "compatible"
    if compatible and not _text(sent, "base_url"):
        raise field_error("base_url", "Say where it answers.")
    return NewProvider(
        kind=_KINDS[kind],
        name=name,
        base_url=_text(sent, "base_url") if compatible else None,
        key=_text(sent, "key") or None,
        default_model=_text(sent, "default_model") or None,
        models=_models(sent) if compatible else [],
        enabled=False,
    )


def as_change(sent: FormData, before: Provider) -> ProviderChange:
    """What to change; an empty key is no change. Raises `invalid` with `fields`."""
    change: dict[str, Any] = {
        "name": _name(sent),
        "default_model": _text(sent, "default_model") or None,
    }
    if _text(sent, "key"):
        change["key"] = _text(sent, "key")
    if before.kind not in ("openai", "anthropic"):
        change["base_url"] = _text(sent, "base_url") or before.base_url
        change["models"] = _models(sent)
    return ProviderChange(**change)


def wants_default(sent: FormData) -> bool:
    """Whether it shall answer by default, once it has passed its test."""
    return _text(sent, "make_default") == "on"


def changes_calls(change: ProviderChange, before: Provider) -> bool:
    """Whether calls are made otherwise than before: a new key or address, other models."""
    return (
        "key" in change.model_fields_set
        or change.base_url not in (None, before.base_url)
        or change.models not in (None, before.rows)
        or change.default_model != before.default_model
    )


def _name(sent: FormData) -> str:
    name = _text(sent, "name")
    if not 1 <= len(name) <= 80:
        raise field_error("name", "Give it a name of at most 80 characters.")
    return name


def _models(sent: FormData) -> list[ModelRow]:
    rows = []
    for model, cost_in, cost_out in _model_fields(sent):
        try:
            prices = money.parse_usd(cost_in), money.parse_usd(cost_out)
        except ValueError as error:
            raise field_error("models", f"{model}: {error}.") from None
        if max(prices) > 10_000 * money.NANOS_PER_USD or len(model) > 200:
            raise field_error("models", f"{model}: the price is for a million tokens, in dollars.")
        rows.append(ModelRow(id=model, input_nanos=prices[0], output_nanos=prices[1]))
    return rows


def _model_fields(sent: FormData) -> list[tuple[str, str, str]]:
    columns = [
        [str(value).strip() for value in sent.getlist(name)]
        for name in ("model_id", "model_input_usd", "model_output_usd")
    ]
    rows = [(a, b, c) for a, b, c in zip(*columns, strict=False) if a]
    return rows[:500]


def _text(sent: FormData, name: str) -> str:
    value = sent.get(name)
    return value.strip() if isinstance(value, str) else ""


def _usd(nanos: int) -> str:
    whole, part = divmod(nanos, money.NANOS_PER_USD)
    return f"{whole}.{f'{part:09d}'.rstrip('0'):0<2}"
