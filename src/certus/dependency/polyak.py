"""How trees with crossing arcs are relaxed, by decoders, parsers and learners alike."""

SHARE = 0.001  # of the arc scores, given to the tree so that it breaks ties sensibly (HA)
FACTOR, PATIENCE, SHRINK = 1.5, 5, 0.7  # of Polyak's step


def polyak_rule(iterations: int, rounds: int) -> tuple[float, float, int, float, int, int]:
    """Share of the tree, Polyak's factor, patience and shrink, iterations of a round and rounds, for the parser."""
    return (SHARE, FACTOR, PATIENCE, SHRINK, iterations, rounds)
