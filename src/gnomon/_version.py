"""The one place that holds Gnomon's version; the build and the command line read it from here."""

__version__ = "0.1.0"
