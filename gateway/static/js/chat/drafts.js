// What is being written, by conversation: kept in this tab's storage until it is sent, so that a reload loses
// nothing. It is forgotten when the tab closes, this person signs out, or another one comes.
const KEY = "alcove-drafts";

/**
 * `{ get(place), set(place, text) }`; an empty text is forgotten. `storage()` may throw: where the browser keeps
 * nothing, memory does.
 */
export function createDrafts({ storage, person }) {
  const drafts = new Map(read());

  function read() {
    try {
      const kept = JSON.parse(storage().getItem(KEY));
      return kept?.person === person ? kept.drafts : [];
    } catch {
      return [];
    }
  }

  function write() {
    try {
      if (drafts.size) storage().setItem(KEY, JSON.stringify({ person, drafts: [...drafts] }));
      else storage().removeItem(KEY);
    } catch {
      // Full or closed to us: what is typed stays in memory.
    }
  }

  write(); // whatever another person left here goes

  return {
    get: (place) => drafts.get(place) ?? "",
    set(place, text) {
      if ((drafts.get(place) ?? "") === text) return;
      if (text) drafts.set(place, text);
      else drafts.delete(place);
      write();
    },
  };
}
