"""The command line: one file per command, found by name in `main.py` and imported only when it is asked for."""
