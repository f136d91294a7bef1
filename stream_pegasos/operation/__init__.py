"""What runs for months: live sources, checkpoints, a monitor."""
