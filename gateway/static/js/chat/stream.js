// Keeps one EventSource alive: resumes from the last cursor, notices a dead line, backs off, and says
// how it stands. Knows nothing of what the frames mean. Time and EventSource are handed in.

export const HEARTBEAT_MS = 15_000;
const DEAD_AFTER_MS = 2.5 * HEARTBEAT_MS;
const TELL_AFTER_MS = 2_000;
const REST_AFTER_MS = 60_000;
const LADDER_MS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
const CLOSED = 2;

/**
 * `onFrame(frame)` gets each parsed frame; `onStatus("live" | "reconnecting")`; `onRefused()` when the
 * server answered with an error and the browser gave up by itself. `mayRest()` says whether a hidden
 * page may let go of its connection.
 */
export function createStream({
  address,
  EventSource,
  clock,
  random = Math.random,
  onFrame,
  onStatus,
  onRefused = () => {},
  mayRest = () => false,
}) {
  let source = null;
  let cursor = null;
  let attempt = 0;
  let lastSeen = 0;
  let ended = false;
  let resting = false;
  const timers = { watch: null, tell: null, again: null, rest: null };

  const stop = (name) => {
    clock.clearTimeout(timers[name]);
    timers[name] = null;
  };
  const start = (name, ms, act) => {
    stop(name);
    timers[name] = clock.setTimeout(() => {
      timers[name] = null;
      act();
    }, ms);
  };

  function alive() {
    lastSeen = clock.now();
    stop("tell");
    onStatus("live");
    start("watch", DEAD_AFTER_MS, reopen);
  }

  function lost() {
    stop("watch");
    if (timers.tell === null) start("tell", TELL_AFTER_MS, () => onStatus("reconnecting"));
  }

  function letGo() {
    if (source) source.close();
    source = null;
    stop("watch");
    stop("again");
  }

  function open() {
    letGo();
    if (ended || resting) return;
    const mine = new EventSource(address(cursor));
    source = mine;
    start("watch", DEAD_AFTER_MS, reopen);
    mine.onopen = () => {
      if (mine === source) alive();
    };
    mine.onmessage = (event) => {
      if (mine !== source) return;
      attempt = 0;
      if (event.lastEventId) cursor = event.lastEventId;
      alive();
      onFrame(JSON.parse(event.data));
    };
    mine.onerror = () => {
      if (mine !== source) return;
      lost();
      if (mine.readyState !== CLOSED) {
        start("watch", DEAD_AFTER_MS, reopen);
        return;
      }
      letGo();
      onRefused();
      const wait = LADDER_MS[Math.min(attempt, LADDER_MS.length - 1)] * (0.5 + random() / 2);
      attempt += 1;
      start("again", wait, open);
    };
  }

  function reopen() {
    lost();
    open();
  }

  function rest() {
    if (!mayRest()) return start("rest", REST_AFTER_MS, rest);
    stop("rest");
    resting = true;
    stop("tell");
    return letGo();
  }

  return {
    open,
    get cursor() {
      return cursor;
    },

    /** The network is back, or the person looks again: do not wait for the next try. */
    nudge() {
      if (ended) return;
      stop("rest");
      const quiet = clock.now() - lastSeen > DEAD_AFTER_MS;
      if (resting || !source || source.readyState === CLOSED || quiet) {
        resting = false;
        attempt = 0;
        reopen();
      }
    },

    /** The browser says that there is no network at all. */
    offline() {
      if (!ended && !resting) lost();
    },

    /** Nobody looks: after a minute the connection is given up, unless an answer is under way. */
    hidden() {
      start("rest", REST_AFTER_MS, rest);
    },

    /** Another tab opens, and a browser has six connections for all of them: who is not looked at steps back. */
    giveWay() {
      if (timers.rest !== null) rest();
    },

    /** There is a session again: go on from the last cursor. */
    revive() {
      ended = false;
      attempt = 0;
      open();
    },

    /** The session is over: nothing opens until there is a new one. */
    end() {
      ended = true;
      letGo();
      stop("tell");
      stop("rest");
    },
  };
}
