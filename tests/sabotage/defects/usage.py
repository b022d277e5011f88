"""Defects in how an answer's words about its usage are read, as other meters have had them."""

from tests.sabotage.defect import Defect

_CHATS = "tests/metering_proxy/test_usage_in_chats.py"
_MESSAGES = "tests/metering_proxy/test_usage_in_messages.py"
_RESPONSES = "tests/metering_proxy/test_usage_in_responses.py"
_GEMINI = "tests/metering_proxy/test_usage_in_gemini.py"
_LOOSELY = "tests/metering_proxy/test_loose_json.py"

USAGE = [
    Defect(
        name="leave-out-silent-thoughts",
        why="thoughts that only the total tells would be free: most of an answer by Gemini or Grok",
        file="metering_proxy/wires/openai_usage.py",
        old="silent = max(0, total - prompt - completion) if names.output else 0",
        new="silent = 0",
        tests=(_CHATS,),
    ),
    Defect(
        name="let-a-placeholder-replace",
        why="a last usage of nothing but zeros would make the call free",
        file="metering_proxy/wires/openai_chat.py",
        old="if reading and not reading.usage.total and self.found.usage:",
        new="if reading is None and self.found.usage:",
        tests=(_CHATS,),
    ),
    Defect(
        name="pay-cached-input-twice",
        why="an input that turns out to come from the cache would be paid there and as input",
        file="metering_proxy/wires/anthropic_messages.py",
        old="return 0 < before <= sum(",
        new="return 0 > before <= sum(",
        tests=(_MESSAGES,),
    ),
    Defect(
        name="believe-the-first-event",
        why="a message whose end was not counted would cost one token of output",
        file="metering_proxy/wires/anthropic_messages.py",
        old="self._is_counted = False",
        new="self._is_counted = True",
        tests=(_MESSAGES,),
    ),
    Defect(
        name="pay-for-opened-pages",
        why="each page that a search opens would cost as much as a search",
        file="metering_proxy/wires/openai_responses.py",
        old='action in (None, "search")',
        new="action is not at",
        tests=(_RESPONSES,),
    ),
    Defect(
        name="add-thoughts-that-are-inside",
        why="thoughts that are counted among the answer's tokens would be paid twice",
        file="metering_proxy/wires/gemini.py",
        old="return candidates - thoughts if total == read + candidates else candidates",
        new="return candidates",
        tests=(_GEMINI,),
    ),
    Defect(
        name="cached-sound-as-cached-text",
        why="sound from the cache would cost a third of its price",
        file="metering_proxy/pricing.py",
        old="usage.audio_cache_read * rates.read_audio",
        new="usage.audio_cache_read * rates.read",
        tests=(_GEMINI,),
    ),
    Defect(
        name="read-json-by-the-letter",
        why="an answer that was cut within an emoji would be taken for a failure, and be free",
        file="metering_proxy/wires/answers.py",
        old="return _loose(body) if len(body) <= _MOST_LOOSE_BYTES else None",
        new="return None",
        tests=(_LOOSELY,),
    ),
]
