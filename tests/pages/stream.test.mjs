// The stream: it comes back from every kind of silence, from the right place, and says so in time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createStream } from "../../gateway/static/js/chat/stream.js";

/** Time that moves only when told. */
function fakeClock() {
  let now = 0;
  let next = 1;
  const timers = new Map();
  return {
    now: () => now,
    setTimeout(act, ms) {
      timers.set(next, { at: now + ms, act });
      return next++;
    },
    clearTimeout(id) {
      timers.delete(id);
    },
    advance(ms) {
      const until = now + ms;
      for (;;) {
        const due = [...timers].filter(([, timer]) => timer.at <= until).sort((a, b) => a[1].at - b[1].at)[0];
        if (!due) break;
        timers.delete(due[0]);
        now = due[1].at;
        due[1].act();
      }
      now = until;
    },
  };
}

function setUp({ mayRest = () => false } = {}) {
  const clock = fakeClock();
  const sources = [];
  const statuses = [];
  const frames = [];
  let refusals = 0;
  class FakeEventSource {
    constructor(url) {
      this.url = url;
      this.readyState = 0;
      sources.push(this);
    }
    close() {
      this.readyState = 2;
    }
    accept() {
      this.readyState = 1;
      this.onopen?.();
    }
    send(data, lastEventId = "") {
      this.onmessage?.({ data: JSON.stringify(data), lastEventId });
    }
    retryByItself() {
      this.readyState = 0;
      this.onerror?.();
    }
    refuse() {
      this.readyState = 2;
      this.onerror?.();
    }
  }
  const stream = createStream({
    address: (cursor) => `/api/stream${cursor ? `?cursor=${cursor}` : ""}`,
    EventSource: FakeEventSource,
    clock,
    random: () => 1,
    mayRest,
    onFrame: (frame) => frames.push(frame),
    onStatus: (status) => {
      if (statuses.at(-1) !== status) statuses.push(status);
    },
    onRefused: () => {
      refusals += 1;
    },
  });
  stream.open();
  return { clock, sources, statuses, frames, stream, refusals: () => refusals, last: () => sources.at(-1) };
}

const beat = { type: "CUSTOM", name: "heartbeat" };

test("frames are handed on and the cursor is the last numbered one", () => {
  const { last, frames, stream } = setUp();
  last().accept();
  last().send({ seq: 1 }, "e.1.0");
  last().send(beat, "e.1.0");
  assert.equal(frames.length, 2);
  assert.equal(stream.cursor, "e.1.0");
});

test("a line that is silent for two and a half heartbeats is opened anew from the cursor", () => {
  const { clock, sources, last } = setUp();
  last().accept();
  last().send({ seq: 7 }, "e.7.2");
  clock.advance(37_400);
  assert.equal(sources.length, 1);
  clock.advance(200);
  assert.equal(sources.length, 2);
  assert.equal(sources[0].readyState, 2);
  assert.equal(last().url, "/api/stream?cursor=e.7.2");
});

test("heartbeats keep a quiet line open", () => {
  const { clock, sources, last } = setUp();
  last().accept();
  for (let n = 0; n < 20; n += 1) {
    clock.advance(15_000);
    last().send(beat);
  }
  assert.equal(sources.length, 1);
});

test("a short cut that the browser mends by itself is never mentioned", () => {
  const { clock, statuses, last } = setUp();
  last().accept();
  last().retryByItself();
  clock.advance(1_200);
  last().accept();
  clock.advance(5_000);
  assert.deepEqual(statuses, ["live"]);
});

test("after two seconds without a line the page says that it reconnects, and stops saying so", () => {
  const { clock, statuses, last } = setUp();
  last().accept();
  last().retryByItself();
  clock.advance(2_100);
  assert.deepEqual(statuses, ["live", "reconnecting"]);
  last().accept();
  assert.deepEqual(statuses, ["live", "reconnecting", "live"]);
});

test("refusals are answered with longer and longer waits, up to half a minute", () => {
  const { clock, sources, last, refusals } = setUp();
  const waits = [];
  for (let n = 0; n < 8; n += 1) {
    const before = clock.now();
    const count = sources.length;
    last().refuse();
    while (sources.length === count) clock.advance(100);
    waits.push(Math.round((clock.now() - before) / 1000));
  }
  assert.deepEqual(waits, [1, 2, 4, 8, 15, 30, 30, 30]);
  assert.equal(refusals(), 8);
});

test("a frame makes the next wait short again", () => {
  const { clock, sources, last } = setUp();
  last().refuse();
  clock.advance(1_000);
  last().refuse();
  clock.advance(2_000);
  last().accept();
  last().send(beat);
  const count = sources.length;
  last().refuse();
  clock.advance(1_050);
  assert.equal(sources.length, count + 1);
});

test("an old source that still speaks is not listened to", () => {
  const { clock, sources, frames, last } = setUp();
  last().accept();
  clock.advance(40_000);
  sources[0].send({ seq: 99 }, "old.99.0");
  assert.deepEqual(frames, []);
});

test("the network coming back, or the person, opens at once instead of waiting", () => {
  const { sources, stream, last } = setUp();
  last().refuse();
  stream.nudge();
  assert.equal(sources.length, 2);
  last().accept();
  stream.nudge();
  assert.equal(sources.length, 2);
});

test("a hidden page gives its connection up after a minute and takes it again when seen", () => {
  const { clock, sources, stream, last } = setUp({ mayRest: () => true });
  last().accept();
  last().send({ seq: 3 }, "e.3.0");
  stream.hidden();
  for (let n = 0; n < 3; n += 1) {
    clock.advance(15_000);
    last().send(beat, "e.3.0");
  }
  assert.equal(last().readyState, 1);
  clock.advance(15_100);
  assert.equal(last().readyState, 2);
  clock.advance(600_000);
  assert.equal(sources.length, 1);
  stream.nudge();
  assert.equal(last().url, "/api/stream?cursor=e.3.0");
});

test("a hidden page keeps its connection while an answer is under way", () => {
  let answering = true;
  const { clock, stream, last } = setUp({ mayRest: () => !answering });
  last().accept();
  stream.hidden();
  for (let n = 0; n < 6; n += 1) {
    clock.advance(15_000);
    last().send(beat);
  }
  assert.equal(last().readyState, 1);
  answering = false;
  for (let n = 0; n < 5; n += 1) {
    clock.advance(15_000);
    last().send(beat);
  }
  assert.equal(last().readyState, 2);
});

test("a hidden page gives its connection to another tab at once, a visible one does not", () => {
  let answering = false;
  const { stream, last } = setUp({ mayRest: () => !answering });
  last().accept();
  stream.giveWay();
  assert.equal(last().readyState, 1);
  stream.hidden();
  answering = true;
  stream.giveWay();
  assert.equal(last().readyState, 1);
  answering = false;
  stream.giveWay();
  assert.equal(last().readyState, 2);
  stream.nudge();
  assert.equal(last().readyState, 0);
});

test("after the end nothing opens again", () => {
  const { clock, sources, stream, last } = setUp();
  last().accept();
  stream.end();
  stream.nudge();
  clock.advance(600_000);
  assert.equal(sources.length, 1);
});
