// Markdown tokens to inert elements: raw HTML becomes text, links say where they lead, images stay out.
import DOMPurify from "dompurify";
import { Parser, Renderer } from "marked";
import { h, icon } from "./dom.js";

const escape = (text) =>
  text.replace(
    /[&<>"']/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c],
  );

class Plain extends Renderer {
  html({ text }) {
    return escape(text);
  }

  image({ href, text }) {
    return `<span class="blocked-image" title="${escape(href ?? "")}">${escape(text || "")}</span>`;
  }
}

const OPTIONS = { gfm: true, breaks: true, async: false };
OPTIONS.renderer = new Plain(OPTIONS);

const ALLOWED = {
  ALLOWED_TAGS: [
    "p",
    "br",
    "strong",
    "em",
    "del",
    "code",
    "pre",
    "blockquote",
    "ul",
    "ol",
    "li",
    "a",
    "hr",
    "span",
    "input",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
  ],
  ALLOWED_ATTR: ["href", "title", "class", "align", "start", "type", "checked", "disabled"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  // Every other attribute's value would have to look like an address, too.
  ADD_URI_SAFE_ATTR: ["align", "start", "type", "checked", "disabled"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** Where a link leads, in the reader's words; null when the address is none that may be followed. */
function destination(href) {
  if (!URL.canParse(href)) return null;
  const url = new URL(href);
  if (url.protocol === "mailto:") return url.pathname;
  return url.host.replace(/^www\./, "");
}

function mendLink(link) {
  const host = destination(link.getAttribute("href") ?? "");
  if (host === null) {
    link.replaceWith(...link.childNodes);
    return;
  }
  link.setAttribute("rel", "noopener noreferrer nofollow");
  link.setAttribute("target", "_blank");
  link.removeAttribute("class");
  if (!link.textContent.includes(host)) link.append(h("span", { class: "host" }, `(${host})`));
}

function placeholder(span) {
  const words = span.textContent || "without a description";
  span.replaceChildren(icon("image-off"), `Picture not loaded: ${words}`);
}

/** Elements of lexed blocks, safe to put on the page whatever the model wrote. */
export function renderTokens(tokens) {
  const fragment = DOMPurify.sanitize(Parser.parse(tokens, OPTIONS), ALLOWED);
  fragment
    .querySelectorAll("span")
    .forEach((span) =>
      span.className === "blocked-image" ? placeholder(span) : span.removeAttribute("class"),
    );
  fragment.querySelectorAll("a").forEach(mendLink);
  fragment
    .querySelectorAll("input")
    .forEach((input) =>
      input.type === "checkbox"
        ? input.setAttribute("aria-label", input.checked ? "Done" : "Not done")
        : input.remove(),
    );
  fragment.querySelectorAll("table").forEach((table) => {
    const box = h("div", { class: "grid-wrap", tabindex: "0", role: "region", "aria-label": "Table" });
    table.replaceWith(box);
    box.append(table);
  });
  return fragment;
}

/** Highlighted code (spans with classes) as elements. */
export function highlightedFragment(html) {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: ["span"],
    ALLOWED_ATTR: ["class"],
    RETURN_DOM_FRAGMENT: true,
  });
}
