"""How good a model is: prequential evaluation, scores, plots."""
