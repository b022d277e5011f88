// One row a tool: what it did in plain words, how long it took, and, opened, what went in and out.
import { h, icon } from "./dom.js";
import { duration } from "./words.js";

const LOOKS = {
  running: { shape: { icon: "loader" }, words: "running" },
  done: { shape: { icon: "check" }, words: "done" },
  failed: { shape: { icon: "circle-x" }, words: "failed" },
};

/** The argument that says most about the call, for the one line. */
function target(values) {
  const first = Object.values(values ?? {}).find(
    (value) => typeof value === "string" || typeof value === "number",
  );
  if (first === undefined) return "";
  const line = String(first).replace(/\s+/g, " ");
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}

function body(tool) {
  const parts = [];
  if (Object.keys(tool.arguments ?? {}).length)
    parts.push(
      h("h4", {}, "Asked for"),
      h("pre", { tabindex: "0" }, JSON.stringify(tool.arguments, null, 2)),
    );
  if (tool.result_preview)
    parts.push(
      h("h4", {}, tool.state === "failed" ? "What went wrong" : "Found"),
      h("pre", { tabindex: "0" }, String(tool.result_preview)),
    );
  if (!parts.length)
    parts.push(
      h(
        "p",
        { class: "quiet" },
        tool.state === "running" ? "Nothing to show yet." : "It had nothing to show.",
      ),
    );
  return parts;
}

/** `{ node, update(tool) }`. */
export function createToolRow() {
  const summary = h("summary", {});
  const inner = h("div", { class: "tool-body" });
  const node = h("details", { class: "tool" }, summary, inner);
  let last = null;
  return {
    node,
    update(tool) {
      if (tool === last) return;
      last = tool;
      const look = LOOKS[tool.state] ?? LOOKS.done;
      const state = icon(look.shape.icon);
      state.classList.add("state");
      const turn = icon("chevron-right");
      turn.classList.add("turn");
      const what = target(tool.arguments);
      node.className = `tool ${tool.state}`;
      summary.replaceChildren(
        state,
        h("span", { class: "what" }, h("b", {}, tool.title || tool.name), what ? ` ${what}` : ""),
        h("span", { class: "visually-hidden" }, look.words),
        tool.state === "failed" ? h("span", { class: "why" }, "failed") : "",
        tool.ended_at ? h("span", { class: "took" }, duration(tool.ended_at - tool.started_at)) : "",
        turn,
      );
      inner.replaceChildren(...body(tool));
    },
  };
}
