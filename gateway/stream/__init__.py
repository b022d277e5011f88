"""The one stream of a tab: the agent's log, the spawner's phases and our own states under one cursor."""
