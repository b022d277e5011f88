-- What one person's assistant keeps. Times are milliseconds since the epoch (UTC).

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE conversation (
  id TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_turn_state TEXT
) WITHOUT ROWID;
CREATE INDEX conversation_newest ON conversation (updated_at, id);

CREATE TABLE turn (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  conversation_id TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN
    ('queued', 'running', 'waiting', 'complete', 'stopped', 'failed', 'interrupted', 'expired')),
  retry_of TEXT,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  resumes INTEGER NOT NULL DEFAULT 0,
  request_id TEXT NOT NULL,
  traceparent TEXT,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  ended_seq INTEGER,
  stop_reason TEXT
);
CREATE INDEX turn_lane ON turn (conversation_id, ordinal);
CREATE INDEX turn_in_flight ON turn (state) WHERE state IN ('queued', 'running', 'waiting');
CREATE INDEX turn_ended ON turn (ended_seq) WHERE ended_seq IS NOT NULL;

-- A turn has one message of the person (position 2n) and one of the assistant (2n + 1).
CREATE TABLE message (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  conversation_id TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
  turn_id TEXT NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
  text TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('complete', 'streaming', 'stopped', 'interrupted', 'failed')),
  error TEXT,
  notices TEXT NOT NULL DEFAULT '[]',
  model TEXT,
  client_message_id TEXT UNIQUE,
  channel TEXT NOT NULL,
  source TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX message_conversation ON message (conversation_id, position);
CREATE INDEX message_turn ON message (turn_id);

-- `id` is ours; `call_id` is the provider's, which some providers repeat from turn to turn.
CREATE TABLE tool_call (
  id TEXT PRIMARY KEY,
  turn_id TEXT NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
  round INTEGER NOT NULL,
  position INTEGER NOT NULL,
  call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  title TEXT NOT NULL,
  arguments TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed')),
  result TEXT,
  text_offset INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX tool_call_order ON tool_call (turn_id, round, position);

-- What a tool answered, whole, where the conversation holds only its beginning and end.
CREATE TABLE artifact (
  id TEXT PRIMARY KEY,
  turn_id TEXT NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
  text TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX artifact_turn ON artifact (turn_id);

-- Append-only but for two deletions: of a conversation with its events, and of the oldest rows.
CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX event_conversation ON event (conversation_id);

CREATE TABLE fact (
  id TEXT PRIMARY KEY,
  relation TEXT NOT NULL,
  object TEXT NOT NULL,
  text TEXT NOT NULL,
  standing INTEGER NOT NULL,
  asserted_by TEXT NOT NULL,
  source_conversation_id TEXT,
  source_message_id TEXT,
  created_at INTEGER NOT NULL,
  valid_to INTEGER,
  superseded_by TEXT
) WITHOUT ROWID;
CREATE UNIQUE INDEX fact_current ON fact (relation, object) WHERE valid_to IS NULL;

CREATE TABLE note (
  id TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  text TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Words of messages, facts, notes and titles. `search.rowid` is `search_entry.id`.
CREATE TABLE search_entry (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('message', 'fact', 'note', 'title')),
  ref TEXT NOT NULL,
  conversation_id TEXT,
  UNIQUE (kind, ref)
);
CREATE INDEX search_entry_conversation ON search_entry (conversation_id);
CREATE VIRTUAL TABLE search USING fts5 (words, tokenize = 'porter unicode61 remove_diacritics 2');
