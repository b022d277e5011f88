"""What a person's own words teach: a table of sentences, and silence for everything else."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.learning import claims_in

TEACHES = [
    ("Hi! My name is Ana Sofia and I live in Lisbon.", ["Name: Ana Sofia", "Lives in Lisbon"]),
    ("my name's ana", ["Name: ana"]),
    ("Please call me Annie from now on", ["Wants to be called Annie"]),
    ("I've moved to Porto, it's lovely", ["Lives in Porto"]),
    ("I live in St. Louis now", ["Lives in St Louis"]),
    ("I work for Acme Corp because of the money", ["Works at Acme Corp"]),
    ("I work as a nurse", ["Works as nurse"]),
    ("My birthday is on 3 May.", ["Birthday: 3 May"]),
    ("I'm vegetarian", ["Is vegetarian"]),
    ("I am allergic to peanuts!", ["Is allergic to peanuts"]),
    ("I prefer short answers", ["Prefers short answers"]),
    ("I'd prefer metric units please", ["Prefers metric units"]),
    ("my favorite number is 66", ["Favorite number: 66"]),
    ("My dog's name is Rex", ["Dog's name: Rex"]),
    ("My sister is called Eva", ["Sister's name: Eva"]),
    ("I love hiking in the alps", ["Likes hiking in the alps"]),
    ("I don't like olives", ["Dislikes olives"]),
    ("Remember that my car is on level 3", ["My car is on level 3"]),
    ("me llamo José y vivo en Ciudad de México", ["Name: José", "Lives in Ciudad de México"]),
    ("no me gusta el café", ["Dislikes el café"]),
    ("我叫小明，我住在北京。", ["Name: 小明", "Lives in 北京"]),
    ("我不喜欢咖啡", ["Dislikes 咖啡"]),
    ("请记住我的车停在B2", ["我的车停在B2"]),
]
TEACHES_NOTHING = [
    "What is my name?", "Do you remember that I live in Oslo?", "If I live in Paris, what tax do I pay",
    "what if my name is Bob?", "Imagine my name is Zorg", "My name is not Bob", "I don't live in Rome",
    'Translate "my name is Ana"', "translate: my name is Ana", "He said I live in a bubble", "call me back later",
    "don't call me Bob", "call me when you are done", "I like it", "I love you", "I like this one",
    "```\nmy name is Code\n```", "> my name is Quoted", "My friend lives in Rome", "The agent uses Redis",
    "Write a story where I live in a castle", "When I was young I lived in Graz", "remember me?", "I work for fun",
    "我叫你来", "如果我住在巴黎", "", "   ", "?", "I live in ",
]  # fmt: skip


@pytest.mark.parametrize(("message", "facts"), TEACHES)
def test_message_teaches_when_the_person_speaks_of_themselves(
    message: str, facts: list[str]
) -> None:
    assert [claim.text for claim in claims_in(message)] == facts


@pytest.mark.parametrize("message", TEACHES_NOTHING)
def test_message_teaches_nothing_when_it_is_no_statement_of_their_own(message: str) -> None:
    assert claims_in(message) == []


def test_pasted_text_teaches_nothing() -> None:
    assert claims_in("My name is Ana. " + "Long text. " * 300) == []


@given(
    st.text(max_size=2000)
    | st.lists(st.sampled_from([*(m for m, _ in TEACHES), *TEACHES_NOTHING])).map(" ".join)
)
def test_reading_never_fails_and_never_hangs_whatever_is_said(message: str) -> None:
    began = time.thread_time()
    for claim in claims_in(message):
        assert claim.text.strip()
        assert claim.relation
    assert time.thread_time() - began < 0.5
