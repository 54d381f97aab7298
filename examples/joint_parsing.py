"""Parse and tag a few sentences jointly, and watch the parser and the tagger come to agree.

The grammar and the tagger are the small ones that ship with certus. Alone, the parser takes "flies" in "Red flies some
large jet" for a noun; the tagger knows better. Their joint optimum is found by moving a price on every word and tag
until both choose the same tags. The bound then meets the score: no tree and no tags, however chosen, score more.
"""

import time

import certus
from certus.data import demo_grammar, demo_tagger

SENTENCES = [
    "Red flies some large jet",
    "time flies like an arrow",
    "the old man the boats in the river .",
    "the books can fish",
    "the old fish like fast flies .",
    "every pilot likes fast jets , and Red flies some large jet .",
]


def main() -> None:
    grammar, tagger = demo_grammar(), demo_tagger()
    for sentence in SENTENCES:
        words = sentence.split()
        trees = certus.Constituency(grammar, words)
        tags = tagger.tagging(words)
        print(sentence)
        print("  parser alone:", " ".join(trees.decode().structure.tags))
        print("  tagger alone:", " ".join(tags.names(tags.decode().structure)))
        started = time.perf_counter()
        result = certus.Joint(trees, tags, on="tags").decode()
        seconds = time.perf_counter() - started
        tree, _ = result.structure
        certificate = result.certificate
        print("  together:    ", " ".join(tree.tags))
        print("  " + tree.pretty(width=90).replace("\n", "\n  "))
        proved = "proved optimal" if certificate.exact else f"gap {certificate.gap:.3g}"
        print(f"  score {result.score:.4f}, bound {certificate.bound:.4f}: {proved} ({certificate.kind})")
        print(f"  {result.iterations} iterations to agreement, {1000 * seconds:.1f} ms")
        print()


if __name__ == "__main__":
    main()
