"""Defects in what the meter reads of providers' wires."""

from tests.sabotage.defect import Defect

_GEMINI = "tests/metering_proxy/test_gemini.py"
_RESPONSES = "tests/metering_proxy/test_responses.py"
_COSTS = "tests/metering_proxy/test_costs.py"
_BOUNDS = "tests/metering_proxy/test_bounds.py"
_MEDIA = "tests/metering_proxy/test_media.py"
_KINDS = "tests/metering_proxy/test_kinds.py"
_GOLDEN = "tests/metering_proxy/test_golden.py"

WIRES = [
    Defect(
        name="leave-thoughts-out",
        why="Gemini's thoughts are output beside the candidates, often most of it",
        file="metering_proxy/wires/gemini.py",
        old="output=candidates - audio_out - images_out + thoughts,",
        new="output=candidates - audio_out - images_out,",
        tests=(_GEMINI, _COSTS),
    ),
    Defect(
        name="price-the-threshold-itself-as-long",
        why="a request at exactly the threshold would cost twice what the provider takes",
        file="metering_proxy/pricing.py",
        old="return self.long_rates if total_input > self.long_above else self.rates",
        new="return self.long_rates if total_input >= self.long_above else self.rates",
        tests=(_COSTS,),
    ),
    Defect(
        name="forget-incomplete-responses",
        why="an answer that ran into its token limit would have no usage",
        file="metering_proxy/wires/openai_responses.py",
        old='("response.completed", "response.incomplete", ',
        new='("response.completed", ',
        tests=(_RESPONSES,),
    ),
    Defect(
        name="trust-the-body-for-what-is-hidden",
        why="a conversation kept at the provider would be held for the few bytes that name it",
        file="metering_proxy/wires/openai_responses.py",
        old="        found.opaque = True\n    return found\n",
        new="        found.opaque = False\n    return found\n",
        tests=(_RESPONSES, _BOUNDS),
    ),
    Defect(
        name="take-arguments-for-pictures",
        why="a long text dressed as a picture inside of a tool's arguments would be held as one picture",
        file="metering_proxy/wires/survey.py",
        old='_INSIDE = ("content", "parts", "output",',
        new='_INSIDE = ("content", "input", "parts", "output",',
        tests=(_BOUNDS,),
    ),
    Defect(
        name="believe-the-header-of-a-recording",
        why="a header that says a millisecond would make an hour of transcription nearly free",
        file="metering_proxy/wires/durations.py",
        old="return Fraction(len(data) - at, frame * rate)",
        new="return Fraction(size, frame * rate)",
        tests=(_MEDIA, _BOUNDS),
    ),
    Defect(
        name="forward-the-query",
        why="a key that a client put into its address would be sent to the provider",
        file="metering_proxy/wires/gemini.py",
        old='query="alt=sse" if sse else "",',
        new="query=envelope.query,",
        tests=(_GEMINI,),
    ),
    Defect(
        name="write-an-hours-remainder-for-five-minutes",
        why="cache writes outside of the split would cost less than the provider takes",
        file="metering_proxy/wires/anthropic_messages.py",
        old="if for_an_hour else (hour, minutes + remainder)",
        new="if False else (hour, minutes + remainder)",
        tests=(_COSTS,),
    ),
    Defect(
        name="ask-everyone-for-usage",
        why="a provider that refuses what it does not know would refuse every stream",
        file="metering_proxy/tenant_side/terms.py",
        old="return bool(self.ask.usage_edits) and self.route.connection.kind.include_usage",
        new="return bool(self.ask.usage_edits)",
        tests=(_KINDS,),
    ),
    Defect(
        name="take-the-cheaper-in-doubt",
        why="where xAI's numbers do not add up the operator would pay for the reasoning",
        file="metering_proxy/wires/openai_usage.py",
        old='return beside, reasoning, "reasoning"',
        new='return completion, reasoning, "reasoning"',
        tests=(_COSTS, _GOLDEN),
    ),
    Defect(
        name="lose-an-escape-between-pieces",
        why="a quotation mark cut from its backslash would end a text early, and usage behind it be lost",
        file="metering_proxy/wires/arrays.py",
        old="                        self._at -= 1  # what it escapes is still to come\n",
        new="",
        tests=(_GEMINI, _GOLDEN),
    ),
]
