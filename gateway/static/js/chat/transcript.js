// Draws one conversation: each message has a view that is kept and updated, never drawn anew.
import { createAnswer } from "./answer.js";
import { h, icon, iconButton } from "./dom.js";
import { copyButton } from "./code.js";
import { absolute, refusal } from "./words.js";

const KEEP_LIVE = 12;
const LONG_TEXT = 4_000;

function userView({ actions, announce }) {
  const bubble = h("div", { class: "bubble" });
  const meta = h("div", { class: "meta" });
  const node = h("article", { class: "message user", "aria-label": "You" }, bubble, meta);
  const copy = copyButton(() => bubble.textContent, announce, {
    label: "Copy message",
    className: "icon-button compact hover-only",
  });
  copy.lastChild.className = "visually-hidden";

  const notes = {
    sending: () => [h("span", {}, "Sending")],
    sent: () => [h("span", {}, "Sent")],
    waiting: (entry) => [
      h("span", { class: "badge" }, icon("clock"), "Waiting until your assistant is awake"),
      iconButton(icon("x"), "Discard this message", () => actions.discard(entry.client_message_id)),
    ],
    failed: (entry) => [
      h("span", { class: "badge bad" }, icon("circle-alert"), "Not delivered yet"),
      h(
        "button",
        {
          type: "button",
          class: "button small",
          onclick: () => actions.retryPending(entry.client_message_id),
        },
        "Try again",
      ),
      h(
        "button",
        {
          type: "button",
          class: "button small plain",
          onclick: () => actions.discard(entry.client_message_id),
        },
        "Discard",
      ),
    ],
  };

  let shown = "";
  return {
    node,
    update(message) {
      const state = message.id ? "complete" : message.state;
      const key = `${state}|${message.text.length}|${message.error?.message ?? ""}`;
      if (key === shown) return;
      shown = key;
      bubble.textContent = message.text;
      node.className = `message user ${state}${message.text.length > LONG_TEXT ? " long" : ""}`;
      if (message.id)
        meta.replaceChildren(
          h(
            "time",
            { class: "hover-only", title: absolute(message.created_at) },
            clockTime(message.created_at),
          ),
          copy,
        );
      else meta.replaceChildren(...(notes[state] ?? notes.sent)(message));
    },
  };
}

const clockTime = (at) => new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" }).format(at);

function hello(onStarter) {
  const starters = [
    [
      "Think something through",
      "with questions back",
      "Help me think through a decision. Ask me one question at a time.",
    ],
    ["Write something down", "and find it again later", "Please remember this for me: "],
    ["Explain something", "as simply as it goes", "Explain to me, simply and with one example, "],
    ["See what you remember", "about me so far", "What do you remember about me?"],
  ];
  return h(
    "section",
    { class: "hello" },
    icon("mark"),
    h("h2", {}, "What is on your mind?"),
    h(
      "p",
      {},
      "This is a new conversation. What you tell your assistant stays in its own room, and it remembers across conversations.",
    ),
    h(
      "div",
      { class: "starters" },
      starters.map(([title, more, text]) =>
        h("button", { type: "button", onclick: () => onStarter(text) }, h("strong", {}, title), more),
      ),
    ),
  );
}

const skeleton = () =>
  h("div", { class: "skeleton", "aria-hidden": "true" }, h("span"), h("span"), h("span"));

/** `draw(conversationId, items, situation)`; situation: "ready", "loading", "away" or "lost". */
export function createTranscript({ log, earlier, actions, announce, quota }) {
  let shownId;
  let views = new Map();
  let placeholder = null;

  function place(node) {
    if (placeholder === node) return;
    placeholder?.remove();
    placeholder = node;
    if (node) log.prepend(node);
  }

  function situationNode(situation, items, error) {
    if (items.length) return null;
    if (situation === "loading") return placeholder?.className === "skeleton" ? placeholder : skeleton();
    if (situation === "away")
      return h(
        "div",
        { class: "empty" },
        icon("moon"),
        h("h2", {}, "Your assistant has your messages"),
        h("p", {}, "They are kept in its room and are shown here as soon as it is awake."),
        h(
          "div",
          { class: "actions" },
          h("button", { type: "button", class: "button", onclick: actions.wake }, "Wake it now"),
        ),
      );
    if (situation === "lost")
      return h(
        "div",
        { class: "empty" },
        icon("file-question-mark"),
        h(
          "h2",
          {},
          error?.code === "not_found" ? "There is no such conversation" : "The messages could not be fetched",
        ),
        h(
          "p",
          {},
          error?.code === "not_found"
            ? "It may have been deleted, on this device or on another one."
            : `${refusal(error)} Nothing is lost.`,
        ),
        h(
          "div",
          { class: "actions" },
          error?.code === "not_found"
            ? h("button", { type: "button", class: "button", onclick: actions.begin }, "Begin a new one")
            : h("button", { type: "button", class: "button", onclick: actions.reload }, "Try again"),
        ),
      );
    return placeholder?.className === "hello" ? placeholder : hello(actions.starter);
  }

  function viewOf(item) {
    const key = item.client_message_id ?? item.id;
    if (!views.has(key)) {
      views.set(
        key,
        item.role === "assistant" ? createAnswer({ actions, announce, quota }) : userView({ actions, announce }),
      );
    }
    return [key, views.get(key)];
  }

  return {
    draw(conversationId, items, situation, { hasMore = false, error = null } = {}) {
      if (conversationId !== shownId) {
        views.forEach((view) => view.node.remove());
        views = new Map();
        place(null);
        shownId = conversationId;
      }
      earlier.hidden = !hasMore;
      place(situationNode(situation, items, error));
      const keys = new Set();
      let before = placeholder;
      items.forEach((item, index) => {
        const [key, view] = viewOf(item);
        keys.add(key);
        view.update(item, index === items.length - 1);
        view.node.classList.toggle("old", index < items.length - KEEP_LIVE);
        const expected = before ? before.nextSibling : log.firstChild;
        if (expected !== view.node) log.insertBefore(view.node, expected);
        before = view.node;
      });
      for (const [key, view] of views) {
        if (keys.has(key)) continue;
        view.node.remove();
        views.delete(key);
      }
    },
  };
}
