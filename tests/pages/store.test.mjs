// The store: whatever the wire repeats, cuts or overlaps, the transcript holds each word once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createStore } from "../../gateway/static/js/chat/store.js";
import { afterCodePoints, codePoints } from "../../gateway/static/js/chat/thread.js";

const CID = "01k0000000000000000000000c";
const EPOCH = "epoch-one";
const reset = (seq, epoch = EPOCH) => ({ type: "CUSTOM", name: "log.reset", epoch, seq });
const user = {
  id: "m1",
  conversation_id: CID,
  turn_id: "t1",
  role: "user",
  text: "hello",
  state: "complete",
  tools: [],
  client_message_id: "c1",
  created_at: 1,
};
const started = (seq) => ({
  type: "RUN_STARTED",
  seq,
  at: 1,
  conversation_id: CID,
  turn_id: "t1",
  message: user,
  assistant_message_id: "m2",
});
const words = (seq, delta, offset) => ({
  type: "TEXT_MESSAGE_CONTENT",
  seq,
  at: 1,
  conversation_id: CID,
  turn_id: "t1",
  message_id: "m2",
  delta,
  offset,
});
const finished = (seq, text) => ({
  type: "RUN_FINISHED",
  seq,
  at: 1,
  conversation_id: CID,
  turn_id: "t1",
  outcome: "complete",
  message: {
    id: "m2",
    conversation_id: CID,
    turn_id: "t1",
    role: "assistant",
    text,
    state: "complete",
    tools: [],
    created_at: 1,
  },
});
const snapshot = (seq, messages = [], epoch = EPOCH) => ({ messages, epoch, seq, has_more: false });
const answer = (store) => store.thread(CID).messages.find((message) => message.id === "m2");

function opened(seq = 0, messages = []) {
  const store = createStore({ now: () => 1_000 });
  store.apply(reset(seq));
  store.beginLoad(CID);
  store.finishLoad(CID, snapshot(seq, messages));
  return store;
}

const TURN = [
  started(1),
  words(2, "Na", 0),
  words(3, "ïve 👩‍🚀 ", 2),
  words(4, "done", 9),
  finished(5, "Naïve 👩‍🚀 done"),
];

test("a turn's frames make its text", () => {
  const store = opened();
  TURN.forEach((frame) => store.apply(frame));
  assert.equal(answer(store).text, "Naïve 👩‍🚀 done");
  assert.equal(answer(store).state, "complete");
  assert.equal(store.runningTurn(CID), null);
});

test("every frame twice, and the whole turn again, changes nothing", () => {
  const store = opened();
  for (const frame of [...TURN.slice(0, 4), ...TURN.slice(0, 4), ...TURN.flatMap((f) => [f, f])])
    store.apply(frame);
  assert.equal(answer(store).text, "Naïve 👩‍🚀 done");
  assert.equal(store.thread(CID).messages.length, 2);
});

test("words that overlap are joined where they meet, counted in code points", () => {
  const store = opened();
  [started(1), words(2, "🎉 one two", 0), words(3, "two three", 6)].forEach((frame) => store.apply(frame));
  assert.equal(answer(store).text, "🎉 one two three");
});

test("a hole in the offsets is noticed and nothing is glued over it", () => {
  const store = opened();
  [started(1), words(2, "one ", 0)].forEach((frame) => store.apply(frame));
  const changes = store.apply(words(4, "three", 8));
  assert.deepEqual(
    changes.map((change) => change.kind),
    ["stale"],
  );
  assert.equal(answer(store).text, "one ");
  assert.equal(store.thread(CID).status, "stale");
});

test("a snapshot taken in mid-answer goes on with newer frames only", () => {
  const partial = {
    id: "m2",
    conversation_id: CID,
    turn_id: "t1",
    role: "assistant",
    text: "one two ",
    state: "streaming",
    tools: [],
    created_at: 1,
  };
  const store = createStore({ now: () => 1 });
  store.apply(reset(0));
  store.beginLoad(CID);
  [started(1), words(2, "one ", 0), words(3, "two ", 4), words(4, "three", 8)].forEach((frame) =>
    store.apply(frame),
  );
  assert.equal(store.finishLoad(CID, snapshot(3, [user, partial])), "ready");
  assert.equal(answer(store).text, "one two three");
});

