// Renders a text that grows: settled blocks stay as they are, only the tail is done again.
import { languageOf, lex, mend, openCode, splitBlocks } from "./blocks.js";
import { codeBox } from "./code.js";
import { h } from "./dom.js";
import { renderTokens } from "./markdown.js";

const PLAIN_ABOVE = 100_000;

function blockNode(kind) {
  return h("div", { class: kind === "heading" ? "block heading" : "block" });
}

/** `{ node, update(text, final) }` for one stretch of the assistant's words. */
export function createProse(announce) {
  const node = h("div", { class: "prose" });
  let links = Object.create(null);
  let shown = "";
  let settledLength = 0;
  let tail = null;
  let done = false;

  function reset() {
    node.replaceChildren();
    [links, shown, settledLength, tail, done] = [Object.create(null), "", 0, null, false];
  }

  function tailFor(token) {
    if (tail?.kind !== token.type) {
      tail?.node.remove();
      tail = { kind: token.type, node: blockNode(token.type), code: null };
      node.append(tail.node);
    }
    return tail;
  }

  function drawCode(block, final) {
    const view = tailFor(block.tokens[0]);
    if (!view.code) {
      view.code = codeBox(languageOf(block.raw), announce);
      view.node.replaceChildren(view.code.node);
    }
    if (block.open) view.code.grow(openCode(block.raw));
    else if (final) view.code.finish(block.tokens[0].text);
    else view.code.grow(block.tokens[0].text);
  }

  /** Fenced code inside lists and quotes gets the same box once its block is settled. */
  function boxInnerCode(container) {
    for (const pre of container.querySelectorAll("pre")) {
      const code = pre.querySelector("code");
      const box = codeBox((code?.className ?? "").replace(/^language-/, ""), announce);
      box.finish(pre.textContent);
      pre.replaceWith(box.node);
    }
  }

  function drawBlock(block, settled) {
    const [token] = block.tokens;
    const isFence = token.type === "code" && token.codeBlockStyle !== "indented";
    const begun = block.raw.includes("\n");
    if (isFence && begun) drawCode(block, settled);
    else if (isFence && !settled) tailFor(token);
    else {
      const view = tailFor(token);
      view.code = null;
      view.node.replaceChildren(renderTokens(settled ? block.tokens : lex(mend(block.raw), links)));
      if (settled) boxInnerCode(view.node);
    }
    if (settled) {
      settledLength += block.raw.length;
      tail = null;
    }
  }

  function drawPlain(text) {
    const everything = h(
      "button",
      {
        type: "button",
        class: "button small",
        onclick: () => {
          reset();
          draw(text, true);
        },
      },
      "Show it formatted",
    );
    node.replaceChildren(
      h("p", { class: "quiet small" }, "This answer is very long, so it is shown as plain text. "),
      everything,
      h("pre", { class: "plain-text" }, text),
    );
    shown = text;
    done = true;
  }

  function draw(text, final) {
    shown = text;
    done = final;
    for (const block of splitBlocks(text.slice(settledLength), final, links)) drawBlock(block, block.settled);
    if (final && tail) {
      tail.node.remove();
      tail = null;
    }
  }

  return {
    node,
    /** `final` says that no more is to come. */
    update(raw, final) {
      const text = raw.replaceAll("\r\n", "\n");
      if (text === shown && final === done) return;
      if (!text.startsWith(shown) || (done && text !== shown)) reset();
      if (text.length > PLAIN_ABOVE && final && settledLength === 0) drawPlain(text);
      else draw(text, final);
    },
  };
}
