"""Tools for every layer: checks of parameters, locks, packing, hints about missing extras."""
