"""What every layer may use: checks of parameters, locks, hints about extras that are missing."""
