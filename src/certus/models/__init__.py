"""Trained taggers and parsers: how they are trained, saved, loaded and used on text."""
