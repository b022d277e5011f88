// A box of code: its language, a copy button, and colours once it is complete.
import { h, icon } from "./dom.js";
import { highlightedFragment } from "./markdown.js";

const MAX_COLOURED = 20_000;
const whenIdle = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, 50));

/** Copies and says so: on the button for the eye, by `announce` for the ear. */
export function copyButton(textOf, announce, { label = "Copy", className = "" } = {}) {
  const words = h("span", {}, label);
  const button = h(
    "button",
    { type: "button", class: className, "aria-label": label, title: label },
    icon("copy"),
    words,
  );
  let timer;
  button.addEventListener("click", async () => {
    const worked = await navigator.clipboard.writeText(textOf()).then(
      () => true,
      () => false,
    );
    button.firstChild.replaceWith(icon(worked ? "check" : "x"));
    words.textContent = worked ? "Copied" : "Not copied";
    announce(worked ? "Copied." : "Could not copy.");
    clearTimeout(timer);
    timer = setTimeout(() => {
      button.firstChild.replaceWith(icon("copy"));
      words.textContent = label;
    }, 1_600);
  });
  return button;
}

/** `{ node, grow(text), finish(text) }`: `grow` only ever appends; colours come once, after `finish`. */
export function codeBox(language, announce) {
  const words = document.createTextNode("");
  const code = h("code", {}, words);
  const node = h(
    "div",
    { class: "code" },
    h(
      "div",
      { class: "code-head" },
      h("span", {}, language || "text"),
      copyButton(() => code.textContent.replace(/\n$/, ""), announce),
    ),
    h("pre", { tabindex: "0", "aria-label": `Code${language ? `, ${language}` : ""}` }, code),
  );

  function grow(text) {
    if (text.startsWith(words.data)) words.appendData(text.slice(words.data.length));
    else words.data = text;
  }

  async function colour(text) {
    const { highlight } = await import("./highlight.js");
    const html = highlight(text, language);
    if (html !== null && code.textContent === text) code.replaceChildren(highlightedFragment(html));
  }

  return {
    node,
    grow,
    finish(text) {
      grow(text);
      if (language && text.length <= MAX_COLOURED) whenIdle(() => colour(text));
    },
  };
}
