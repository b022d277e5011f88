"""Defects in how an answer's words about its usage are read, as other meters have had them."""

from tests.sabotage.defect import Defect

_CHATS = "tests/metering_proxy/test_usage_in_chats.py"
_MESSAGES = "tests/metering_proxy/test_usage_in_messages.py"
_RESPONSES = "tests/metering_proxy/test_usage_in_responses.py"
_GEMINI = "tests/metering_proxy/test_usage_in_gemini.py"
_LOOSELY = "tests/metering_proxy/test_loose_json.py"
_ANSWER_COSTS = "tests/metering_proxy/test_answer_costs.py"
_CACHE_COSTS = "tests/metering_proxy/test_cache_costs.py"
_CHAT_COSTS = "tests/metering_proxy/test_chat_costs.py"
_UNREPORTED = "tests/metering_proxy/test_unreported_usage.py"

USAGE = [
    Defect(
        name="leave-out-silent-thoughts",
        why="thoughts that only the total tells would be free: most of an answer by Gemini or Grok",
        file="metering_proxy/wires/openai_usage.py",
        old="silent = max(0, total - prompt - completion)",
        new="silent = 0",
        tests=(_CHATS,),
    ),
    Defect(
        name="let-a-placeholder-replace",
        why="a last usage of nothing but zeros would make the call free",
        file="metering_proxy/wires/numbers.py",
        old="if value is not None and not (reported(value) == 0 and seen.get(name)):",
        new="if value is not None:",
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
    Defect(
        name="cache-beside-as-inside",
        why="input that a provider counts beside the rest would be left out, or paid as thoughts, a hundredfold",
        file="metering_proxy/wires/openai_usage.py",
        old="return cached if shown or cached > prompt else 0",
        new="return 0",
        tests=(_CACHE_COSTS,),
    ),
    Defect(
        name="written-for-an-hour-as-for-minutes",
        why="what a chat writes to the cache for an hour would cost five eighths of its price",
        file="metering_proxy/wires/openai_usage.py",
        old="hour = min(written, _for_an_hour(usage)) if written else 0",
        new="hour = 0",
        tests=(_CACHE_COSTS,),
    ),
    Defect(
        name="forget-the-place",
        why="what is served where it costs a tenth more would cost what it does anywhere",
        file="metering_proxy/wires/anthropic_messages.py",
        old="if isinstance(place, str) and place.lower() not in _ANYWHERE:",
        new="if not _ANYWHERE:",
        tests=(_ANSWER_COSTS,),
    ),
    Defect(
        name="forget-the-traffic",
        why="Vertex's dear tier would cost half, and its cheap one twice its price",
        file="metering_proxy/wires/gemini.py",
        old="self.found.tier = self.found.tier or _TRAFFIC.get(traffic)",
        new="assert traffic",
        tests=(_ANSWER_COSTS,),
    ),
    Defect(
        name="price-what-is-free",
        why="a model for which the provider takes nothing would be paid by the price list",
        file="metering_proxy/wires/openai_usage.py",
        old="return nanos if is_free or 0 < nanos",
        new="return nanos if 0 < nanos",
        tests=(_UNREPORTED,),
    ),
    Defect(
        name="join-what-is-not-parted",
        why="a stream whose events no empty line parts would be estimated from its JSON, at ten times its price",
        file="metering_proxy/tenant_side/tee.py",
        old='if b"\\n" not in data or _is_json(data):',
        new="if data:",
        tests=(_CHAT_COSTS,),
    ),
    Defect(
        name="miss-an-error-without-a-type",
        why="a message that broke would be taken for one that is whole, and nobody would answer in its place",
        file="metering_proxy/wires/anthropic_messages.py",
        old='case kind if kind == "error" or event.get("error"):',
        new='case kind if kind == "error":',
        tests=(_UNREPORTED,),
    ),
]
