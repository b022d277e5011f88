"""The admin's pages. For everybody else they do not exist."""
