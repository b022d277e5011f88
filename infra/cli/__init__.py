"""The `alcove` command."""
