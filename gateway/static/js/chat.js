// The chat page, wired: the stream fills the store, the store's changes redraw what they touch.
// Rules live in the modules of chat/; here is only who talks to whom.
import { createAnnouncer } from "./chat/announce.js";
import { createApi } from "./chat/api.js";
import { createComposer } from "./chat/composer.js";
import { createConversations, titleOf } from "./chat/conversations.js";
import { byId } from "./chat/dom.js";
import { createDrafts } from "./chat/drafts.js";
import { bindFrame } from "./chat/frame.js";
import { createNotices } from "./chat/notices.js";
import { createQuota } from "./chat/quota.js";
import { createRoom } from "./chat/room.js";
import { createScroll } from "./chat/scroll.js";
import { createStore } from "./chat/store.js";
import { createStream } from "./chat/stream.js";
import { createTranscript } from "./chat/transcript.js";
import { createWaking } from "./chat/waking.js";
import { bindTheme, tellZone } from "./theme.js";

const boot = JSON.parse(byId("boot").textContent);
const systemClock = {
  now: () => Date.now(),
  setTimeout: (act, ms) => setTimeout(act, ms),
  clearTimeout: (timer) => clearTimeout(timer),
};

const announcer = createAnnouncer();
const store = createStore();
const notices = createNotices({ host: byId("cards"), boot });
const api = createApi({ csrf: boot.csrf, onSignedOut: () => signedOut("session") });
const scroll = createScroll({ reel: byId("reel"), content: byId("log"), jump: byId("jump") });

const room = createRoom({ api, store, announcer, scroll });
const transcript = createTranscript({
  log: byId("log"),
  earlier: byId("earlier"),
  actions: room.actions,
  announce: announcer.polite,
  quota: () => store.state.quota,
});
const composer = createComposer({
  form: byId("composer"),
  field: byId("composer-text"),
  send: byId("send"),
  stop: byId("stop"),
  count: byId("count"),
  drafts: createDrafts({ storage: () => sessionStorage, person: boot.email }),
  onSend: room.send,
  onStop: room.stop,
});
const conversations = createConversations({
  list: byId("conversations"),
  search: byId("search"),
  api,
  store,
  announcer,
  onOpen: (id) => {
    frame.closeSide();
    room.open(id);
    composer.focus();
  },
  onGone: () => room.open(null),
  onDrawn: room.drawTitle,
});
const waking = createWaking({
  host: notices.place("waking"),
  actions: { wake: () => room.wake("person") },
  announce: announcer.polite,
});
const quota = createQuota({ meter: byId("quota"), host: notices.place("quota"), announce: announcer.polite });
const frame = bindFrame({
  composer,
  scroll,
  stop: () => room.stop(),
  running: () => room.running(),
  begin: () => {
    room.open(null);
    composer.focus();
  },
});

const stream = createStream({
  address: (cursor) => `/api/stream${cursor ? `?cursor=${encodeURIComponent(cursor)}` : ""}`,
  EventSource,
  clock: systemClock,
  onFrame: (incoming) => room.take(store.apply(incoming)),
  onStatus: (status) => {
    if (frame.showConnection(status) && status === "live") room.catchUp();
  },
  onRefused: checkSession,
  mayRest: () => !room.running(),
});

room.bind({
  transcript,
  composer,
  conversations,
  frame,
  drawState: () => {
    frame.showInstance(store.state.instance);
    waking.draw(store.state.phases, store.state.instance);
    quota.draw(store.state.quota);
    if (store.state.quota) {
      notices.meterAnswers();
      notices.mark(store.state.quota);
    }
  },
  drawTitle: (conversation) => frame.showTitle(titleOf(conversation), conversation),
  onSignedOut: signedOut,
});
frame.onRename(() => {
  if (room.current) {
    frame.openSide();
    conversations.startRename(room.current);
  }
});

/** The session ended: say so and keep what is typed. Looking at the page again asks whether there is a new one. */
function signedOut(reason) {
  stream.end();
  frame.showConnection("live");
  notices.signedOut(reason);
}

/** Takes up a session that is there; another person's session gets a page of its own. */
async function checkSession() {
  const answer = await fetch("/api/session", { credentials: "same-origin", cache: "no-store" }).catch(
    () => null,
  );
  if (answer?.status === 401) return signedOut("session");
  if (!answer?.ok) return undefined;
  const { email, csrf } = await answer.json();
  if (email !== boot.email) return location.reload();
  api.useToken(csrf);
  if (notices.isSignedOut) {
    notices.signedIn();
    stream.revive();
  }
  return undefined;
}

const otherTabs = new BroadcastChannel("alcove-tabs");
otherTabs.addEventListener("message", () => stream.giveWay());
otherTabs.postMessage("one more");
if (document.hidden) stream.hidden();

addEventListener("online", () => stream.nudge());
addEventListener("offline", () => stream.offline());
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream.hidden();
  else if (notices.isSignedOut) checkSession();
  else {
    otherTabs.postMessage("one more");
    stream.nudge();
  }
});

addEventListener("popstate", () => room.open(room.idOf(location.pathname), { push: false }));

bindTheme();
tellZone();
notices.demo();
notices.meterAway();
stream.open();
room.open(boot.conversation_id, { push: false });
room.wake("page");
conversations.draw();
conversations.fetch();
if (matchMedia("(hover: hover)").matches) composer.focus();
