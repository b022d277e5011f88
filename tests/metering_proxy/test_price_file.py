"""Price and plan files: one that could be meant in two ways is refused whole, with the place and the reason."""

from pathlib import Path

import pytest

from metering_proxy import plans
from metering_proxy.providers import price_file

_HEAD = {"provider": '"openai"', "id": '"m"', "context_tokens": "10", "max_output_tokens": "5"}
_PRICE = 'from = 2026-01-01\ninput = "1"\noutput = "2"'


def _model(price: str = _PRICE, **head: str) -> str:
    lines = "".join(f"{name} = {value}\n" for name, value in {**_HEAD, **head}.items())
    return f"[[model]]\n{lines}[[model.price]]\n{price}\n"


# Prices that would be free in part, negative, of another sort, or nobody's: each with a word of the refusal.
PRICES = {
    'from = 2026-01-01\noutput = "2"': "no input",
    'from = 2026-01-01\ninput = "1"': "no output",
    'from = 2026-01-01\ninptu = "1"\noutput = "2"': "unknown inptu",
    'from = 2026-01-01\ninput = "-1"\noutput = "2"': "not an amount",
    'from = 2026-01-01\ninput = "1e3"\noutput = "2"': "not an amount",
    'from = 2026-01-01\ninput = "nan"\noutput = "2"': "not an amount",
    'from = 2026-01-01\ninput = "1,5"\noutput = "2"': "not an amount",
    'from = 2026-01-01\ninput = "１"\noutput = "2"': "not an amount",
    'from = 2026-01-01\ninput = " 1"\noutput = "2"': "not a text",
    'from = 2026-01-01\ninput = 1.0\noutput = "2"': "not a text",
    'from = 2026-01-01\ninput = true\noutput = "2"': "not a text",
    'from = 2026-01-01\ninput = "99999999999"\noutput = "2"': "more than can be counted",
    'from = "2026-01-01"\ninput = "1"\noutput = "2"': "from is a day",
    'from = 2026-01-01T12:00:00Z\ninput = "1"\noutput = "2"': "from is a day",
    f"{_PRICE}\ntiers = {{ priority = '-2' }}": "no factor",
    f"{_PRICE}\ntiers = {{ flex = '0' }}": "no factor",
    f"{_PRICE}\ntiers = {{ flex = '1/0' }}": "Fraction",
    f"{_PRICE}\ntiers = {{ flex = 0.5 }}": "not a text",
    f"{_PRICE}\ntiers = {{ flex = 'half' }}": "half",
    f"{_PRICE}\nlong_context = {{ input = '2' }}": "above",
    f"{_PRICE}\nlong_context = {{ above = -5, input = '2' }}": "whole number",
    f"{_PRICE}\nlong_context = {{ above = '200k', input = '2' }}": "whole number",
    f"{_PRICE}\nlong_context = {{ above = 200, inptu = '2' }}": "unknown inptu",
    f"{_PRICE}\nper_image = {{ hd = '-3' }}": "not an amount",
    f"{_PRICE}\n[[model.price]]\n{_PRICE}": "one from a day on",
}
HEADS = {
    ("id", '""'): "not a text",
    ("id", "5"): "not a text",
    ("provider", '"opneai"'): "none of openai, anthropic",
    ("kind", '"chta"'): "none of chat, ",
    ("aliases", '"gpt"'): "not a list",
    ("aliases", '["M"]'): "twice",
    ("context_tokens", '"big"'): "whole number",
    ("context_tokens", "-1"): "whole number",
    ("max_output_tokens", "2.5"): "whole number",
    ("max_output_tokens", "0"): "whole number",
    ("image_tokens", "true"): "whole number",
    ("tools", '"no"'): "neither true nor false",
    ("colour", "1"): "unknown colour",
}
FILES = {
    "": "tables",
    "[[modle]]\n": "tables",
    "model = 1\n": "tables",
    'zone = "UTC"\n' + _model(): "tables",
    _model() + _model(): "twice",
}


def _refusal(directory: Path, text: str) -> str:
    file = directory / "prices.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"prices\.toml") as caught:
        price_file.load(file)
    return str(caught.value)


@pytest.mark.parametrize("price", PRICES)
def test_price_is_refused_when_it_could_be_meant_otherwise(tmp_path: Path, price: str) -> None:
    assert PRICES[price] in _refusal(tmp_path, _model(price))


@pytest.mark.parametrize(("name", "value"), HEADS)
def test_model_is_refused_when_a_fact_of_it_is_none(tmp_path: Path, name: str, value: str) -> None:
    assert HEADS[name, value] in _refusal(tmp_path, _model(**{name: value}))


@pytest.mark.parametrize("text", FILES)
def test_file_of_prices_is_refused_when_it_is_another_or_says_a_thing_twice(
    tmp_path: Path, text: str
) -> None:
    assert FILES[text] in _refusal(tmp_path, text)


def test_what_is_free_says_so(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(_model('from = 2026-01-01\ninput = "0"\noutput = "0"'))
    [model] = price_file.load(file)["openai"]
    assert (model.prices[0].rates.input, model.prices[0].rates.output) == (0, 0)


@pytest.mark.parametrize(
    "text",
    [
        'zonee = "Asia/Tokyo"\n[[plan]]\nname = "free"\ntitle = "F"',
        '[plan]\nname = "free"\ntitle = "F"',
        '[[plan]]\nname = "free"\ntitle = "F"\nmodels = "anthropic/*"',
        '[[plan]]\nname = "free"\ntitle = "F"\nmodels = [1]',
        '[[plan]]\nname = "free"\ntitle = "F"\ncharge_month = 5.0',
        '[[plan]]\nname = "free"\ntitle = "F"\ncharge_month = "5,00"',
        '[[plan]]\nname = "free"\ntitle = "F"\ncharge_moth = "5"',
        '[[plan]]\nname = "free"\ntitle = "F"\nconcurrent = true',
        '[[plan]]\nname = "free"\ntitle = "F"\nmarkup_ppm = -1',
        '[[plan]]\nname = "free"\ntitle = "F"\n[plan.egress]\ndeny = ["*.example.org"]',
    ],
)
def test_plans_are_refused_when_they_could_be_meant_otherwise(tmp_path: Path, text: str) -> None:
    file = tmp_path / "plans.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match="plan"):
        plans.load(file)
