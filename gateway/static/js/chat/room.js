// One conversation at a time: opens it, sends to it, stops it, and redraws it when the store changed.
import { ulid } from "./ulid.js";
import { limitWords, refusal } from "./words.js";

const PAGE = 50;
const AGAIN_MS = 1_500;
const ULID_IN_PATH = /^\/chat\/([0-9a-z]{26})$/;

export function createRoom({ api, store, announcer, scroll }) {
  let current = null;
  let loadError = null;
  let parts = null;
  let drawing = false;
  let announced = null;
  const dirty = new Set();

  const idOf = (path) => ULID_IN_PATH.exec(path)?.[1] ?? null;
  const thread = () => (current ? store.thread(current) : null);
  const running = () => (current ? store.runningTurn(current) : null);

  // -- drawing: once a frame of the screen, whatever came meanwhile

  function mark(...what) {
    what.forEach((name) => dirty.add(name));
    if (drawing) return;
    drawing = true;
    const draw = () => {
      drawing = false;
      const work = [...dirty];
      dirty.clear();
      work.forEach((name) => DRAW[name]());
    };
    if (document.hidden) setTimeout(draw, 50);
    else requestAnimationFrame(draw);
  }

  const DRAW = { thread: drawThread, state: () => parts.drawState(), list: () => parts.conversations.draw() };

  function items() {
    if (!current) return [];
    const { messages } = store.thread(current);
    const known = new Set(messages.map((message) => message.client_message_id));
    return [...messages, ...store.outboxOf(current).filter((entry) => !known.has(entry.client_message_id))];
  }

  function drawThread() {
    const now = thread();
    const shown = items();
    const situation =
      !now || shown.length
        ? "ready"
        : ({
            loading: "loading",
            empty: "loading",
            away: store.state.instance ? "away" : "loading",
            stale: loadError ? "lost" : "loading",
          }[now.status] ?? "ready");
    parts.transcript.draw(current, shown, situation, { hasMore: now?.hasMore, error: loadError });
    parts.composer.setRunning(running() !== null);
    if (shown.length) scroll.grown();
    else scroll.toStart();
  }

  /** The open conversation's title; the list calls this whenever it is drawn, so that neither is ahead. */
  function drawTitle() {
    parts.drawTitle(
      current ? (store.state.conversations.get(current) ?? { id: current, title: null }) : null,
    );
  }

  // -- what is said aloud: the beginning and the end of an answer here, never its words

  function speak(frame) {
    if (frame.type === "RUN_STARTED" && announced !== frame.turn_id) {
      announced = frame.turn_id;
      announcer.polite("Your assistant is answering.");
    }
    if (frame.type === "RUN_FINISHED") {
      const paragraphs = (frame.message?.text ?? "").split(/\n{2,}/).filter((part) => part.trim()).length;
      announcer.polite(
        frame.outcome === "stopped"
          ? "The answer was stopped."
          : `The answer is finished, ${paragraphs} ${paragraphs === 1 ? "paragraph" : "paragraphs"}.`,
      );
    }
    if (frame.type === "RUN_ERROR") announcer.alert(`The answer ended early. ${frame.message_text ?? ""}`);
  }

  /** Everything that one frame changed. */
  function take(changes) {
    for (const change of changes) {
      const here = change.conversationId === current;
      if (change.kind === "thread" && here) {
        mark("thread");
        speak(change.frame);
      }
      if (change.kind === "stale" && here) load(current);
      if (change.kind === "conversations") mark("list");
      if (change.kind === "outbox") {
        mark("thread");
        catchUp();
      }
      if (change.kind === "instance") {
        mark("state", "thread");
        catchUp();
      }
      if (change.kind === "quota") mark("state");
      if (change.kind === "reset") catchUp();
      if (change.kind === "signed_out") parts.onSignedOut(change.reason);
    }
  }

  /** Something is known that was not, perhaps after a gap: fetch what is not known to be whole. */
  function catchUp() {
    if (!parts.conversations.loaded) parts.conversations.fetch();
    if (current && !["ready", "loading"].includes(thread().status)) load(current);
  }

  /** Whether the assistant could answer for this conversation: it is awake, and no first words are on their way. */
  function canAsk(id) {
    const onTheWay = ({ state }) => state === "sending" || state === "waiting";
    return store.isAwake() && !store.outboxOf(id).some(onTheWay);
  }

  // -- fetching

  async function load(id) {
    loadError = null;
    if (!canAsk(id)) {
      store.failLoad(id, true);
      return mark("thread");
    }
    store.beginLoad(id);
    mark("thread");
    try {
      const { data } = await api.call("GET", `/api/conversations/${id}/messages?limit=${PAGE}`);
      if (store.finishLoad(id, data) === "stale" && id === current) setTimeout(catchUp, AGAIN_MS);
    } catch (error) {
      if (error.code === "not_found" && store.outboxOf(id).length) store.beginEmpty(id);
      else {
        store.failLoad(id, error.code === "unavailable");
        if (id === current) loadError = error;
        // The assistant may have woken while the refusal was on its way.
        if (error.code !== "not_found" && store.isAwake())
          setTimeout(catchUp, AGAIN_MS);
      }
    }
    if (id === current) mark("thread", "list");
    return undefined;
  }

  async function loadEarlier() {
    const id = current;
    const first = thread().messages[0];
    try {
      const { data } = await api.call(
        "GET",
        `/api/conversations/${id}/messages?limit=${PAGE}&before=${first.id}`,
      );
      scroll.keepPlace(() => {
        store.prepend(id, data);
        drawThread();
      });
    } catch (error) {
      announcer.toast(`Earlier messages could not be fetched. ${refusal(error)}`);
    }
  }

  // -- what a person does

  function open(id, { push = true } = {}) {
    if (push && idOf(location.pathname) !== id) history.pushState(null, "", id ? `/chat/${id}` : "/chat");
    current = id;
    loadError = null;
    parts.composer.moveTo(id ?? "new");
    parts.conversations.setCurrent(id);
    if (id && !["ready", "loading"].includes(thread().status)) load(id);
    mark("thread", "list");
    scroll.follow();
  }

  function begin() {
    const id = ulid();
    store.beginEmpty(id);
    history.pushState(null, "", `/chat/${id}`);
    current = id;
    parts.composer.adopt(id);
    parts.conversations.setCurrent(id);
    return id;
  }

  /** Resolves with the conversation's id once the gateway or the agent holds the message. */
  async function send(text, clientId) {
    const { quota } = store.state;
    if (quota?.level === "out") {
      announcer.alert(`Not sent. ${limitWords("quota_charge_month", quota.resets_at, Date.now(), quota).title}. Your words stay here.`);
      throw new Error("nothing is left to answer with");
    }
    const id = current ?? begin();
    store.state.outbox.set(clientId, {
      client_message_id: clientId,
      conversation_id: id,
      role: "user",
      text,
      state: "sending",
      created_at: Date.now(),
    });
    mark("thread");
    scroll.follow();
    try {
      const { data } = await api.call("POST", `/api/conversations/${id}/messages`, {
        client_message_id: clientId,
        text,
        channel: "web",
        source: "user",
      });
      const entry = store.state.outbox.get(clientId);
      // A frame may have been quicker than this answer and know more.
      if (entry?.state === "sending")
        store.state.outbox.set(clientId, {
          ...entry,
          state: data.state === "waiting" ? "waiting" : "sent",
          settled_at: Date.now(),
        });
      mark("thread", "list");
      catchUp();
      return id;
    } catch (error) {
      store.state.outbox.delete(clientId);
      mark("thread");
      catchUp();
      announcer.alert(`Not sent. ${refusal(error)} Your words are still in the field.`);
      announcer.toast(`Not sent. ${refusal(error)} Your words are still in the field.`);
      throw error;
    }
  }

  async function attempt(what, act) {
    try {
      await act();
    } catch (error) {
      announcer.toast(`${what} ${refusal(error)}`);
    }
  }

  const stop = () => {
    const turn = running();
    if (turn) attempt("Not stopped.", () => api.call("PUT", `/api/turns/${turn}/cancellation`));
  };

  const wake = (reason) =>
    attempt("Your assistant could not be woken.", async () => {
      const { data } = await api.call("POST", "/api/wake", { reason });
      if (data && !store.state.instance) {
        store.state.instance = data;
        mark("state", "thread");
        catchUp();
      }
    });

  const actions = {
    wake: () => wake("person"),
    begin: () => open(null),
    reload: () => load(current),
    starter: (text) => parts.composer.fill(text),
    retryTurn: (turn) => {
      scroll.follow();
      attempt("Not tried again.", () =>
        api.call("POST", `/api/turns/${turn}/retries`, { client_message_id: ulid() }),
      );
    },
    retryPending: (id) =>
      attempt("Not tried again.", () => api.call("POST", `/api/pending-messages/${id}/retries`)),
    discard: (id) =>
      attempt("Not discarded.", async () => {
        await api.call("DELETE", `/api/pending-messages/${id}`);
        store.state.outbox.delete(id);
        mark("thread");
      }),
  };

  return {
    actions,
    open,
    send,
    stop,
    wake,
    take,
    idOf,
    catchUp,
    drawTitle,
    running,
    get current() {
      return current;
    },
    bind(given) {
      parts = given;
      document.getElementById("earlier").addEventListener("click", loadEarlier);
    },
  };
}
