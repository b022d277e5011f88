// What the page knows, and how each frame of the stream changes it. No page, no network: frames in,
// changes out. Applying a frame twice changes nothing; a hole is noticed and never papered over.

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

/** The way of one generation; it never goes back. */
const STATE_ORDER = ["absent", "creating", "starting", "ready", "stopping", "stopped", "failed"];

function newThread() {
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

function kept(message) {
  return {
    tools: [],
    notices: [],
    error: null,
    ...message,
    text: message.text ?? "",
    length: codePoints(message.text ?? ""),
  };
}

export function createStore({ now = Date.now } = {}) {
  const state = {
    epoch: null,
    seq: -1,
    spawnerSeq: -1,
    conversations: new Map(),
    threads: new Map(),
    outbox: new Map(),
    instance: null,
    phases: [],
    quota: null,
  };

  const threadOf = (id) => {
    if (!state.threads.has(id)) state.threads.set(id, newThread());
    return state.threads.get(id);
  };

  function upsert(thread, message) {
    const index = thread.messages.findIndex((known) => known.id === message.id);
    if (index < 0) thread.messages.push(kept(message));
    else thread.messages[index] = { ...thread.messages[index], ...kept(message) };
    if (message.client_message_id) state.outbox.delete(message.client_message_id);
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
  function applyToThread(thread, frame) {
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

  const TURN_STATE = {
    RUN_STARTED: () => "running",
    RUN_FINISHED: (f) => f.outcome,
    RUN_ERROR: (f) => (f.code === "interrupted" ? "interrupted" : "failed"),
  };

  function noteConversation(frame) {
    if (frame.name === "conversation.updated") {
      state.conversations.set(frame.conversation.id, {
        ...state.conversations.get(frame.conversation.id),
        ...frame.conversation,
      });
      return true;
    }
    if (frame.name === "conversation.deleted") {
      state.threads.delete(frame.conversation_id);
      return state.conversations.delete(frame.conversation_id);
    }
    const turnState = TURN_STATE[frame.type]?.(frame);
    if (!turnState) return false;
    const known = state.conversations.get(frame.conversation_id);
    state.conversations.set(frame.conversation_id, {
      id: frame.conversation_id,
      title: null,
      created_at: frame.at,
      ...known,
      updated_at: frame.at,
      last_turn_state: turnState,
    });
    return true;
  }

  function applyReset(frame) {
    const missedNothing = frame.epoch === state.epoch && state.seq >= frame.seq;
    for (const thread of state.threads.values()) {
      const fresh = thread.epoch === frame.epoch && (missedNothing || thread.floor >= frame.seq);
      if (thread.status === "ready" && !fresh) thread.status = "stale";
      if (thread.epoch !== frame.epoch) thread.buffer = [];
    }
    state.seq = frame.epoch === state.epoch ? Math.max(state.seq, frame.seq) : frame.seq;
    state.epoch = frame.epoch;
    return [{ kind: "reset" }];
  }

  function applyAgent(frame) {
    if (frame.seq <= state.seq) return [];
    state.seq = frame.seq;
    const changes = noteConversation(frame)
      ? [{ kind: "conversations", conversationId: frame.conversation_id }]
      : [];
    const thread = state.threads.get(frame.conversation_id);
    if (!thread) return changes;
    if (thread.status === "loading") thread.buffer.push(frame);
    if (thread.status === "ready" && frame.seq > thread.floor) {
      if (!applyToThread(thread, frame)) thread.status = "stale";
      changes.push({
        kind: thread.status === "stale" ? "stale" : "thread",
        conversationId: frame.conversation_id,
        frame,
      });
    }
    return changes;
  }

  /** One phase of a start. Phases of the past, replayed to a page that came late, never set the state back. */
  function applyProgress(frame) {
    if (frame.seq <= state.spawnerSeq) return [];
    state.spawnerSeq = frame.seq;
    if (frame.phase === "queued" || state.phases.at(-1)?.generation !== frame.generation) state.phases = [];
    state.phases.push({ ...frame, received_at: now() });
    const known = state.instance;
    const isNews =
      known &&
      (frame.generation > (known.generation ?? 0) ||
        (frame.generation === known.generation &&
          STATE_ORDER.indexOf(frame.state) > STATE_ORDER.indexOf(known.state)));
    if (isNews)
      state.instance = {
        ...known,
        state: frame.state,
        generation: frame.generation,
        error: frame.error ?? null,
      };
    return [{ kind: "instance" }];
  }

  /** The gateway's whole list of messages that wait for the assistant to wake. */
  function applyPending(messages) {
    const waiting = new Map(messages.map((message) => [message.client_message_id, message]));
    for (const [id, entry] of state.outbox) {
      if (!waiting.has(id) && (entry.state === "waiting" || entry.state === "failed")) {
        state.outbox.set(id, { ...entry, state: "sent", settled_at: now() });
      }
    }
    for (const [id, message] of waiting) state.outbox.set(id, { ...message });
    return [{ kind: "outbox" }];
  }

  const STATES = {
    quota: (frame) => {
      state.quota = frame;
      return [{ kind: "quota" }];
    },
    instance: (frame) => {
      state.instance = { ...frame };
      return [{ kind: "instance" }];
    },
    pending: (frame) => applyPending(frame.messages),
    signed_out: (frame) => [{ kind: "signed_out", reason: frame.reason }],
    heartbeat: () => [],
    "spawn.progress": applyProgress,
    "log.reset": applyReset,
  };

  return {
    state,
    thread: threadOf,

    /** Applies one frame of the stream and says what changed: `[{ kind, conversationId?, frame? }]`. */
    apply(frame) {
      const known = frame.type === "CUSTOM" ? STATES[frame.name] : undefined;
      if (known) return known(frame);
      return Number.isInteger(frame.seq) ? applyAgent(frame) : [];
    },

    applyPending,

    /** From here until `finishLoad`, frames of this conversation are kept aside. */
    beginLoad(id) {
      const thread = threadOf(id);
      Object.assign(thread, { status: "loading", buffer: [], loadStartedAt: now() });
    },

    /** Takes a snapshot consistent as of its `seq`, then every frame that came meanwhile and is newer. */
    finishLoad(id, snapshot) {
      const thread = threadOf(id);
      const frames = thread.buffer.filter((frame) => frame.seq > snapshot.seq).sort((a, b) => a.seq - b.seq);
      Object.assign(thread, {
        status: "ready",
        messages: [],
        epoch: snapshot.epoch,
        floor: snapshot.seq,
        hasMore: snapshot.has_more,
        buffer: [],
      });
      for (const message of snapshot.messages) upsert(thread, message);
      for (const [key, entry] of state.outbox) {
        if (entry.conversation_id === id && entry.state === "sent" && entry.settled_at < thread.loadStartedAt)
          state.outbox.delete(key);
      }
      if (state.epoch !== null && snapshot.epoch !== state.epoch) thread.status = "stale";
      if (!frames.every((frame) => applyToThread(thread, frame))) thread.status = "stale";
      return thread.status;
    },

    failLoad(id, away) {
      Object.assign(threadOf(id), { status: away ? "away" : "stale", buffer: [] });
    },

    /** A conversation that was begun here has nothing to fetch. */
    beginEmpty(id) {
      Object.assign(threadOf(id), {
        status: "ready",
        epoch: state.epoch,
        floor: -1,
        messages: [],
        hasMore: false,
      });
    },

    /** Older messages, put before those that are shown. */
    prepend(id, page) {
      const thread = threadOf(id);
      const known = new Set(thread.messages.map((message) => message.id));
      thread.messages.unshift(...page.messages.filter((message) => !known.has(message.id)).map(kept));
      thread.hasMore = page.has_more;
    },

    /** What the person has sent and the transcript does not hold yet. */
    outboxOf(id) {
      return [...state.outbox.values()].filter((entry) => entry.conversation_id === id);
    },

    /** The turn that is being answered in this conversation, or null. */
    runningTurn(id) {
      return (
        state.threads
          .get(id)
          ?.messages.findLast((message) => message.role === "assistant" && message.state === "streaming")
          ?.turn_id ?? null
      );
    },
  };
}
