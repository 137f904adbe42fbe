"""`python -m gnomon` is the `gnomon` command."""

from gnomon.cli.main import main

main()
