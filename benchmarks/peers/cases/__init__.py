"""What is audited of each peer."""
