"""Who signs in, and how: passwords, sessions, throttling, one-time admin links."""