test("frames before a reload's snapshot that arrive after it are not applied again", () => {
  const store = createStore({ now: () => 1 });
  store.beginLoad(CID);
  store.finishLoad(CID, snapshot(3, [user, { ...finished(0, "one two ").message, state: "streaming" }]));
  store.apply(reset(0));
  assert.equal(store.thread(CID).status, "ready");
  [words(3, "two ", 4), words(4, "three", 8)].forEach((frame) => store.apply(frame));
  assert.equal(answer(store).text, "one two three");
});

test("a foreign epoch makes what is shown stale, and its numbers count from its own beginning", () => {
  const store = opened(50, [user]);
  store.apply(reset(2, "epoch-two"));
  assert.equal(store.thread(CID).status, "stale");
  store.beginLoad(CID);
  assert.equal(store.finishLoad(CID, snapshot(2, [user], "epoch-two")), "ready");
  [started(3), words(4, "again", 0)].forEach((frame) => store.apply(frame));
  assert.equal(answer(store).text, "again");
});

test("a reset that missed nothing leaves the transcript as it is", () => {
  const store = opened();
  TURN.slice(0, 4).forEach((frame) => store.apply(frame));
  store.apply(reset(4));
  assert.equal(store.thread(CID).status, "ready");
});

test("a reset after missed frames asks for the messages anew", () => {
  const store = opened();
  TURN.slice(0, 2).forEach((frame) => store.apply(frame));
  store.apply(reset(9));
  assert.equal(store.thread(CID).status, "stale");
});

test("a snapshot older than the stream's beginning is fetched anew, since neither holds what lies between", () => {
  const store = createStore();
  store.beginLoad(CID);
  store.apply(reset(9));
  assert.equal(store.finishLoad(CID, snapshot(5, [user])), "stale");
  store.beginLoad(CID);
  assert.equal(store.finishLoad(CID, snapshot(9, [user])), "ready");
});

test("the final message replaces what was streamed", () => {
  const store = opened();
  [started(1), words(2, "draft", 0), finished(3, "final")].forEach((frame) => store.apply(frame));
  assert.equal(answer(store).text, "final");
});

test("an error keeps the text so far and says why", () => {
  const store = opened();
  [started(1), words(2, "half", 0)].forEach((frame) => store.apply(frame));
  store.apply({
    type: "RUN_ERROR",
    seq: 3,
    at: 1,
    conversation_id: CID,
    turn_id: "t1",
    code: "quota_exhausted",
    message_text: "Used up.",
    retryable: true,
    details: { reason: "quota_charge_month" },
    message: null,
  });
  assert.equal(answer(store).text, "half");
  assert.equal(answer(store).state, "failed");
  assert.equal(answer(store).error.details.reason, "quota_charge_month");
});

test("tools stay one row each while they run and when they are done", () => {
  const store = opened();
  const call = {
    id: "x",
    name: "time_now",
    title: "Looked at the clock",
    arguments: {},
    state: "running",
    text_offset: 0,
    started_at: 1,
  };
  store.apply(started(1));
  store.apply({
    type: "TOOL_CALL_START",
    seq: 2,
    at: 1,
    conversation_id: CID,
    turn_id: "t1",
    tool_call: call,
  });
  store.apply({
    type: "TOOL_CALL_END",
    seq: 3,
    at: 1,
    conversation_id: CID,
    turn_id: "t1",
    tool_call: { ...call, state: "done", ended_at: 9 },
  });
  assert.deepEqual(
    answer(store).tools.map((tool) => tool.state),
    ["done"],
  );
});

