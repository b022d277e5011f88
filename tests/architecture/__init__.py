"""Rules of the house that a test can hold."""
