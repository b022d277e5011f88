"""Two people of one house, who must remain strangers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from infra.kit import ids
from tests import scripted as s
from tests.journeys import evidence
from tests.journeys.house import House
from tests.journeys.person import Person

SECRET_WORDS = "My name is Ada. My secret is xylophone."


@dataclass
class Pair:
    """Ada, who has something to hide, and Bob, who is curious."""

    ada: Person
    bob: Person
    tenant: str
    stranger: str
    conversation: str
    turn: str


@asynccontextmanager
async def two_people(house: House, scripted: s.ScriptedProvider) -> AsyncIterator[Pair]:
    """Both signed up and awake; Ada has told her assistant something."""
    scripted.then(s.last_contains(SECRET_WORDS), reply=s.text("I will keep it."))
    conversation = ids.ulid()
    async with Person(house.url) as ada, Person(house.url) as bob:
        await asyncio.gather(ada.sign_up(), bob.sign_up())
        await asyncio.gather(ada.wake(), bob.wake())
        async with ada.tab() as tab:
            turn = (await ada.say(SECRET_WORDS, conversation))["turn_id"]
            await tab.ended(turn)
        yield Pair(
            ada,
            bob,
            await evidence.tenant_of(house, ada.email),
            await evidence.tenant_of(house, bob.email),
            conversation,
            turn,
        )
