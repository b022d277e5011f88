"""The authenticating front: accounts, sessions, every web page, and the relay to agents."""
