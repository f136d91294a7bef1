"""In place of the package of this name: a small encoder, so that tests load a folder of it without its weights."""

import numpy as np


class SentenceTransformer:
    """Counts words by their length and their first letter."""

    def __init__(self, folder):
        self.folder = folder

    def encode(self, texts):
        vectors = np.zeros((len(texts), 6))
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.split():
                vector[len(word) % 3] += 1.0
                vector[3 + ord(word[0]) % 3] += 0.5
        return vectors
