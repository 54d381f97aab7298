"""What makes a certificate true: rounding, and scores that no optimum can use."""
