"""One page that explains a result: its structure, the rivals of every head, the k best, the certificate, the proof.

``explain_parse`` is for a sentence and a trained parser, ``explain_result`` for any problem with its result.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from certus.draw import Picture, arcs, curves
from certus.draw.curves import BOTTOM, LEFT, TOP
from certus.draw.svg import clean
from certus.errors import LimitReached, NotSupported
from certus.models.explain import Choice, rivals
from certus.models.parser import Parser
from certus.models.scores import confidences_of
from certus.models.trees import proof_of
from certus.problem import Problem
from certus.report.film import Film, film
from certus.report.page import bare, page
from certus.result import Certificate, Result
from certus.text import Sentence, Tree
from certus.translation import ForestTranslation, PhraseTranslation

if TYPE_CHECKING:
    from certus.models.pipeline import Pipeline

PLOT = (900.0, 240.0)
MOST_FEATURES = 6  # listed of a group


class Ranked(NamedTuple):
    """A picture of one of the k best, and a line about it."""

    picture: Picture
    said: str


def explain_parse(pipeline: "Pipeline", sentence: Sentence, *, kbest: int = 5) -> str:
    """The page for a sentence: why a parser gives its words these heads, and how that is proved to be the best tree."""
    parser = pipeline.parser
    tagged = pipeline.tagged([sentence])
    batch = parser.encode(tagged)
    trees = parser.decode(batch)
    (tree,) = parser.labelled(tagged, batch, trees)
    confidence = confidences_of(parser, batch, trees, 0)
    shares = confidence.share
    problem, certificate = parser.problem(tree), trees.certificate(0)
    labels, tags = [t.deprel for t in tree], [t.upos for t in tree]
    drawn = arcs(tree.words, tree.heads.tolist(), labels=labels, tags=tags, confidence=shares)
    ranked = [Ranked(drawn, f"The best tree: {certificate.score:.6g}"), *_other_trees(problem, tree, kbest)]
    choices = rivals(parser, tree) if isinstance(parser, Parser) and len(tree) > 1 else [[] for _ in tree]
    words = [_word(tree, m, shares[m - 1], choices[m - 1]) for m in range(1, len(tree) + 1)]
    proof = proof_of(parser, batch, trees, 0)
    facts = [*_facts(certificate), ("among", proof.scope), ("model", proof.model), ("problem", proof.problem)]
    return _page(" ".join(tree.words), certificate, facts, ranked, words, film(problem, tree.words))


def explain_result(
    problem: Problem[Any], result: Result[Any], *, words: Sequence[str] | None = None, kbest: int = 5
) -> str:
    """The page for a result of any problem; ``words`` where the problem does not know them."""
    known = words if words is not None else _words_of(problem, result.structure)
    title = _title(problem, result.structure, known)
    best = Ranked(
        problem.picture(result.structure, known), f"The best: {result.score:.8g}{_translated(problem, result)}"
    )
    others: list[Ranked] = []
    if kbest > 1 and result.certificate.rank == 1:
        with suppress(NotSupported, LimitReached):
            for r in problem.kbest(kbest)[1:]:
                said = f"{r.score:.8g}, {result.score - r.score:.4g} less than the best{_translated(problem, r)}"
                others.append(Ranked(problem.picture(r.structure, known), said))
    facts = [*_facts(result.certificate), ("problem", problem.name or type(problem).__name__)]
    if result.iterations:
        facts.append(("rounds", str(result.iterations)))
    return _page(title, result.certificate, facts, [best, *others], [], film(problem, known))


def _words_of(problem: Problem[Any], structure: Any) -> list[str] | None:
    if isinstance(problem, PhraseTranslation):
        return list(problem.source)
    sides = structure if isinstance(structure, tuple) else (structure,)
    trees = [side for side in sides if isinstance(side, Tree)]
    nested = [w for side in sides if isinstance(side, tuple) for w in [_words_of(problem, side)] if w is not None]
    return trees[0].words if trees else nested[0] if nested else None


def _translated(problem: Problem[Any], result: Result[Any]) -> str:
    if isinstance(problem, ForestTranslation | PhraseTranslation):
        return f": {' '.join(problem.words(result.structure))}"
    return ""


def _title(problem: Problem[Any], structure: Any, words: Sequence[str] | None) -> str:
    if isinstance(problem, ForestTranslation | PhraseTranslation):
        return " ".join(problem.words(structure))
    return " ".join(words) if words is not None else repr(problem)


def _other_trees(problem: Problem[Any], tree: Sentence, k: int) -> list[Ranked]:
    """The trees after the best, each with what differs from it; none where there is no way to list them."""
    if k < 2 or len(tree) < 2:
        return []
    try:
        found = problem.kbest(k)[1:]
    except (NotSupported, LimitReached):
        return []
    tags, best = [t.upos for t in tree], tree.heads.tolist()
    score = problem.score(tree.heads)
    return [
        Ranked(
            arcs(tree.words, r.structure.tolist(), tags=tags, other=best),
            f"{r.score:.6g}, {score - r.score:.4g} less than the best; below the words, what the best tree has instead",
        )
        for r in found
    ]


def _word(tree: Sentence, m: int, share: float, found: Sequence[Choice]) -> dict[str, Any]:
    token = tree.tokens[m - 1]
    return {
        "form": token.form,
        "head": token.head,
        "label": token.deprel,
        "confidence": share,
        "rivals": [_rival(choice) for choice in found],
    }


def _rival(choice: Choice) -> dict[str, Any]:
    changed = [v for v in range(1, len(choice.tree)) if choice.tree[v] != choice.other[v] and v != choice.word]
    groups = sorted(choice.groups.items(), key=lambda item: -abs(item[1]))
    return {
        "head": choice.instead,
        "margin": round(choice.margin, 4),
        "changes": [[v, int(choice.other[v])] for v in changed[:8]],
        "groups": [
            {
                "name": name,
                "sum": round(total, 4),
                "features": [[f.plain, round(f.weight, 4)] for f in choice.features if f.group == name][:MOST_FEATURES],
            }
            for name, total in groups
        ],
    }


def _facts(c: Certificate) -> list[tuple[str, str]]:
    facts = [("score", f"{c.score:.12g}"), ("bound", f"{c.bound:.12g}"), ("kind of proof", c.kind)]
    if c.tolerance:
        facts.append(("rounding allowed for", f"{c.tolerance:.2g}"))
    return facts + ([("why not proved", c.reason)] if c.reason else [])


def _page(
    title: str,
    certificate: Certificate,
    facts: Sequence[tuple[str, str]],
    ranked: Sequence[Ranked],
    words: list[dict[str, Any]],
    reel: Film | None,
) -> str:
    verdict = "Proved optimal" if certificate.exact else "Not proved optimal"
    listed = "".join(f"<dt>{clean(k)}</dt><dd>{clean(v)}</dd>" for k, v in facts)
    body = [
        f'<main><p class="lead">certus explain</p><h1>{clean(title)}</h1>',
        f'<div class="verdict{"" if certificate.exact else " open"}"><strong>{verdict}</strong>',
        f"<p>{clean(_sentence(certificate.in_words()))}</p></div>",
        '<div class="controls" id="ranks" hidden><button id="before">‹ better</button>',
        '<span id="rank"></span><button id="after">next best ›</button><span class="note" id="rank-said"></span></div>',
        f'<div class="figure" id="tree">{bare(ranked[0].picture)}</div>',
    ]
    if words:
        body.append('<p class="note">Choose a word to see what speaks for its head and what for another.</p>')
        body.append('<section id="word" aria-live="polite"></section>')
    if reel is not None and reel.frames:
        body.append(_film_section(reel))
    body.append(f'<h2>The certificate</h2><dl class="facts">{listed}</dl>')
    body.append(
        "<footer>A page of certus, whole in itself. The proof can be checked apart from the program that found it: "
        "save the result and run <code>certus verify</code>.</footer></main>"
    )
    first = max(range(len(words)), key=lambda k: -_closest(words[k]), default=0) + 1
    data = {
        "first": first,
        "words": words,
        "kbest": [{"svg": bare(r.picture), "said": r.said} for r in ranked],
        "film": None if reel is None or not reel.frames else _reel(reel),
    }
    return page(title, "".join(body), data=data, script="explain.js")


def _sentence(said: str) -> str:
    """What is said after the verdict, which stands before it already."""
    rest = said.partition(": ")[2]
    return rest[:1].upper() + rest[1:]


def _closest(word: dict[str, Any]) -> float:
    """By how little a word has its head; words without rivals come last."""
    return min((rival["margin"] for rival in word["rivals"]), default=float("inf"))


def _film_section(reel: Film) -> str:
    values = {"dual value: no structure scores more": [f.dual for f in reel.frames]}
    values["best score so far"] = [f.primal for f in reel.frames]
    plot = curves(values, width=PLOT[0], height=PLOT[1], title="Dual value and best score by round")
    sides = "".join(
        f'<div><h3>{clean(name)}</h3><div class="figure" id="side{k}"></div></div>' for k, name in enumerate(reel.names)
    )
    return (
        "<h2>The proof, round by round</h2><p>Every round solves the easy parts alone, under prices on what they must "
        "agree on. What they reach together is a bound that no structure beats; where they disagree, prices move. "
        "When the bound comes down to the best structure found, that one is proved.</p>"
        f'<div class="figure" id="curve">{bare(plot)}</div>'
        '<div class="controls"><button id="play">Play</button><label for="round" id="round-number"></label>'
        f'<input type="range" id="round" min="0" max="{len(reel.frames) - 1}" value="0"></div>'
        '<div class="numbers"><div><span>dual value</span><b id="dual"></b></div><div><span>best score</span>'
        '<b id="primal"></b></div><div><span>gap</span><b id="gap"></b></div></div>'
        f'<p id="round-said" class="note"></p><div class="sides">{sides}</div>'
    )


def _reel(reel: Film) -> dict[str, Any]:
    return {
        "pictures": [bare(p) for p in reel.pictures],
        "frames": [
            {
                "dual": f.dual,
                "primal": f.primal if f.primal > float("-inf") else None,
                "shown": f.shown,
                "apart": f.apart,
                "said": f.said,
            }
            for f in reel.frames
        ],
        "plot": {"left": LEFT, "width": PLOT[0] - LEFT - 16, "top": TOP, "bottom": PLOT[1] - BOTTOM},
    }
