"""From messages and tables to features."""
