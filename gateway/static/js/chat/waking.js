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
 * clock; only the step under way is measured here.
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
    return { ...step, state: done ? "done" : state === "failed" ? "broken" : "now", ms: begun === undefined ? null : until - begun };
  });
  const elapsed = last.at - phases[0].at + running;
  const typical = phases.reduce((most, event) => Math.max(most, event.typical_ms ?? 0), 0) || null;
  return { state, steps, elapsed, typical, slow: typical !== null && state === "waking" && elapsed > 2 * typical, error: last.error ?? null };
}

function expectation(model) {
  if (model.slow) return "taking longer than usual";
  return model.typical ? `usually ${duration(model.typical)}` : "";
}

function failedCard(model, actions) {
  return h(
    "section", { class: "card trouble", role: "alert" },
    icon("circle-alert"),
    h("h2", {}, "Your assistant could not wake up"),
    h("p", {}, `${model.error?.message ?? "It did not start."} What you wrote is kept, and so is everything it remembers.`),
    h("div", { class: "actions" }, h("button", { type: "button", class: "button small", onclick: actions.wake }, "Try again"), h("span", { class: "quiet" }, model.steps.find((step) => step.state === "broken")?.label ? `It got as far as: ${model.steps.find((step) => step.state === "broken").label.toLowerCase()}.` : "")),
  );
}

function wakingCard(model) {
  const times = [duration(model.elapsed), expectation(model)].filter(Boolean).join(", ");
  return h(
    "section", { class: "waking", "aria-label": "Your assistant is waking up" },
    h("div", { class: "waking-head" }, h("h2", {}, "Your assistant is waking up"), h("span", {}, times)),
    h("ol", { class: "steps" }, model.steps.map((step) => h("li", { class: step.state, "aria-current": step.state === "now" ? "step" : null }, h("span", {}, step.label, step.state === "done" && step.ms !== null ? h("time", {}, ` ${duration(step.ms)}`) : "")))),
    h("p", { class: "quiet" }, "Write already if you like. Your message is delivered as soon as it is awake."),
  );
}

/** `draw(phases, instance)` keeps the card in `host`; it says "awake" for a moment only if it was seen waking. */
export function createWaking({ host, actions, announce, clock = globalThis }) {
  let shown = "none";
  let ticking = null;
  let latest = { phases: [], instance: null };

  function stopTicking() {
    clock.clearInterval(ticking);
    ticking = null;
  }

  function draw() {
    const { phases, instance } = latest;
    let model = wakingModel(phases, Date.now());
    if (instance?.state === "failed" && model.state !== "failed") model = { ...model, state: "failed", error: instance.error, steps: model.steps };
    if (model.state === "waking" && instance && !WAKING.includes(instance.state)) model = { ...model, state: "none" };
    if (model.state !== shown) {
      if (model.state === "waking") announce("Your assistant is waking up.");
      if (model.state === "ready" && shown === "waking") announce("Your assistant is awake.");
    }
    if (model.state === "waking") {
      host.replaceChildren(wakingCard(model));
      ticking ??= clock.setInterval(draw, 100);
    } else {
      stopTicking();
      if (model.state === "failed") { if (shown !== "failed") host.replaceChildren(failedCard(model, actions)); }
      else if (model.state === "ready" && shown === "waking") {
        host.replaceChildren(h("p", { class: "quiet small" }, `Awake after ${duration(model.elapsed)}.`));
        clock.setTimeout(() => { if (shown === "ready") host.replaceChildren(); }, 2_500);
      } else if (model.state !== "ready") host.replaceChildren();
    }
    shown = model.state;
  }

  return { draw(phases, instance) { latest = { phases, instance }; draw(); } };
}
