"""What a model is told: legal whatever happened before, within its budget, the same beginning every time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.context import Context
from agent.memory import Excerpt, Recalled
from agent.providers.anthropic_messages import AnthropicMessages
from agent.providers.models import Model, Profile
from agent.providers.openai_chat import OpenAIChat
from agent.providers.wire import Prompt
from agent.store.facts import Fact
from agent.text import cut, cut_end, estimate_tokens, title_of, well_formed
from agent.transcript import Call, Exchange, Round
from tests.scripted import check_invariants
from tests.scripted.request import Request

BIG = Model("big", "openai", tools=True, context_tokens=200_000, max_output_tokens=8192)
SMALL = Model("demo", "openai", False, 2048, 512, Profile(400, 0.2, 300))
NOW = 1_767_225_600_000


def told(prompt: Prompt, wire: str) -> Request:
    """The request that a prompt becomes."""
    format_ = AnthropicMessages() if wire == "anthropic" else OpenAIChat()
    body = format_.body(prompt, "m")
    return Request(1, "POST", format_.path, {}, [], body, 0)


def context(
    model: Model = BIG, history: list[Exchange] | None = None, recalled: Recalled | None = None
) -> Context:
    return Context(model, NOW, recalled or Recalled(), history or [], ())


texts = st.text(st.characters(codec="utf-8"), max_size=30)
calls = st.builds(
    Call,
    id=st.just("ours"),
    call_id=st.sampled_from(["call_0", "call_1", "functions.x:0"]),
    name=st.sampled_from(["a", "b"]),
    arguments=st.just({"x": 1}),
    result=texts | st.just("long " * 1000),
    failed=st.booleans(),
)
working = st.builds(
    Round, texts, st.lists(calls, min_size=1, max_size=3, unique_by=lambda call: call.call_id)
)
said = st.builds(Round, texts)
asked = texts.filter(str.strip)
at_work = st.builds(Exchange, asked, st.lists(working, max_size=3))
over = st.builds(
    lambda e, last: Exchange(e.user_text, [*e.rounds, *last]), at_work, st.lists(said, max_size=1)
)


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(
    st.lists(over, max_size=12),
    at_work,
    st.sampled_from(["openai", "anthropic"]),
    st.sampled_from([BIG, SMALL]),
    st.booleans(),
)
def test_request_is_legal_whatever_the_conversation_was(
    history: list[Exchange], current: Exchange, wire: str, model: Model, may_call: bool
) -> None:
    narrower: Context | None = context(model, history)
    sizes = []
    while narrower is not None:
        request = told(narrower.prompt(current, may_call=may_call), wire)
        assert check_invariants(request) == []
        sizes.append(len(request.body))
        narrower = narrower.smaller(current)
    assert len(sizes) <= 6
    assert sizes == sorted(set(sizes), reverse=True), "each narrower prompt is strictly smaller"


def test_demo_prompt_stays_within_its_profile_when_much_is_remembered() -> None:
    fact = "Fact number one about the person " + "word " * 60
    facts = tuple(Fact(str(n), "note", fact, NOW) for n in range(9))
    recalled = Recalled(related=facts, excerpts=(Excerpt("user", "words " * 500, NOW),))
    history = [
        Exchange(f"question {n} " + "word " * 40, [Round("answer " * 40)]) for n in range(30)
    ]
    prompt = context(SMALL, history, recalled).prompt(Exchange("What now?"))
    assert estimate_tokens(prompt.system) <= 400
    assert 1 <= prompt.system.count("Fact number one") < 9
    assert sum(estimate_tokens(m.text) for m in prompt.messages) <= 600
    assert len(prompt.messages) > 3
    assert prompt.messages[-1].text == "What now?"
    assert (prompt.tools, prompt.max_tokens, prompt.temperature) == ((), 300, 0.2)


def test_beginning_is_the_same_bytes_when_only_time_and_memory_changed() -> None:
    history = [Exchange("one", [Round("two")])]
    first = context(BIG, history).prompt(Exchange("three"))
    known = Recalled(standing=(Fact("f", "name", "Name: Ana", NOW),))
    second = Context(BIG, NOW + 3_600_000, known, history, ()).prompt(Exchange("three"))
    assert first.system == second.system
    assert list(first.messages[:-1]) == list(second.messages[:-1])
    assert "Name: Ana" in second.messages[-1].text


def test_history_loses_its_oldest_whole_exchanges_when_there_is_too_much() -> None:
    history = [Exchange(f"q{n} " + "x" * 9000, [Round(f"a{n}")]) for n in range(20)]
    prompt = context(BIG, history).prompt(Exchange("now"))
    assert prompt.messages[0].role == "user"
    kept = [m.text.split()[0] for m in prompt.messages[:-1]]
    assert kept == [w for n in range(20 - len(kept) // 2, 20) for w in (f"q{n}", f"a{n}")]
    assert 5 <= len(kept) // 2 < 10


def test_flag_and_family_stay_whole_when_text_is_cut() -> None:
    family = "a👩‍👩‍👧b🇵🇹c👍🏽"
    for n in range(len(family) + 1):
        for piece in (cut(family, n), cut_end(family, n)):
            assert len(piece) <= n
            assert not piece.endswith("\u200d")
            assert piece == "" or piece[0] not in "\u200d\U0001f3fd"
            assert len([c for c in piece if c in "🇵🇹"]) in (0, 2)


@given(st.text(max_size=60))
def test_text_can_be_sent_when_it_holds_half_a_pair(text: str) -> None:
    for broken in (text + "\ud83d", "\udc00" + text, text):
        well_formed(broken).encode()
    assert well_formed("\ud83d\ude00") == "😀"


def test_title_is_the_first_line_with_words_cut_between_two() -> None:
    assert title_of("\n\n# **Plan** my trip\nto Rome") == "Plan** my trip"
    assert title_of("word " * 40) == "word word word word word word word word word word word…"
    assert title_of("???") == "???"
    assert title_of("明" * 200) == "明" * 59 + "…"
