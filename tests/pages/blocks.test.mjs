// The block splitter: what it calls settled never changes again, however the text goes on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { languageOf, lex, mend, openCode, splitBlocks } from "../../gateway/static/js/chat/blocks.js";

const SAMPLE = [
  "# Title",
  "A paragraph with **bold**, `code` and $5 or $7.",
  "- one\n- two\n  - inner\n\n- three",
  "1. first\n2. second",
  "```python\ndef f():\n    return '```'\n\n\nprint(f())\n```",
  "> quoted\n> twice",
  "| a | b |\n|---|---|\n| 1 | 2 |",
  "Setext\n===",
  "    indented code",
  "~~~\ntilde\n~~~",
  "<div>\nraw\n</div>",
  "- [ ] task\n- [x] done",
  "***",
  "Last words[^1] and a [link][ref].",
  "[ref]: https://example.org",
].join("\n\n");

test("the blocks of a finished text are the text", () => {
  assert.equal(
    splitBlocks(SAMPLE, true)
      .map((block) => block.raw)
      .join(""),
    SAMPLE,
  );
});

test("whatever the cut, a settled block is one of the finished text's blocks", () => {
  const finished = splitBlocks(SAMPLE, true);
  for (let end = 1; end < SAMPLE.length; end += 1) {
    let passed = 0;
    for (const block of splitBlocks(SAMPLE.slice(0, end), false).filter((b) => b.settled)) {
      const whole = finished.find(
        (candidate, index) => finished.slice(0, index).reduce((sum, b) => sum + b.raw.length, 0) === passed,
      );
      assert.ok(whole, `a block begins at ${passed} that the finished text does not have (cut at ${end})`);
      assert.equal(block.tokens[0].type, whole.tokens[0].type, `cut at ${end}`);
      assert.equal(block.raw.trimEnd(), whole.raw.trimEnd(), `cut at ${end}`);
      passed += whole.raw.length;
      if (block.raw !== whole.raw) break;
    }
  }
});

test("a fence is open until its closing line has ended", () => {
  assert.equal(splitBlocks("```js\nlet a", false)[0].open, true);
  assert.equal(splitBlocks("```js\nlet a\n``", false)[0].open, true);
  assert.equal(splitBlocks("```js\nlet a\n```", false)[0].open, false);
  assert.equal(splitBlocks("```js\nlet a\n```", false)[0].settled, false);
  assert.equal(splitBlocks("```js\nlet a\n```\n", false)[0].settled, true);
  assert.equal(splitBlocks("```js\nlet a", true)[0].settled, true);
});

test("a longer fence is not closed by a shorter one", () => {
  assert.equal(splitBlocks("````\n```\ninner\n```\n", false)[0].open, true);
});

test("a half-typed closing line is not shown as code", () => {
  assert.equal(openCode("```js\nlet a = 1;\n``"), "let a = 1;");
  assert.equal(openCode("```js\nlet a = `x`"), "let a = `x`");
  assert.equal(openCode("```js"), "");
});

test("the language is the first word after the fence", () => {
  assert.equal(languageOf("```Python title=x\ncode\n"), "python");
  assert.equal(languageOf("~~~\ncode\n"), "");
  assert.equal(languageOf("```c++\n"), "c++");
});

test("what is half written is ended, so that it does not flicker", () => {
  assert.equal(mend("some **bo"), "some **bo**");
  assert.equal(mend("some **bold*"), "some **bold**");
  assert.equal(mend("some **"), "some ");
  assert.equal(mend("call `f(x"), "call `f(x`");
  assert.equal(mend("see [the guide](https://exam"), "see the guide");
  assert.equal(mend("costs $5 or $7, **really**"), "costs $5 or $7, **really**");
  assert.equal(mend("`**` is a mark"), "`**` is a mark");
});

test("link definitions of settled blocks hold for later ones", () => {
  const links = Object.create(null);
  splitBlocks("[ref]: https://example.org\n\nmore", false, links);
  const [paragraph] = lex("a [link][ref]", links);
  assert.equal(paragraph.tokens.find((token) => token.type === "link").href, "https://example.org");
});

test("a long answer is split in a time that grows with its tail, not with itself", () => {
  const paragraph = "Words that fill a paragraph. ".repeat(8);
  const text = `${paragraph}\n\n`.repeat(80);
  const begun = performance.now();
  let settled = 0;
  for (let end = 60; end <= text.length; end += 60) {
    for (const block of splitBlocks(text.slice(settled, end), false))
      if (block.settled) settled += block.raw.length;
  }
  assert.ok(performance.now() - begun < 1_000);
  assert.ok(settled > text.length - 2 * paragraph.length);
});
