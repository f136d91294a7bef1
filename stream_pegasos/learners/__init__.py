"""The classifiers, with River's protocol, and what they consist of."""
