// The page around the conversation: drawer, head, connection pill, keyboard, shortcuts.
import { byId } from "./dom.js";

const INSTANCE_WORDS = {
  ready: ["awake", "Awake", "Your assistant is awake."],
  creating: ["waking", "Waking up", "Your assistant is waking up."],
  starting: ["waking", "Waking up", "Your assistant is waking up."],
  stopping: ["asleep", "Falling asleep", "Your assistant is falling asleep. It wakes when you write."],
  stopped: ["asleep", "Asleep", "Your assistant is asleep. It wakes when you write."],
  absent: ["asleep", "Asleep", "Your assistant has not been awake yet."],
  failed: ["trouble", "Not awake", "Your assistant could not wake up."],
};

const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]") !== null;

export function bindFrame({ composer, scroll, stop, running, begin }) {
  const [drawer, side, body, title] = ["drawer", "side", "side-body", "title"].map(byId);
  const [connection, instance, shortcuts] = ["connection", "instance", "shortcuts"].map(byId);
  const isNarrow = matchMedia("(max-width: 900px)");

  function openSide() {
    if (!isNarrow.matches || drawer.open) return;
    drawer.append(body);
    drawer.showModal();
  }

  function closeSide() {
    if (drawer.open) drawer.close();
  }

  drawer.addEventListener("close", () => side.append(body));
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer) closeSide();
  });
  isNarrow.addEventListener("change", closeSide);
  byId("open-side").addEventListener("click", openSide);
  byId("close-side").addEventListener("click", closeSide);
  byId("open-shortcuts").addEventListener("click", () => {
    closeSide();
    byId("account-menu").hidePopover();
    shortcuts.showModal();
  });
  byId("new-conversation").addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    closeSide();
    begin();
  });

  function search() {
    openSide();
    byId("search").focus();
    byId("search").select();
  }

  function onKey(event) {
    if (event.isComposing || event.keyCode === 229) return;
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    if (event.key === "Escape" && !document.querySelector("dialog[open], :popover-open") && running()) stop();
    else if (command && !event.shiftKey && key === "k") search();
    else if (command && event.shiftKey && key === "o") {
      closeSide();
      begin();
    } else if (command && event.key === "End" && composer.empty) scroll.follow();
    else if (
      event.key === "?" &&
      !command &&
      !isTyping(event.target) &&
      !document.querySelector("dialog[open]")
    )
      shortcuts.showModal();
    else return;
    event.preventDefault();
  }
  document.addEventListener("keydown", onKey);

  return {
    openSide,
    closeSide,
    onRename(act) {
      title.addEventListener("click", act);
    },

    showTitle(words, conversation) {
      title.textContent = words;
      title.disabled = !conversation;
      title.title = conversation ? "Rename" : "";
      document.title = conversation ? `${words} · Alcove` : "Alcove";
    },

    showInstance(state) {
      if (!state) return;
      const [kind, words, sentence] = INSTANCE_WORDS[state.state] ?? INSTANCE_WORDS.absent;
      instance.querySelector(".dot").className = `dot ${kind}`;
      instance.querySelector(".words").textContent = words;
      instance.title = sentence;
    },

    /** Answers whether this is news. */
    showConnection(status) {
      const was = connection.hidden;
      connection.hidden = status === "live";
      return was !== connection.hidden;
    },
  };
}
