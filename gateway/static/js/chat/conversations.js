// The list of conversations: by day, searchable, renamed in place, deleted with ten seconds to undo.
import { h, icon, iconButton } from "./dom.js";
import { dayHeading, refusal } from "./words.js";

const UNDO_MS = 10_000;
const SEARCH_WAIT_MS = 250;
const REST_MS = 1_000;

/** `[{ heading, conversations }]`, newest first. */
export function byDay(conversations, now = Date.now(), zone = undefined) {
  const groups = [];
  for (const conversation of [...conversations].sort(
    (a, b) => b.updated_at - a.updated_at || (a.id < b.id ? 1 : -1),
  )) {
    const heading = dayHeading(conversation.updated_at, now, zone);
    if (groups.at(-1)?.heading !== heading) groups.push({ heading, conversations: [] });
    groups.at(-1).conversations.push(conversation);
  }
  return groups;
}

export const titleOf = (conversation) => conversation?.title || "New conversation";

/** `onDrawn()` follows each change of what is shown, whoever caused it: the open one's title may be among it. */
export function createConversations({ list, search, api, store, announcer, onOpen, onGone, onDrawn }) {
  const leaving = new Map();
  let current = null;
  let renaming = null;
  let found = null;
  let next = null;
  let situation = "loading";
  let asking = null;
  let timer = null;
  let resting = null;

  const keep = (conversations) =>
    conversations.forEach((c) =>
      store.state.conversations.set(c.id, { ...store.state.conversations.get(c.id), ...c }),
    );
  const path = (query, before) =>
    `/api/conversations?limit=50${query ? `&q=${encodeURIComponent(query)}` : ""}${before ? `&before=${encodeURIComponent(before)}` : ""}`;

  /**
   * Asks for the list. Whoever asks the same while an answer is on its way shares it; an answer to an older
   * question is dropped.
   */
  function fetchList({ more = false } = {}) {
    const query = search.value.trim();
    const wanted = path(query, more ? next : null);
    if (asking?.path === wanted && store.isAwake()) return asking.done;
    asking?.stop.abort();
    asking = null;
    if (!store.isAwake()) {
      situation = store.state.instance ? "away" : "loading";
      draw();
      return Promise.resolve();
    }
    clearTimeout(resting);
    resting = null;
    const mine = { path: wanted, stop: new AbortController() };
    asking = mine;
    mine.done = take(mine, query, more);
    return mine.done;
  }

  async function take(mine, query, more) {
    try {
      const { data } = await api.call("GET", mine.path, undefined, { signal: mine.stop.signal });
      if (asking !== mine) return;
      keep(data.conversations);
      if (query) found = [...(more ? (found ?? []) : []), ...data.conversations.map((c) => c.id)];
      else found = null;
      next = data.next;
      situation = "ready";
    } catch (error) {
      if (mine.stop.signal.aborted) return;
      situation = error.code === "unavailable" ? "away" : "failed";
      if (situation === "away") rest();
    }
    asking = null;
    draw();
  }

  /** The assistant could not answer: frames that come meanwhile do not each ask again, one try a moment later does. */
  function rest() {
    resting = setTimeout(() => {
      resting = null;
      if (situation === "away") fetchList();
    }, REST_MS);
  }

  async function rename(conversation, title) {
    renaming = null;
    const before = conversation.title;
    if (!title || title === before) return draw();
    store.state.conversations.set(conversation.id, { ...conversation, title });
    draw();
    try {
      await api.call("PUT", `/api/conversations/${conversation.id}`, { title });
    } catch (error) {
      store.state.conversations.set(conversation.id, { ...conversation, title: before });
      announcer.toast(`Not renamed. ${refusal(error)}`);
      draw();
    }
    return undefined;
  }

  async function reallyDelete(id, keepalive = false) {
    leaving.delete(id);
    try {
      await api.call("DELETE", `/api/conversations/${id}`, undefined, { keepalive });
      store.state.conversations.delete(id);
      store.state.threads.delete(id);
    } catch (error) {
      if (error.code !== "not_found") announcer.toast(`Not deleted. ${refusal(error)}`);
      else store.state.conversations.delete(id);
    }
    draw();
  }

  function remove(conversation) {
    const wasOpen = conversation.id === current;
    const wait = setTimeout(() => reallyDelete(conversation.id), UNDO_MS);
    leaving.set(conversation.id, wait);
    announcer.toast(`“${titleOf(conversation)}” is deleted.`, {
      ms: UNDO_MS,
      undo: () => {
        clearTimeout(wait);
        leaving.delete(conversation.id);
        draw();
        if (wasOpen && current === null) onOpen(conversation.id);
      },
    });
    draw();
    list.focus();
    if (wasOpen) onGone();
  }

  function renameField(conversation) {
    const field = h("input", {
      class: "input",
      "aria-label": "Title",
      maxlength: "200",
      autocomplete: "off",
    });
    field.value = conversation.title ?? "";
    let settled = false;
    const settle = (title) => {
      if (!settled) {
        settled = true;
        rename(store.state.conversations.get(conversation.id) ?? conversation, title);
      }
    };
    field.addEventListener("keydown", (event) => {
      if (event.isComposing || event.keyCode === 229) return;
      if (event.key === "Enter") {
        event.preventDefault();
        settle(field.value.trim());
      }
      if (event.key === "Escape") {
        event.stopPropagation();
        event.preventDefault();
        settle(null);
      }
    });
    field.addEventListener("blur", () => settle(field.value.trim()));
    queueMicrotask(() => {
      field.focus();
      field.select();
    });
    return field;
  }

  function row(conversation) {
    const here = conversation.id === current;
    const running = ["queued", "running"].includes(conversation.last_turn_state);
    if (renaming === conversation.id) return h("li", { class: "side-item" }, renameField(conversation));
    const link = h(
      "a",
      {
        href: `/chat/${conversation.id}`,
        "aria-current": here ? "page" : null,
        title: titleOf(conversation),
      },
      titleOf(conversation),
      running ? h("span", { class: "visually-hidden" }, ", answering") : "",
    );
    link.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      onOpen(conversation.id);
    });
    return h(
      "li",
      { class: `side-item${here ? " current" : ""}${running ? " running" : ""}` },
      link,
      h(
        "span",
        { class: "tools-row" },
        iconButton(icon("pencil"), `Rename ${titleOf(conversation)}`, () => {
          renaming = conversation.id;
          draw();
        }),
        iconButton(icon("trash-2"), `Delete ${titleOf(conversation)}`, () => remove(conversation)),
      ),
    );
  }

  const NOTES = {
    loading: "Fetching your conversations.",
    away: "Your conversations are shown as soon as your assistant is awake.",
    failed: "The list could not be fetched.",
  };

  function shown() {
    const all = [...store.state.conversations.values()].filter(
      (conversation) => !leaving.has(conversation.id),
    );
    return found ? all.filter((conversation) => found.includes(conversation.id)) : all;
  }

  function draw() {
    drawRows();
    onDrawn();
  }

  function drawRows() {
    if (renaming && list.querySelector("input")) return;
    const groups = byDay(shown());
    const sections = groups.map(({ heading, conversations }) =>
      h("section", {}, h("h2", {}, heading), h("ul", {}, conversations.map(row))),
    );
    if (!groups.length) {
      const empty = search.value.trim()
        ? `Nothing matches “${search.value.trim()}”.`
        : "Your conversations will stand here. Write something to begin the first.";
      sections.push(h("p", { class: "side-note" }, situation === "ready" ? empty : NOTES[situation]));
    }
    if (situation === "failed")
      sections.push(
        h("button", { type: "button", class: "button small", onclick: () => fetchList() }, "Try again"),
      );
    if (next)
      sections.push(
        h(
          "button",
          { type: "button", class: "button small plain wide", onclick: () => fetchList({ more: true }) },
          "Show more",
        ),
      );
    list.replaceChildren(...sections);
  }

  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => fetchList(), SEARCH_WAIT_MS);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !search.value) return;
    event.stopPropagation();
    search.value = "";
    fetchList();
  });
  addEventListener("pagehide", () => {
    for (const [id, wait] of leaving) {
      clearTimeout(wait);
      reallyDelete(id, true);
    }
  });

  return {
    draw,
    fetch: fetchList,
    setCurrent(id) {
      current = id;
      draw();
    },
    startRename(id) {
      renaming = id;
      draw();
    },
    /** Whether the list is here, asked for, or soon asked for again. */
    get loaded() {
      return situation === "ready" || asking !== null || resting !== null;
    },
  };
}
