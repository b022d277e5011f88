"""Messages for agents that are not ready: kept sealed, handed over in order, deleted on the agent's 202."""