test("a sent message gives way to the one that the agent took", () => {
  const store = opened();
  store.state.outbox.set("c1", {
    client_message_id: "c1",
    conversation_id: CID,
    text: "hello",
    state: "sending",
  });
  store.apply(started(1));
  assert.deepEqual(store.outboxOf(CID), []);
  assert.equal(store.thread(CID).messages.filter((message) => message.role === "user").length, 1);
});

test("waiting messages follow the gateway's list", () => {
  const store = opened();
  store.apply({
    type: "CUSTOM",
    name: "pending",
    messages: [{ client_message_id: "c9", conversation_id: CID, text: "later", state: "waiting" }],
  });
  assert.equal(store.outboxOf(CID)[0].state, "waiting");
  store.apply({
    type: "CUSTOM",
    name: "pending",
    messages: [
      {
        client_message_id: "c9",
        conversation_id: CID,
        text: "later",
        state: "failed",
        error: { message: "no" },
      },
    ],
  });
  assert.equal(store.outboxOf(CID)[0].state, "failed");
  store.apply({ type: "CUSTOM", name: "pending", messages: [] });
  assert.equal(store.outboxOf(CID)[0].state, "sent");
});

test("phases of the past do not put an assistant that is awake back to bed", () => {
  const store = createStore({ now: () => 1 });
  const phase = (seq, name, state, generation = 3) => ({
    type: "CUSTOM",
    name: "spawn.progress",
    seq,
    at: seq,
    generation,
    state,
    phase: name,
  });
  store.apply({ type: "CUSTOM", name: "instance", state: "ready", generation: 3 });
  [phase(1, "queued", "creating"), phase(2, "create", "creating"), phase(3, "ready", "ready")].forEach(
    (frame) => store.apply(frame),
  );
  assert.equal(store.state.instance.state, "ready");
  store.apply(phase(4, "queued", "creating", 4));
  assert.equal(store.state.instance.state, "creating");
  assert.equal(store.state.phases.length, 1);
  store.apply(phase(4, "queued", "creating", 4));
  assert.equal(store.state.phases.length, 1);
});

test("conversations are named, begun and deleted by frames", () => {
  const store = opened();
  store.apply(started(1));
  assert.equal(store.state.conversations.get(CID).last_turn_state, "running");
  store.apply({
    type: "CUSTOM",
    name: "conversation.updated",
    seq: 2,
    at: 5,
    conversation_id: CID,
    conversation: { id: CID, title: "Greetings", updated_at: 5, last_turn_state: "complete" },
  });
  assert.equal(store.state.conversations.get(CID).title, "Greetings");
  store.apply({ type: "CUSTOM", name: "conversation.deleted", seq: 3, at: 6, conversation_id: CID });
  assert.equal(store.state.conversations.has(CID), false);
});

test("code points are counted and cut as the agent counts them", () => {
  assert.equal(codePoints("a👩‍🚀é"), 5);
  assert.equal(afterCodePoints("👩‍🚀x", 3), "x");
  assert.equal(afterCodePoints("short", 99), "");
});

test("a conversation older than the fetched list gets its title with its messages", () => {
  const store = createStore();
  const conversation = { id: CID, title: "Long ago", created_at: 1, updated_at: 2, last_turn_state: "complete" };
  store.beginLoad(CID);
  store.finishLoad(CID, { ...snapshot(1, [user]), conversation });
  assert.deepEqual(store.state.conversations.get(CID), conversation);
});

test("an answer that frames have overtaken takes back neither a title nor a turn's state", () => {
  const store = createStore();
  const conversation = { id: CID, title: "", created_at: 1, updated_at: 2, last_turn_state: null };
  store.apply(reset(0));
  store.beginLoad(CID);
  store.apply(started(2));
  store.apply({ type: "CUSTOM", name: "conversation.updated", seq: 3, conversation_id: CID, conversation: { id: CID, title: "Hello" } });
  store.finishLoad(CID, { ...snapshot(1), conversation });
  const known = store.state.conversations.get(CID);
  assert.equal(known.title, "Hello");
  assert.equal(known.last_turn_state, "running");
});
