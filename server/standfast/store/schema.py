"""The database's shape and how an older one becomes it. A step that was released is never edited; a new one is added.

`application_id` says that the file is ours, `user_version` how many steps it has had. Each step is one transaction that
also sets `user_version`, so that a kill leaves the version before or after, never between (F12).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from standfast.errors import StoreError
from standfast.failpoints import hit
from standfast.store.cold import body_of

APPLICATION_ID = 0x53746664
"""`Stfd`."""

_VERSION_1 = """
CREATE TABLE sessions (
  session_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, workspace_uri TEXT NOT NULL, title TEXT NOT NULL, mode TEXT NOT NULL,
  model TEXT NOT NULL, status TEXT NOT NULL, created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL,
  identity TEXT NOT NULL DEFAULT '{}', origin TEXT, last_run_id TEXT, last_run_status TEXT,
  queue_held INTEGER NOT NULL DEFAULT 0, plan TEXT, goal TEXT, summary_seq INTEGER NOT NULL DEFAULT 0,
  head_seq INTEGER NOT NULL DEFAULT 0, head_hash TEXT NOT NULL DEFAULT '');
CREATE INDEX sessions_newest ON sessions (updated_at_ms, session_id);
CREATE INDEX sessions_by_workspace ON sessions (workspace_uri, updated_at_ms, session_id);

CREATE TABLE events (
  id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, seq INTEGER NOT NULL, at_ms INTEGER NOT NULL, run_id TEXT,
  type TEXT NOT NULL, hash TEXT NOT NULL, body TEXT NOT NULL);
CREATE UNIQUE INDEX events_in_order ON events (session_id, seq);

CREATE TABLE runs (
  run_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, status TEXT NOT NULL, "trigger" TEXT NOT NULL DEFAULT 'message',
  resumes_run_id TEXT, worker_id TEXT, boot_id TEXT, queued_at_ms INTEGER, started_at_ms INTEGER, finished_at_ms INTEGER,
  error TEXT, input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_input_tokens INTEGER NOT NULL DEFAULT 0, cache_creation_input_tokens INTEGER NOT NULL DEFAULT 0,
  first_seq INTEGER NOT NULL DEFAULT 0,
  began_at_ms INTEGER GENERATED ALWAYS AS (coalesce(queued_at_ms, started_at_ms, 0)) VIRTUAL);
CREATE INDEX runs_newest ON runs (began_at_ms, run_id);
CREATE INDEX runs_by_session ON runs (session_id, began_at_ms, run_id);
CREATE INDEX runs_by_resumed ON runs (resumes_run_id, began_at_ms) WHERE resumes_run_id IS NOT NULL;
CREATE INDEX runs_by_status ON runs (status, began_at_ms, run_id);

CREATE TABLE tool_calls (
  call_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, run_id TEXT NOT NULL, provider_call_id TEXT NOT NULL,
  tool TEXT NOT NULL, args TEXT NOT NULL, state TEXT NOT NULL, seq INTEGER NOT NULL, digest TEXT, summary TEXT,
  files TEXT NOT NULL DEFAULT '[]', risks TEXT NOT NULL DEFAULT '[]', allow_key TEXT, sandbox TEXT NOT NULL DEFAULT 'none',
  intents TEXT NOT NULL DEFAULT '[]', operation_id TEXT, result_status TEXT, result_seq INTEGER,
  recovered INTEGER NOT NULL DEFAULT 0, uncertain INTEGER NOT NULL DEFAULT 0, verdict TEXT,
  targets TEXT NOT NULL DEFAULT '[]', evidence TEXT, resolution TEXT, dismissed INTEGER NOT NULL DEFAULT 0);
CREATE INDEX tool_calls_by_run ON tool_calls (run_id, seq);
CREATE INDEX tool_calls_by_session ON tool_calls (session_id, seq);
CREATE INDEX tool_calls_pending ON tool_calls (session_id, run_id, seq) WHERE result_seq IS NULL;
CREATE INDEX tool_calls_in_recovery ON tool_calls (session_id, seq) WHERE uncertain = 1 AND dismissed = 0;

CREATE TABLE messages (
  message_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, client_message_id TEXT NOT NULL, run_id TEXT NOT NULL,
  text TEXT NOT NULL, state TEXT NOT NULL, at_ms INTEGER NOT NULL, position INTEGER NOT NULL DEFAULT 0,
  seq INTEGER NOT NULL DEFAULT 0);
CREATE INDEX messages_by_client_id ON messages (session_id, client_message_id);
CREATE INDEX messages_queued ON messages (session_id, position) WHERE state = 'queued';
CREATE INDEX messages_newest ON messages (at_ms, message_id);
CREATE INDEX messages_by_run ON messages (run_id, seq);

CREATE TABLE conflicts (
  conflict_id TEXT PRIMARY KEY, call_id TEXT NOT NULL, session_id TEXT NOT NULL, run_id TEXT NOT NULL, uri TEXT NOT NULL,
  path TEXT NOT NULL, reason TEXT NOT NULL, state TEXT NOT NULL, detail TEXT NOT NULL, action TEXT,
  seq INTEGER NOT NULL DEFAULT 0);
