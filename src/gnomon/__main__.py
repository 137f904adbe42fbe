"""`python -m gnomon` is the `gnomon` command."""

from gnomon.cli.front_page import main

main()
