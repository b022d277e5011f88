// What the page knows, and how each frame of the stream changes it. No page, no network: frames in,
// changes out. Applying a frame twice changes nothing; a hole is noticed and never papered over.
import { applyToThread, kept, newThread, upsert } from "./thread.js";

/** The way of one generation; it never goes back. */
const STATE_ORDER = ["absent", "creating", "starting", "ready", "stopping", "stopped", "failed"];

export function createStore({ now = Date.now } = {}) {
  const state = {
    epoch: null,
    seq: -1,
    from: -1,
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

  /** As an answer has it, which may be older than the frames that came meanwhile: what they said stands. */
  function noteAnswered(conversation) {
    const known = state.conversations.get(conversation.id);
    const title = known?.title || conversation.title;
    state.conversations.set(conversation.id, { ...conversation, ...known, title });
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
    state.from = frame.seq;
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
      taken(frame.message);
      changes.push({
        kind: thread.status === "stale" ? "stale" : "thread",
        conversationId: frame.conversation_id,
        frame,
      });
    }
    return changes;
  }

  /** The transcript holds this message now, so that it need not be shown as sent. */
  function taken(message) {
    if (message?.client_message_id) state.outbox.delete(message.client_message_id);
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

    /** Whether the assistant is known to be awake: only then does it make sense to ask it for anything. */
    isAwake: () => state.instance?.state === "ready",

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
      // An agent that was started before the gateway's last change may not tell.
      if (snapshot.conversation) noteAnswered(snapshot.conversation);
      for (const [key, entry] of state.outbox) {
        if (entry.conversation_id === id && entry.state === "sent" && entry.settled_at < thread.loadStartedAt)
          state.outbox.delete(key);
      }
      // What lies between an older snapshot and the first frame that this stream sends comes from neither.
      if (state.epoch !== null && (snapshot.epoch !== state.epoch || snapshot.seq < state.from)) thread.status = "stale";
      if (!frames.every((frame) => applyToThread(thread, frame))) thread.status = "stale";
      thread.messages.forEach(taken);
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
