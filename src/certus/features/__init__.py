"""What models see of a sentence: templates, hashing, word clusters."""
