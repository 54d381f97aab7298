"""Learners: how the weights of a linear model over hashed features are found."""
