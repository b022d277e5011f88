// One conversation's messages, and what a frame of its turn changes in them. Pure.

/** Code points, as the agent counts them: an emoji is one, though JavaScript's length says two. */
export function codePoints(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** `text` without its first `count` code points. */
export function afterCodePoints(text, count) {
  let index = 0;
  for (const point of text) {
    if (count <= 0) break;
    index += point.length;
    count -= 1;
  }
  return text.slice(index);
}

/** A conversation's messages and how far they are known: `status` is empty, loading, ready, stale or away. */
export function newThread() {
  return {
    status: "empty",
    messages: [],
    epoch: null,
    floor: -1,
    hasMore: false,
    buffer: [],
    loadStartedAt: 0,
  };
}

/** A message of the wire as the page keeps it, with its length in code points. */
export function kept(message) {
  return {
    tools: [],
    notices: [],
    error: null,
    ...message,
    text: message.text ?? "",
    length: codePoints(message.text ?? ""),
  };
}

/** Puts a message in, or renews the one that has its id. */
export function upsert(thread, message) {
  const index = thread.messages.findIndex((known) => known.id === message.id);
  if (index < 0) thread.messages.push(kept(message));
  else thread.messages[index] = { ...thread.messages[index], ...kept(message) };
}

const byId = (thread, id) => thread.messages.find((message) => message.id === id);
const answerOf = (thread, turnId) =>
  thread.messages.findLast((message) => message.turn_id === turnId && message.role === "assistant");

function ensureAnswer(thread, id, frame) {
  if (!byId(thread, id)) {
    upsert(thread, {
      id,
      role: "assistant",
      text: "",
      state: "streaming",
      turn_id: frame.turn_id,
      conversation_id: frame.conversation_id,
      created_at: frame.at,
    });
  }
  return byId(thread, id);
}

/** False when the words do not join on to those before: something is missing in between. */
function appendText(thread, frame) {
  const message = ensureAnswer(thread, frame.message_id, frame);
  if (frame.offset > message.length) return false;
  const fresh = afterCodePoints(frame.delta, message.length - frame.offset);
  message.text += fresh;
  message.length += codePoints(fresh);
  return true;
}

function keepTool(thread, frame) {
  const message = answerOf(thread, frame.turn_id);
  if (!message) return false;
  const others = message.tools.filter((tool) => tool.id !== frame.tool_call.id);
  const index = message.tools.findIndex((tool) => tool.id === frame.tool_call.id);
  message.tools = index < 0 ? [...others, frame.tool_call] : message.tools.with(index, frame.tool_call);
  return true;
}

function end(thread, frame) {
  if (frame.message) upsert(thread, frame.message);
  const message = answerOf(thread, frame.turn_id);
  if (!message) return false;
  if (message.state === "streaming") message.state = frame.type === "RUN_ERROR" ? "failed" : frame.outcome;
  if (frame.type === "RUN_ERROR") {
    message.error = {
      code: frame.code,
      message: frame.message_text,
      details: frame.details ?? {},
      retryable: frame.retryable,
    };
  }
  return true;
}

/** Applies one frame to a loaded thread; false means that the thread has a hole and must be fetched. */
export function applyToThread(thread, frame) {
  switch (frame.type) {
    case "RUN_STARTED":
      if (frame.message) upsert(thread, frame.message);
      ensureAnswer(thread, frame.assistant_message_id, frame);
      return true;
    case "TEXT_MESSAGE_START":
      ensureAnswer(thread, frame.message_id, frame);
      return true;
    case "TEXT_MESSAGE_CONTENT":
      return appendText(thread, frame);
    case "TOOL_CALL_START":
    case "TOOL_CALL_END":
      return keepTool(thread, frame);
    case "RUN_FINISHED":
    case "RUN_ERROR":
      return end(thread, frame);
    case "CUSTOM":
      if (frame.name === "notice")
        answerOf(thread, frame.turn_id)?.notices.push({ kind: frame.kind, text: frame.text });
      return true;
    default:
      return true;
  }
}
