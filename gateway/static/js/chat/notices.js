// The cards over the composer that are neither waking nor quota: the demonstration model, a lost session.
import { h, icon, iconButton } from "./dom.js";
import { writeCookie } from "../theme.js";

const SEEN = "alcove_demo_seen";
const MARK_SEEN = "alcove_mark_seen";

function demoCard(isAdmin, dismiss) {
  return h(
    "section",
    { class: "card" },
    icon("flask-conical"),
    h("h2", {}, "A demonstration model answers here"),
    iconButton(icon("x"), "Dismiss", dismiss, "icon-button compact dismiss"),
    h(
      "p",
      {},
      isAdmin
        ? "It is very small, runs on this machine and is often wrong. Connect a provider, and every assistant answers with a full model from its next message."
        : "It is very small, runs on this machine and is often wrong. Whoever runs this Alcove can connect a full one.",
    ),
    isAdmin
      ? h(
          "div",
          { class: "actions" },
          h("a", { class: "button small primary", href: "/admin/providers/new" }, "Connect a provider"),
          h("button", { type: "button", class: "button small plain", onclick: dismiss }, "Not now"),
        )
      : null,
  );
}

function markCard(text, dismiss) {
  return h(
    "section",
    { class: "card mark", role: "status" },
    icon("bell"),
    h("h2", {}, text),
    iconButton(icon("x"), "Dismiss", dismiss, "icon-button compact dismiss"),
    h("p", {}, h("a", { href: "/usage" }, "See what it was used for"), "."),
  );
}

const meterAwayCard = () =>
  h(
    "section",
    { class: "card", role: "status" },
    icon("hourglass"),
    h("h2", {}, "What you use cannot be shown just now"),
    h(
      "p",
      {},
      "The part that counts it does not answer. You can read and write; answers may take longer until it is back.",
    ),
  );

const isSeen = (key) => document.cookie.split("; ").includes(`${MARK_SEEN}=${encodeURIComponent(key)}`);

function signedOutCard(reason) {
  if (reason === "suspended") {
    return h(
      "section",
      { class: "card trouble", role: "alert" },
      icon("circle-pause"),
      h("h2", {}, "Your assistant is suspended"),
      h("p", {}, "Whoever runs this Alcove has paused it. Everything it holds is kept; ask them about it."),
    );
  }
  return h(
    "section",
    { class: "card trouble", role: "alert" },
    icon("log-in"),
    h("h2", {}, "You are signed out"),
    h(
      "p",
      {},
      "Sign in again in another tab and come back here: this page goes on by itself. What you were writing stays.",
    ),
    h(
      "div",
      { class: "actions" },
      h(
        "a",
        { class: "button small primary", href: "/sign-in", target: "_blank", rel: "noopener" },
        "Sign in",
      ),
    ),
  );
}

/** `place(name)` is an element of one module's own; the order on the page is the order of asking. */
export function createNotices({ host, boot }) {
  const places = new Map();
  let isSignedOut = false;

  function place(name) {
    if (!places.has(name)) {
      const node = h("div", { class: "cards" });
      places.set(name, node);
      host.append(node);
    }
    return places.get(name);
  }

  return {
    place,
    get isSignedOut() {
      return isSignedOut;
    },

    /** Said once: a cookie remembers that it was read. */
    demo() {
      if (!boot.demo_model || document.cookie.includes(`${SEEN}=`)) return;
      const node = place("demo");
      node.replaceChildren(
        demoCard(boot.is_admin, () => {
          writeCookie(SEEN, "1");
          node.replaceChildren();
          document.getElementById("composer-text").focus();
        }),
      );
    },

    /** A mark of a limit's window, until the person has read it; the next mark or window is a new one. */
    mark(quota) {
      const { mark } = quota;
      const node = place("mark");
      const isOver = !mark || quota.level === "out" || quota.level === "credit";
      if (isOver || isSeen(mark.key)) return node.replaceChildren();
      if (node.dataset.key === mark.key && node.firstChild) return undefined;
      node.dataset.key = mark.key;
      return node.replaceChildren(
        markCard(mark.text, () => {
          writeCookie(MARK_SEEN, mark.key);
          node.replaceChildren();
          document.getElementById("composer-text").focus();
        }),
      );
    },

    /** The meter did not answer while the page was made; its first words take the card away. */
    meterAway() {
      if (boot.meter_away) place("meter").replaceChildren(meterAwayCard());
    },

    meterAnswers() {
      place("meter").replaceChildren();
    },

    signedIn() {
      isSignedOut = false;
      place("session").replaceChildren();
    },

    signedOut(reason) {
      isSignedOut = true;
      place("session").replaceChildren(signedOutCard(reason));
    },
  };
}
