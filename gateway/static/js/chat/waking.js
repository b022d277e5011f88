// How the assistant wakes: the spawner's real phases as steps with their real times.
import { h, icon } from "./dom.js";
import { duration } from "./words.js";

const STEPS = [
  { label: "In line", phases: ["queued"] },
  { label: "Preparing its room", phases: ["key", "volume", "create"] },
  { label: "Starting", phases: ["start"] },
  { label: "Getting ready to talk", phases: ["answering"] },
];
const AWAKE = ["ready"];
const WAKING = ["creating", "starting"];

/**
 * What the card shows for these phases at this moment: `{ state, steps, elapsed, typical, slow, error }`.
 * `state`: "none" (nothing to show), "waking", "ready" or "failed". Durations come from the spawner's own
 * clock; only the step under way is measured here. `typical`: how long that step usually takes.
 */
export function wakingModel(phases, now) {
  const last = phases.at(-1);
  if (!last || ["stopping", "stopped"].includes(last.phase)) return { state: "none", steps: [] };
  const state = AWAKE.includes(last.phase) ? "ready" : last.phase === "failed" ? "failed" : "waking";
  const running = state === "waking" ? now - last.received_at : 0;
  const reached = STEPS.findLastIndex((step) => phases.some((event) => step.phases.includes(event.phase)));
  const startOf = (index) => phases.find((event) => STEPS[index]?.phases.includes(event.phase))?.at;
  const steps = STEPS.map((step, index) => {
    if (index > reached) return { ...step, state: "later", ms: null };
    const begun = startOf(index);
    const next = STEPS.findIndex((_, later) => later > index && startOf(later) !== undefined);
    const until = next >= 0 ? startOf(next) : last.at + running;
    const done = index < reached || state === "ready";
    return {
      ...step,
      state: done ? "done" : state === "failed" ? "broken" : "now",
      ms: begun === undefined ? null : until - begun,
    };
  });
  const elapsed = last.at - phases[0].at + running;
  const typical = last.typical_ms ?? null;
  return {
    state,
    steps,
    elapsed,
    typical,
    slow: typical !== null && running > Math.max(2 * typical, 1_000),
    error: last.error ?? null,
  };
}

/** What to expect of the step under way, from how long it took before. */
function expectation(model) {
  if (model.slow) return "longer than usual";
  return model.typical ? `this step usually takes ${duration(model.typical)}` : "";
}

function failedCard(model, actions) {
  return h(
    "section",
    { class: "card trouble", role: "alert" },
    icon("circle-alert"),
    h("h2", {}, "Your assistant could not wake up"),
    h(
      "p",
      {},
      `${model.error?.message ?? "It did not start."} What you wrote is kept, and so is everything it remembers.`,
    ),
    h(
      "div",
      { class: "actions" },
      h("button", { type: "button", class: "button small", onclick: actions.wake }, "Try again"),
      h(
        "span",
        { class: "quiet" },
        model.steps.find((step) => step.state === "broken")?.label
          ? `It got as far as: ${model.steps.find((step) => step.state === "broken").label.toLowerCase()}.`
          : "",
      ),
    ),
  );
}

/** The card is made once and then only changed, so that its movement is not begun anew. */
function createWakingCard() {
  const times = h("span", {});
  const steps = STEPS.map((step) => ({ words: h("span", {}, step.label), node: h("li", {}) }));
  const node = h(
    "section",
    { class: "wake-card", "aria-label": "Your assistant is waking up" },
    h("div", { class: "wake-head" }, h("h2", {}, "Your assistant is waking up"), times),
    h(
      "ol",
      { class: "steps" },
      steps.map((step) => {
        step.node.append(step.words);
        return step.node;
      }),
    ),
    h(
      "p",
      { class: "quiet" },
      "Write already if you like. Your message is delivered as soon as it is awake.",
    ),
  );
  return {
    node,
    update(model) {
      times.textContent = [duration(model.elapsed), expectation(model)].filter(Boolean).join(", ");
      model.steps.forEach((step, index) => {
        const { node: item, words } = steps[index];
        item.className = step.state;
        item.toggleAttribute("aria-current", step.state === "now");
        words.textContent =
          step.state === "done" && step.ms !== null ? `${step.label}, ${duration(step.ms)}` : step.label;
      });
    },
  };
}

/** `draw(phases, instance)` keeps the card in `host`; it says "awake" only if it was seen waking. */
export function createWaking({ host, actions, announce, clock = globalThis }) {
  const card = createWakingCard();
  let shown = "none";
  let ticking = null;
  let latest = { phases: [], instance: null };

  /** The phases and the state come by two ways; where they differ, the state is right. */
  function currentModel() {
    const { phases, instance } = latest;
    const model = wakingModel(phases, Date.now());
    if (!instance) return { ...model, state: "none" };
    if (instance.state === "failed")
      return { ...model, state: "failed", error: instance.error ?? model.error };
    if (WAKING.includes(instance.state) && model.state === "waking") return model;
    return { ...model, state: instance.state === "ready" && model.state === "ready" ? "ready" : "none" };
  }

  const SHOW = {
    none: () => host.replaceChildren(),
    waking: () => {
      host.replaceChildren(card.node);
      announce("Your assistant is waking up.");
    },
    failed: (model) => host.replaceChildren(failedCard(model, actions)),
    ready: (model, before) => {
      if (before !== "waking") return host.replaceChildren();
      announce("Your assistant is awake.");
      host.replaceChildren(h("p", { class: "quiet small" }, `Awake after ${duration(model.elapsed)}.`));
      clock.setTimeout(() => {
        if (shown === "ready") host.replaceChildren();
      }, 2_500);
      return undefined;
    },
  };

  function draw() {
    const model = currentModel();
    if (model.state !== shown) {
      const before = shown;
      shown = model.state;
      SHOW[shown](model, before);
      clock.clearInterval(ticking);
      ticking = shown === "waking" ? clock.setInterval(draw, 100) : null;
    }
    if (shown === "waking") card.update(model);
  }

  return {
    draw(phases, instance) {
      latest = { phases, instance };
      draw();
    },
  };
}
