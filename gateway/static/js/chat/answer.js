// The view of one answer: words, the tools between them, what is going on, and how it ended.
import { codePoints, afterCodePoints } from "./thread.js";
import { copyButton } from "./code.js";
import { h, icon } from "./dom.js";
import { createProse } from "./prose.js";
import { createToolRow } from "./tools.js";
import { limitWords } from "./words.js";

/** Words and tools in the order in which they happened: `[{ text } | { tool }]`. */
export function segments(text, tools) {
  const parts = [];
  let rest = text;
  let passed = 0;
  const ordered = tools
    .map((tool, index) => ({ tool, index }))
    .sort((a, b) => a.tool.text_offset - b.tool.text_offset || a.index - b.index);
  for (const { tool } of ordered) {
    const take = Math.max(0, tool.text_offset - passed);
    const after = afterCodePoints(rest, take);
    const before = rest.slice(0, rest.length - after.length);
    if (before.trim()) parts.push({ text: before });
    passed += codePoints(before);
    rest = after;
    parts.push({ tool });
  }
  if (rest.trim()) parts.push({ text: rest });
  return parts;
}

/** That what was written before the end is still there; null when nothing was. */
const keptWords = (message) => (message.text || message.tools?.length ? "What had been written is kept." : null);

/** What to say of a turn that did not end well; null when there is nothing to say. */
export function endingWords(message, quota = null) {
  if (message.state === "stopped")
    return {
      kind: "",
      shape: { icon: "square" },
      title: "You stopped this answer.",
      text: keptWords(message) ?? "Nothing had been written.",
      retry: "Answer again",
    };
  if (message.state === "expired")
    return {
      kind: "",
      shape: { icon: "clock" },
      title: "This answer waited too long.",
      text: "Nobody decided within seven days.",
      retry: "Answer again",
    };
  if (message.state === "interrupted" || message.error?.code === "interrupted") {
    return {
      kind: "",
      shape: { icon: "unplug" },
      title: "The answer was interrupted.",
      text: "Your assistant was restarted while it wrote.",
      kept: keptWords(message),
      retry: "Answer again",
    };
  }
  if (message.state !== "failed") return null;
  const { code, message: text, details = {}, retryable = true } = message.error ?? {};
  const reason = details?.reason ?? "";
  if (code === "quota_exhausted" || ["requests_minute", "concurrent_calls", "suspended"].includes(reason)) {
    return {
      kind: "limit",
      shape: { icon: "hourglass" },
      // Something may be left, only not enough: the ring and the card say when nothing is.
      ...limitWords(code === "quota_exhausted" ? "not_covered" : reason, details?.resets_at, Date.now(), quota),
      kept: "Your message is kept above.",
      retry: reason === "suspended" ? null : "Try again",
    };
  }
  return {
    kind: "failed",
    shape: { icon: "circle-alert" },
    title: "The answer failed.",
    text: text || "Something went wrong on our side.",
    kept: "Your message is kept.",
    retry: retryable === false ? null : "Try again",
    reference: details?.request_id,
  };
}

/** What is going on right now, when no words say it by themselves. */
function phaseOf(message) {
  if (message.state !== "streaming") return null;
  const running = message.tools.findLast((tool) => tool.state === "running");
  if (running) return null;
  const lastTool = message.tools.at(-1);
  if (message.length === 0) return lastTool ? "Reading what it found" : "Thinking";
  return lastTool && lastTool.text_offset >= message.length ? "Reading what it found" : null;
}

function endingNode(message, actions, quota) {
  const words = endingWords(message, quota);
  if (!words) return null;
  return h(
    "div",
    { class: `ending ${words.kind}` },
    icon(words.shape.icon),
    h("strong", {}, words.title),
    h("p", {}, [words.text, words.kept].filter(Boolean).join(" ")),
    words.reference ? h("p", { class: "reference" }, words.reference) : null,
    words.retry
      ? h(
          "div",
          { class: "actions" },
          h(
            "button",
            { type: "button", class: "button small", onclick: () => actions.retryTurn(message.turn_id) },
            icon("rotate-ccw"),
            words.retry,
          ),
        )
      : null,
  );
}

/** `{ node, update(message, isLast) }`. `quota()` is what the stream last said of it, or null. */
export function createAnswer({ actions, announce, quota }) {
  const body = h("div", { class: "answer" });
  const foot = h("div", {});
  const node = h("article", { class: "message assistant", "aria-label": "Your assistant" }, body, foot);
  const parts = [];
  let text = "";
  let footKey = "";

  function part(index, kind) {
    if (parts[index]?.kind === kind) return parts[index].view;
    for (const old of parts.splice(index)) old.view.node.remove();
    const view = kind === "tool" ? createToolRow() : createProse(announce);
    parts.push({ kind, view });
    body.append(view.node);
    return view;
  }

  function drawFoot(message) {
    const phase = phaseOf(message);
    const streaming = message.state === "streaming";
    const key = JSON.stringify([phase, message.state, message.error, message.notices.length, message.model]);
    if (key === footKey) return;
    footKey = key;
    const notices = message.notices.map((notice) =>
      h("div", { class: "ending" }, icon("info"), h("p", {}, notice.text)),
    );
    const copy = copyButton(() => text, announce, { label: "Copy answer", className: "icon-button compact" });
    copy.lastChild.className = "visually-hidden";
    const meta =
      streaming || !text
        ? null
        : h(
            "div",
            { class: "meta" },
            h("div", { class: "meta-actions hover-only" }, copy),
            message.model ? h("span", { class: "hover-only" }, message.model) : null,
          );
    foot.replaceChildren(
      ...[
        phase ? h("p", { class: "phase" }, icon("mark"), phase) : null,
        ...notices,
        endingNode(message, actions, quota()),
        meta,
      ].filter(Boolean),
    );
  }

  return {
    node,
    update(message) {
      text = message.text;
      const wanted = segments(message.text, message.tools);
      wanted.forEach((segment, index) => {
        if (segment.tool) part(index, "tool").update(segment.tool);
        else
          part(index, "text").update(
            segment.text,
            message.state !== "streaming" || index < wanted.length - 1,
          );
      });
      for (const old of parts.splice(wanted.length)) old.view.node.remove();
      drawFoot(message);
    },
  };
}
