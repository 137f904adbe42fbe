"""Faults seeded into Gnomon's own code, each under an encoding that shows it."""
