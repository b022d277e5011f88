// Makes elements without HTML strings: nothing that a person or a model wrote is ever parsed here.
import icons from "alcove:icons";

const SVG = "http://www.w3.org/2000/svg";

/** `h("p", { class: "quiet", onclick: fn, "aria-label": "…" }, "text", node, null)`. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** One of the icons that the build found; decorative, so it always stands beside words or a label. */
export function icon(name) {
  const shapes = icons[name].map(([tag, attributes]) => svg(tag, attributes));
  return svg(
    "svg",
    {
      class: `icon icon-${name}`,
      viewBox: "0 0 24 24",
      fill: "none",
      stroke: "currentColor",
      "stroke-width": "1.75",
      "stroke-linecap": "round",
      "stroke-linejoin": "round",
      "aria-hidden": "true",
      focusable: "false",
    },
    ...shapes,
  );
}

export function iconButton(shape, label, onclick, className = "icon-button compact") {
  return h("button", { type: "button", class: className, "aria-label": label, title: label, onclick }, shape);
}

export const byId = (id) => document.getElementById(id);