CREATE INDEX conflicts_by_session ON conflicts (session_id, seq);
CREATE INDEX conflicts_open ON conflicts (session_id, seq) WHERE state = 'open';

CREATE TABLE seen_files (
  session_id TEXT NOT NULL, path TEXT NOT NULL, version TEXT, whole INTEGER NOT NULL, blob TEXT,
  PRIMARY KEY (session_id, path));
CREATE TABLE allowances (session_id TEXT NOT NULL, allow_key TEXT NOT NULL, PRIMARY KEY (session_id, allow_key));

CREATE TABLE blobs (blob_id TEXT PRIMARY KEY, size INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE trusted (workspace_uri TEXT PRIMARY KEY, identity TEXT NOT NULL);
CREATE TABLE damage (session_id TEXT PRIMARY KEY, at_seq INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE TABLE degraded (code TEXT PRIMARY KEY, message TEXT NOT NULL, at_ms INTEGER NOT NULL);
CREATE TABLE barrier (id INTEGER PRIMARY KEY CHECK (id = 1), settled INTEGER NOT NULL);
INSERT INTO barrier VALUES (1, 0);
"""

_STORED = "CASE typeof(body) WHEN 'blob' THEN unpacked(body) ELSE body END"
_BODY = f"CASE WHEN json_valid({_STORED}) THEN {_STORED} END"
"""An event's text, warm or cold (`cold.py`); NULL for a damaged one, which must not keep a store from being migrated."""

_VERSION_2 = f"""
CREATE TABLE blob_uses (blob_id TEXT NOT NULL, session_id TEXT NOT NULL, PRIMARY KEY (blob_id, session_id)) WITHOUT ROWID;
CREATE INDEX blob_uses_by_session ON blob_uses (session_id);
INSERT OR IGNORE INTO blob_uses
  SELECT b.blob_id, e.session_id FROM events e, json_tree({_BODY}) t
  JOIN blobs b ON b.blob_id = t.value WHERE t.type = 'text';

CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='unicode61 remove_diacritics 2');
INSERT INTO words (rowid, text)
  SELECT e.id, (SELECT group_concat(json_extract(c.value, '$.text'), char(10)) FROM json_each({_BODY}, '$.content') c)
  FROM events e WHERE e.type = 'user_message';
INSERT INTO words (rowid, text)
  SELECT e.id, (SELECT group_concat(json_extract(b.value, '$.text'), char(10)) FROM json_each({_BODY}, '$.blocks') b
                WHERE json_extract(b.value, '$.type') = 'text')
  FROM events e WHERE e.type = 'assistant_message';

CREATE TABLE spent (
  session_id TEXT NOT NULL, day INTEGER NOT NULL, model TEXT NOT NULL, requests INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_input_tokens INTEGER NOT NULL DEFAULT 0, cache_creation_input_tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session_id, day, model));
CREATE INDEX spent_by_day ON spent (day, model);
CREATE TABLE imports (session_id TEXT PRIMARY KEY);
"""  # noqa: S608 - our own words

_VERSION_3 = f"""
DELETE FROM spent;
INSERT INTO spent
  SELECT session_id, at_ms / 86400000, json_extract(told, '$.model'), count(*), total(json_extract(told, '$.usage.inputTokens')),
    total(json_extract(told, '$.usage.outputTokens')), total(json_extract(told, '$.usage.cacheReadInputTokens')),
    total(json_extract(told, '$.usage.cacheCreationInputTokens'))
  FROM (SELECT session_id, at_ms, {_BODY} AS told FROM events WHERE type IN ('assistant_message', 'summary_created'))
  WHERE json_extract(told, '$.model') IS NOT NULL GROUP BY 1, 2, 3;
"""  # noqa: S608 - our own words
"""Version 2 began to count what was spent, but not what older logs tell of it."""

STEPS: tuple[str, ...] = (_VERSION_1, _VERSION_2, _VERSION_3)
"""Step N (from 1) leads from `user_version` N-1 to N."""


def version(connection: sqlite3.Connection) -> int:
    """The steps that the database has had; 0 for a new one.

    Raises StoreError (`StoreForeign`) if another program made the file; its bytes are then untouched.
    """
    application = _pragma(connection, "application_id")
    steps = _pragma(connection, "user_version")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application == APPLICATION_ID or (application == 0 and steps == 0 and tables == 0):
        return steps
    raise StoreError(
        "StoreForeign",
        "The store's file belongs to another program. It was not touched. Move it away, or set STANDFAST_HOME to another place.",
    )


def migrate(connection: sqlite3.Connection, steps: Sequence[str] = STEPS) -> None:
    """Carry out the missing steps, one transaction each."""
    connection.create_function("unpacked", 1, _unpacked, deterministic=True)
    for number in range(_pragma(connection, "user_version") + 1, len(steps) + 1):
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _pragma(connection, "user_version") == number - 1:
                for statement in statements(steps[number - 1]):
                    connection.execute(statement)
                    hit("in_migration")
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version={number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _unpacked(stored: bytes) -> str | None:
    try:
        return body_of(stored)
    except ValueError:
        return None


def statements(script: str) -> list[str]:
    """A script's statements. (`executescript` would commit before it begins, so it cannot be used in a transaction.)"""
    found: list[str] = []
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            found.append(text.strip())
            text = ""
    return found


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
