"""The assistant itself, for one person: loop, memory, tools, turns. Nobody imports this package."""
