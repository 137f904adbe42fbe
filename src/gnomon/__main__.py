"""`python -m gnomon` is the `gnomon` command."""

from gnomon.cli.entry import main

main()
