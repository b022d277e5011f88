"""The way to agents: who is where, pools of connections, and what may cross in either direction."""
