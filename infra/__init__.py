"""Plumbing (kit), the command line (cli), and the files that deploy the services."""
