// What every page but the chat adds to plain HTML: htmx for tables and tests, dialogs, small comforts.
// Without this script each form and link still works.
import "htmx.org/dist/htmx.esm.js";
import { absolute, exact, relative } from "./chat/words.js";
import { bindTheme, tellZone } from "./theme.js";

const csrf = document.querySelector('meta[name="csrf-token"]')?.content ?? "";

document.addEventListener("htmx:config:request", (event) => {
  event.detail.ctx.request.headers["x-csrf-token"] = csrf;
});

/** Times in the reader's zone; relative ones stay true while the page is open. */
function drawTimes(root) {
  for (const time of root.querySelectorAll("time.ago")) {
    const at = Date.parse(time.dateTime);
    time.title = exact(at);
    if (Math.abs(Date.now() - at) < 30 * 86_400_000) time.textContent = relative(at);
  }
  for (const time of root.querySelectorAll("time.when")) {
    time.textContent = absolute(Date.parse(time.dateTime));
    time.title = relative(Date.parse(time.dateTime));
  }
  for (const time of root.querySelectorAll("time.exact")) {
    time.textContent = exact(Date.parse(time.dateTime));
    time.title = relative(Date.parse(time.dateTime));
  }
}

const STRIPS = ".site-nav, .sub-nav, .table-wrap";

function fade(strip) {
  const from = Math.abs(strip.scrollLeft);
  strip.classList.toggle("more-before", from > 1);
  strip.classList.toggle("more-after", from + strip.clientWidth < strip.scrollWidth - 1);
}

const stripSizes = new ResizeObserver((entries) => entries.forEach((entry) => fade(entry.target)));

/** What scrolls sideways fades out on the side where there is more of it. May be called again for what came later. */
function bindSideways(root) {
  for (const strip of root.querySelectorAll(STRIPS)) {
    strip.onscroll = () => fade(strip);
    stripSizes.observe(strip);
    fade(strip);
  }
}

function bindReveal(root) {
  for (const button of root.querySelectorAll("[data-reveal]")) {
    const field = document.getElementById(button.dataset.reveal);
    button.hidden = false;
    button.addEventListener("click", () => {
      const show = field.type === "password";
      field.type = show ? "text" : "password";
      button.setAttribute("aria-pressed", String(show));
      field.focus();
    });
  }
}

function bindDialogs(root) {
  for (const button of root.querySelectorAll("[data-open]")) {
    button.addEventListener("click", () => document.getElementById(button.dataset.open).showModal());
  }
  for (const button of root.querySelectorAll("[data-close]")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }
  root.querySelectorAll("dialog[data-open-now]").forEach((dialog) => {
    dialog.showModal();
    dialog.querySelector("[aria-invalid=true]")?.focus();
  });
}

/** A second click while the first is on its way does nothing; going back makes the form whole again. */
function bindOnce(root) {
  for (const form of root.querySelectorAll("form[data-once]")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = "yes";
    });
  }
  addEventListener("pageshow", () =>
    root.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent),
  );
}

function bindModelRows(root) {
  for (const rows of root.querySelectorAll("[data-model-rows]")) {
    const add = rows.parentElement.querySelector("[data-add-row]");
    const showRemove = () =>
      rows.querySelectorAll("[data-remove-row]").forEach((button, _, all) => {
        button.hidden = all.length < 2;
      });
    add.hidden = false;
    add.addEventListener("click", () => {
      const row = rows.lastElementChild.cloneNode(true);
      row.querySelectorAll("input").forEach((input) => {
        input.value = "";
        input.id = `${input.id}-${rows.children.length}`;
      });
      row.querySelectorAll("label").forEach((label) => {
        label.htmlFor = label.nextElementSibling.id;
      });
      rows.append(row);
      showRemove();
      row.querySelector("input").focus();
    });
    rows.addEventListener("click", (event) => {
      const button = event.target.closest("[data-remove-row]");
      if (!button) return;
      button.closest("[data-model-row]").remove();
      showRemove();
      rows.querySelector("input").focus();
    });
    showRemove();
  }
}

/** The name follows who is chosen, until somebody types one of their own. */
function bindSuggestions(root) {
  const kinds = [...root.querySelectorAll("input[name=kind][type=radio]")];
  const name = kinds[0]?.form.elements.namedItem("name");
  const suggested = ["", ...kinds.map((kind) => kind.dataset.suggests)];
  for (const kind of kinds) {
    kind.addEventListener("change", () => {
      if (suggested.includes(name.value)) name.value = kind.dataset.suggests ?? "";
    });
  }
}

/** What is shown once is copied with one press; where the clipboard is closed to us, it is selected for the person. */
function bindCopy(root) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    const field = document.getElementById(button.dataset.copy);
    const said = button.querySelector("[data-copy-words]");
    button.hidden = false;
    field.addEventListener("focus", () => field.select());
    button.addEventListener("click", async () => {
      field.focus();
      const copied = await navigator.clipboard?.writeText(field.value).then(
        () => true,
        () => false,
      );
      said.textContent = copied ? "Copied" : "Press Ctrl+C";
      said.setAttribute("role", "status");
    });
  }
}

bindTheme();
tellZone();
bindReveal(document);
bindDialogs(document);
bindOnce(document);
bindModelRows(document);
bindSuggestions(document);
bindCopy(document);
bindSideways(document);
document.querySelector(".sub-nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
drawTimes(document);
setInterval(() => drawTimes(document), 30_000);
document.addEventListener("htmx:after:swap", () => {
  drawTimes(document);
  bindSideways(document);
});
