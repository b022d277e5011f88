// Times, durations and refusals in plain words and the reader's own zone. Pure; no page here.

/** "0.4 s", "12 s", "3 min 5 s": how long something took. */
export function duration(ms) {
  if (ms < 9_950) return `${(Math.max(ms, 0) / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** "in 3 days", "5 minutes ago", "just now". */
export function relative(at, now = Date.now(), locale = "en") {
  const seconds = Math.round((at - now) / 1000);
  if (Math.abs(seconds) < 45) return seconds > 0 ? "in a moment" : "just now";
  const format = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
  const units = [
    ["day", 86_400],
    ["hour", 3_600],
    ["minute", 60],
  ];
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ["minute", 60];
  return format.format(Math.round(seconds / size), unit);
}

const moment = (at, zone, locale, shape) =>
  new Intl.DateTimeFormat(locale, {
    day: "numeric",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: zone,
    timeZoneName: "short",
    ...shape,
  }).format(at);

/** "1 December 2026 at 01:00 CET": the whole moment, its zone named. */
export function absolute(at, zone = undefined, locale = "en-GB") {
  return moment(at, zone, locale, { month: "long" });
}

/** "1 Dec 2026, 01:00:09 CET": to the second, for what is looked up in logs beside it. */
export function exact(at, zone = undefined, locale = "en-GB") {
  return moment(at, zone, locale, { month: "short", second: "2-digit" });
}

/** The heading a conversation stands under: "Today", "Yesterday", a weekday, a month. */
export function dayHeading(at, now = Date.now(), zone = undefined, locale = "en-GB") {
  const day = (moment) => new Intl.DateTimeFormat("en-CA", { timeZone: zone }).format(moment);
  const days = Math.round((Date.parse(day(now)) - Date.parse(day(at))) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return new Intl.DateTimeFormat(locale, { weekday: "long", timeZone: zone }).format(at);
  return new Intl.DateTimeFormat(locale, { month: "long", year: "numeric", timeZone: zone }).format(at);
}

const NOTHING_GIVEN = {
  title: "Your quota is nothing",
  text: "Whoever runs this Alcove can raise it. Until then your conversations stay and can be read.",
};

/**
 * What a limit means for the person: a title, and what happens next. `resetsAt` may be unknown; `quota` is the
 * stream's, where it is known: a quota of nothing begins again with nothing, and credit may be left beside it.
 */
export function limitWords(reason, resetsAt, now = Date.now(), quota = null) {
  const when = resetsAt && !quota?.none_given ? `${relative(resetsAt, now)}, on ${absolute(resetsAt)}` : null;
  switch (reason) {
    case "requests_minute":
      return {
        title: "That was many questions in one minute",
        text: "Your plan answers a set number each minute. Wait a moment, then try again.",
      };
    case "concurrent_calls":
      return {
        title: "Your assistant is busy with other answers",
        text: "Your plan answers a set number at once. Try again when one of them has finished.",
      };
    case "suspended":
      return {
        title: "Your assistant is suspended",
        text: "Whoever runs this Alcove has paused it. Everything it holds is kept; ask them about it.",
      };
    case "not_covered":
      if (quota?.none_given && !quota.credit) return NOTHING_GIVEN;
      return {
        title: quota?.credit ? "What is left does not cover this answer" : "This month's quota does not cover this answer",
        text: `An answer begins only when the most it could cost fits into what is left.${quota?.credit ? ` Of your credit ${quota.credit} is left.` : ""}${when ? ` The quota starts again ${when}.` : ""}`,
      };
    default:
      if (quota?.none_given) return NOTHING_GIVEN;
      return {
        title: "This month's quota is used up",
        text: when
          ? `It starts again ${when}. Until then your conversations stay and can be read.`
          : "Your conversations stay and can be read.",
      };
  }
}

const REFUSALS = {
  unauthorized: "You are signed out.",
  forbidden: "That is not allowed for this account.",
  not_found: "That is no longer there.",
  conflict: "It was changed elsewhere in the meantime.",
  too_large: "That is too long to send at once.",
  rate_limited: "That was too quick after the last one. Wait a moment.",
  unavailable: "Your assistant cannot be reached just now.",
  timeout: "It took too long to answer.",
  network: "There is no connection just now.",
};

/** One plain sentence for an error of api.js. */
export function refusal(error) {
  if (error.details?.reason === "storage_full")
    return "It has filled the storage of your plan. On your account page you can make room.";
  return REFUSALS[error.code] ?? "Something went wrong on our side.";
}
