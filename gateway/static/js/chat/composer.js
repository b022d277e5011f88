// The field a person writes in. Enter sends, never in the middle of an IME's composition; the words stay
// until the gateway has said yes, and each conversation has its own draft, kept in this tab until it is sent.
import { ulid } from "./ulid.js";
import { codePoints } from "./thread.js";

const LIMIT = 32_000;
const TELL_FROM = 30_000;

/** Whether this key press means "send": Enter alone, and not the Enter that ends a composition. */
export function isSendKey(event) {
  return (
    event.key === "Enter" &&
    !event.shiftKey &&
    !event.altKey &&
    !event.ctrlKey &&
    !event.metaKey &&
    !event.isComposing &&
    event.keyCode !== 229
  );
}

/** `onSend(text, clientId)` resolves once the message is safe, rejects when it is not. */
export function createComposer({ form, field, send, stop, count, drafts, onSend, onStop }) {
  let place = null; // until the first moveTo
  let sending = false;
  let running = false;
  let attempt = null;

  function show() {
    const length = codePoints(field.value.trim());
    const tooLong = length > LIMIT;
    send.disabled = sending || length === 0 || tooLong;
    stop.hidden = !running;
    send.hidden = running && length === 0;
    count.textContent =
      length >= TELL_FROM ? `${length.toLocaleString("en")} of ${LIMIT.toLocaleString("en")} characters` : "";
    count.classList.toggle("over", tooLong);
  }

  /** The same words sent again after a failure keep their id, so that they arrive once. */
  function idFor(text) {
    if (attempt?.text !== text || attempt.place !== place) attempt = { text, place, id: ulid() };
    return attempt.id;
  }

  async function submit() {
    const text = field.value.trim();
    if (sending || !text || codePoints(text) > LIMIT) return;
    const from = place;
    sending = true;
    field.readOnly = true;
    show();
    try {
      const settledPlace = await onSend(text, idFor(text));
      drafts.set(from, "");
      drafts.set(settledPlace, "");
      attempt = null;
      if (place === from || place === settledPlace) field.value = "";
    } catch {
      if (place !== from) drafts.set(from, text);
    } finally {
      sending = false;
      field.readOnly = false;
      show();
      if (place === from || field === document.activeElement) field.focus();
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  field.addEventListener("keydown", (event) => {
    if (!isSendKey(event)) return;
    event.preventDefault();
    submit();
  });
  field.addEventListener("input", () => {
    drafts.set(place, field.value);
    show();
  });
  stop.addEventListener("click", () => {
    onStop();
    field.focus();
  });
  show();

  return {
    focus: () => field.focus(),
    /** Shows the draft of another conversation; `"new"` is the one that has no id yet. */
    moveTo(id) {
      if (place !== null) drafts.set(place, field.value);
      place = id;
      field.value = drafts.get(id);
      show();
    },
    /** A new conversation got its id: what is typed stays in it. */
    adopt(id) {
      drafts.set(place, "");
      if (attempt) attempt.place = id;
      place = id;
      drafts.set(place, field.value);
    },
    setRunning(value) {
      running = value;
      show();
    },
    /** Puts words in, ready to be finished. */
    fill(text) {
      field.value = text;
      drafts.set(place, text);
      show();
      field.focus();
      field.setSelectionRange(text.length, text.length);
    },
    get empty() {
      return field.value.trim() === "";
    },
  };
}
