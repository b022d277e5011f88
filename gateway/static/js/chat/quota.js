// The quiet ring in the head, and the card that stands there when nothing is left.
import { h, icon, svg } from "./dom.js";
import { absolute, limitWords, relative } from "./words.js";

const AROUND = 2 * Math.PI * 8;

function ring(percent) {
  const attributes = { cx: "10", cy: "10", r: "8", fill: "none", "stroke-width": "3" };
  return svg(
    "svg",
    { viewBox: "0 0 20 20", "aria-hidden": "true", focusable: "false" },
    svg("circle", { ...attributes, class: "ring" }),
    svg("circle", {
      ...attributes,
      class: "spent",
      "stroke-dasharray": `${(AROUND * percent) / 100} ${AROUND}`,
      transform: "rotate(-90 10 10)",
    }),
  );
}

/** What the meter says in words; exact amounts come ready-made from the gateway. */
export function meterWords(quota) {
  if (quota.limit === null)
    return {
      short: quota.spent,
      long: " used",
      title: `${quota.plan} plan: ${quota.spent} used this month, no limit.`,
    };
  const again = quota.none_given ? "" : ` Starts again ${absolute(quota.resets_at)}.`;
  if (quota.level === "credit")
    return {
      short: quota.credit,
      long: " credit left",
      title: `${quota.plan} plan: ${quota.none_given ? "the quota is nothing" : `this month's ${quota.limit} are used up`}. ${quota.credit} of credit is left.${again}`,
    };
  const title = `${quota.plan} plan: ${quota.spent} of ${quota.limit} used this month.${again}`;
  if (quota.level === "out") return { short: quota.none_given ? "No quota" : "Used up", long: "", title };
  return { short: quota.left, long: " left", title };
}

export function createQuota({ meter, host, announce }) {
  let shown = null;

  function drawMeter(quota) {
    const words = meterWords(quota);
    meter.hidden = false;
    meter.className = `meter ${quota.level}`;
    meter.title = words.title;
    meter.setAttribute("aria-label", `${words.short}${words.long}. ${words.title}`);
    meter.replaceChildren(
      ring(quota.limit === null ? 0 : quota.percent),
      h("span", {}, words.short, h("span", { class: "words-long" }, words.long)),
    );
  }

  function beginsAgain(quota) {
    const at = absolute(quota.resets_at);
    return [
      `${quota.spent} of ${quota.limit} on the ${quota.plan} plan. It starts again `,
      h("time", { datetime: new Date(quota.resets_at).toISOString(), title: at }, relative(quota.resets_at)),
      `, on ${at}.`,
    ];
  }

  function drawCard(quota) {
    if (quota.level !== "out") {
      if (shown === "out") announce("There is quota again. You can go on.");
      host.replaceChildren();
      return;
    }
    const words = limitWords("quota_charge_month", quota.resets_at, Date.now(), quota);
    if (shown !== "out") announce(`${words.title}.`);
    host.replaceChildren(
      h(
        "section",
        { class: "card limit", role: "status" },
        icon("hourglass"),
        h("h2", {}, words.title),
        h(
          "p",
          {},
          ...(quota.none_given ? [words.text] : beginsAgain(quota)),
          " What you are writing stays here.",
        ),
        h(
          "div",
          { class: "actions" },
          h("a", { class: "button small", href: "/usage" }, "See what it was used for"),
        ),
      ),
    );
  }

  return {
    draw(quota) {
      if (!quota) return;
      drawMeter(quota);
      drawCard(quota);
      shown = quota.level;
    },
  };
}
