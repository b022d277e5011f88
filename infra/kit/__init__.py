"""Plumbing without our nouns. Modules marked LIGHT may be imported by the agent."""
