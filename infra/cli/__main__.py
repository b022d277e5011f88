"""`python -m infra.cli`: the same as the `alcove` command."""

from infra.cli.main import main

main()
