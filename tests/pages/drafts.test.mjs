// Drafts: a reload keeps them, sending and another person's sign-in do not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createDrafts } from "../../gateway/static/js/chat/drafts.js";

function fakeStorage() {
  const kept = new Map();
  return {
    kept,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => kept.set(key, value),
    removeItem: (key) => kept.delete(key),
  };
}

test("a draft outlives the page, each conversation its own", () => {
  const storage = fakeStorage();
  const before = createDrafts({ storage: () => storage, person: "ada@example.org" });
  before.set("new", "half a thought");
  before.set("c1", "another");
  const after = createDrafts({ storage: () => storage, person: "ada@example.org" });
  assert.deepEqual([after.get("new"), after.get("c1"), after.get("c2")], ["half a thought", "another", ""]);
});

test("nothing is left in the storage once every draft is sent", () => {
  const storage = fakeStorage();
  const drafts = createDrafts({ storage: () => storage, person: "ada@example.org" });
  drafts.set("new", "half a thought");
  assert.equal(storage.kept.size, 1);
  drafts.set("new", "");
  assert.equal(storage.kept.size, 0);
});

test("another person in the same tab finds nothing, and what was there is gone", () => {
  const storage = fakeStorage();
  createDrafts({ storage: () => storage, person: "ada@example.org" }).set("new", "a secret");
  const other = createDrafts({ storage: () => storage, person: "bob@example.org" });
  assert.equal(other.get("new"), "");
  assert.equal(storage.kept.size, 0);
});

test("a closed or spoilt storage leaves drafts in memory", () => {
  const closed = createDrafts({
    storage: () => {
      throw new Error("closed");
    },
    person: "ada@example.org",
  });
  closed.set("new", "half a thought");
  assert.equal(closed.get("new"), "half a thought");
  const spoilt = fakeStorage();
  spoilt.kept.set("alcove-drafts", "{");
  assert.equal(createDrafts({ storage: () => spoilt, person: "ada@example.org" }).get("new"), "");
});
