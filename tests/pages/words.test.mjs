// Small pure parts: ids, times, the waking card's model, the order of words and tools, groups by day.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createApi } from "../../gateway/static/js/chat/api.js";
import { isSendKey } from "../../gateway/static/js/chat/composer.js";
import { ulid } from "../../gateway/static/js/chat/ulid.js";
import { absolute, dayHeading, duration, exact, limitWords, refusal, relative } from "../../gateway/static/js/chat/words.js";

const NOW = Date.UTC(2026, 10, 30, 12, 0);
const MINUTE = 60_000;
const DAY = 86_400_000;

test("a ulid has 26 lower-case characters and sorts by time", () => {
  const ids = [1, 2, NOW].map((at) => ulid(at));
  assert.ok(ids.every((id) => /^[0-9a-hjkmnp-tv-z]{26}$/.test(id)));
  assert.deepEqual([...ids].sort(), ids);
  assert.equal(ulid(0, new Uint8Array(10)), "0".repeat(26));
  assert.notEqual(ulid(NOW), ulid(NOW));
});

test("relative times are said in the nearest unit", () => {
  assert.equal(relative(NOW - 10_000, NOW), "just now");
  assert.equal(relative(NOW - 5 * MINUTE, NOW), "5 minutes ago");
  assert.equal(relative(NOW + 9 * DAY, NOW), "in 9 days");
  assert.equal(relative(NOW - DAY, NOW), "yesterday");
});

test("absolute times name their zone, across the change of clocks", () => {
  assert.equal(absolute(Date.UTC(2026, 11, 1), "Europe/Stockholm"), "1 December 2026 at 01:00 CET");
  assert.match(absolute(Date.UTC(2026, 6, 1), "Europe/Stockholm"), /02:00 CEST$/);
});

test("exact times have their seconds, and name their zone", () => {
  assert.equal(exact(Date.UTC(2026, 11, 1, 0, 0, 9), "Europe/Stockholm"), "1 Dec 2026, 01:00:09 CET");
});

test("days are those of the reader's zone", () => {
  const lateEvening = Date.UTC(2026, 10, 29, 23, 30);
  assert.equal(dayHeading(lateEvening, NOW, "UTC"), "Yesterday");
  assert.equal(dayHeading(lateEvening, NOW, "Europe/Stockholm"), "Today");
  assert.equal(dayHeading(NOW - 3 * DAY, NOW, "UTC"), "Friday");
  assert.equal(dayHeading(NOW - 40 * DAY, NOW, "UTC"), "October 2026");
});

test("durations are short and never negative", () => {
  assert.deepEqual([-5, 340, 12_000, 185_000].map(duration), ["0.0 s", "0.3 s", "12 s", "3 min 5 s"]);
});

test("a limit says what ran out and when it starts again", () => {
  const words = limitWords("quota_charge_month", NOW + 9 * DAY, NOW);
  assert.match(words.title, /quota is used up/);
  assert.match(words.text, /in 9 days, on 9 December 2026/);
  assert.match(limitWords("not_covered", NOW + 9 * DAY, NOW).text, /fits into what is left\. .* in 9 days/);
  assert.match(limitWords("requests_minute").title, /one minute/);
});

test("a full storage says where to make room, and other refusals stay what they are", () => {
  assert.match(refusal({ code: "forbidden", details: { reason: "storage_full" } }), /account page/);
  assert.equal(refusal({ code: "forbidden", details: {} }), "That is not allowed for this account.");
  assert.equal(refusal({ code: "network" }), "There is no connection just now.");
});

test("a quota of nothing promises no day on which it begins again", () => {
  const nothing = { none_given: true, credit: null };
  for (const reason of ["quota_charge_month", "not_covered"]) {
    const words = limitWords(reason, NOW + 9 * DAY, NOW, nothing);
    assert.equal(words.title, "Your quota is nothing");
    assert.doesNotMatch(words.text, /again|in 9 days/);
  }
  const credit = { none_given: true, credit: "$0.01" };
  assert.doesNotMatch(limitWords("not_covered", NOW + 9 * DAY, NOW, credit).text, /again/);
});

test("an answer that credit does not cover says what is left of it", () => {
  const words = limitWords("not_covered", NOW + 9 * DAY, NOW, { none_given: false, credit: "$0.01" });
  assert.doesNotMatch(words.title, /quota/);
  assert.match(words.text, /Of your credit \$0\.01 is left\. The quota starts again in 9 days/);
});

test("Enter sends, but not with Shift and not in the middle of a composition", () => {
  const key = (more) => isSendKey({ key: "Enter", keyCode: 13, isComposing: false, ...more });
  assert.equal(key({}), true);
  assert.equal(key({ shiftKey: true }), false);
  assert.equal(key({ isComposing: true }), false);
  assert.equal(key({ keyCode: 229 }), false);
  assert.equal(key({ key: "a" }), false);
});

test("a refusal keeps its code, and no answer at all is called network", async () => {
  const refused = createApi({
    csrf: "t",
    fetch: async () =>
      new Response(
        JSON.stringify({
          error: { code: "quota_exhausted", message: "no", details: { reason: "x" }, request_id: "r1" },
        }),
        { status: 402 },
      ),
  });
  await assert.rejects(refused.call("POST", "/x", {}), {
    status: 402,
    code: "quota_exhausted",
    requestId: "r1",
  });
  const broken = createApi({
    csrf: "t",
    fetch: async () => {
      throw new TypeError("failed");
    },
  });
  await assert.rejects(broken.call("GET", "/x"), { code: "network" });
});

test("the token goes with what changes something, and with nothing else", async () => {
  const seen = [];
  const api = createApi({
    csrf: "t1",
    fetch: async (_, options) => {
      seen.push([options.method, options.headers["x-csrf-token"]]);
      return new Response(null, { status: 204 });
    },
  });
  await api.call("GET", "/x");
  await api.call("POST", "/x", {});
  api.useToken("t2");
  await api.call("DELETE", "/x");
  assert.deepEqual(seen, [
    ["GET", undefined],
    ["POST", "t1"],
    ["DELETE", "t2"],
  ]);
});
