"""What the agent answers over HTTP (docs/contracts.md, "Agent"): one file a noun, a few lines a handler."""
