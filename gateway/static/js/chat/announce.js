// What is said to the ear and flashed to the eye: one polite node, one for errors, toasts with an undo.
import { byId, h } from "./dom.js";

export function createAnnouncer() {
  const polite = byId("status");
  const urgent = byId("alerts");
  const toasts = byId("toasts");

  /** The same words twice in a row are spoken twice: the node is emptied in between. */
  function say(node, words) {
    node.textContent = "";
    setTimeout(() => {
      node.textContent = words;
    }, 30);
  }

  return {
    polite: (words) => say(polite, words),
    alert: (words) => say(urgent, words),

    /** A toast that goes after `ms`; `undo` gives it a button. Answers a function that takes it away. */
    toast(words, { undo = null, ms = 6_000 } = {}) {
      const node = h("div", { class: undo ? "toast" : "toast plain" }, h("span", {}, words));
      const timer = setTimeout(() => node.remove(), ms);
      const close = () => {
        clearTimeout(timer);
        node.remove();
      };
      if (undo)
        node.append(
          h(
            "button",
            {
              type: "button",
              onclick: () => {
                close();
                undo();
              },
            },
            "Undo",
          ),
        );
      toasts.append(node);
      say(polite, words);
      return close;
    },
  };
}
