"""The agent's memory on disk: one SQLite file, plain SQL. Who may call what, and when, is decided above."""
