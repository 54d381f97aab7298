"""Phrase-based translation: the best sequence of phrases that covers a sentence, in any order (LR 7)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from math import inf, isfinite
from typing import Any, ClassVar, Self

import numpy as np

from certus.certificates.normal import Closed
from certus.certificates.rounding import Extent, extent_of, rounded_up
from certus.certificates.sound import sound, sound_list
from certus.checks import Floats, as_positive_int, as_words, of_kind, one_of
from certus.draw import Gallery, Picture, phrases
from certus.errors import Infeasible, InvalidInput, LimitReached, NotSupported
from certus.hypergraph.readings import Reading
from certus.problem import PROBLEMS, Index, Penalties, Problem
from certus.relax.run import Run
from certus.relax.steps import StepRule
from certus.result import Result, Solution, certified
from certus.schema import Field
from certus.serialize import floats_to_json
from certus.translation import phrase_decoding, phrase_kbest, phrase_proof, phrase_witness
from certus.translation.language_model import LanguageModel
from certus.translation.lm_automaton import extent_of_lm
from certus.translation.lm_json import lm_from_json, lm_to_json
from certus.translation.phrase_reading import read_options
from certus.translation.phrase_relaxation import Sentence
from certus.translation.phrases import Int32, PhraseOption, checked_options, pack
from certus.translation.reachable import model_of_options
from certus.translation.word_models import WordModel
from certus.translation.word_reader import WordReader

Structure = tuple[int, ...]
Packed = tuple[int, int, float, tuple[int, ...]]  # start, end, score, ids of the target words
WINDOW = 64  # bits of a coverage
MOST_LISTED = 100_000  # sequences of options that are looked through for different words


class PhraseTranslation(Problem[Structure]):
    r"""The best translation of a sentence by phrases, in any order that a distortion limit allows.

    Solves  max over sequences of options that cover every source word exactly once of

        sum of option scores  +  lm_weight * ln p(<s> target words </s>)  -  distortion * sum |start_k - end_(k-1) - 1|,

    with end_0 = -1 and no cost after the last. NP-hard without a limit; with one, time and memory are linear in the
    sentence and exponential in the limit. A structure is a tuple of indices into ``options``, in target order. The one
    view is "options" (O,): which options are used. Certificate kind: "combinatorial" (all that could be better was
    searched), or "dual" (multipliers prove the bound, exact or not).

    Parameters
    ----------
    options : iterable of PhraseOption
    lm : LanguageModel or WordModel
        Of any order. A model of one's own is asked about every n-gram of the options; ``lm`` of the problem are the
        tables of that.
    source : sequence of str
        The sentence; only its length matters here.
    lm_weight, distortion : float
    distortion_limit : int or None
        Largest |start - end of the one before - 1|; None for no limit.
    window : bool
        As Moses has it, a phrase that does not start at the first uncovered word g must also end at
        g + distortion_limit - 1 or before, so that g stays in reach. False leaves this out.

    Raises
    ------
    InvalidInput : an option that is none, a limit below 0, a weight that is no number.

    Examples
    --------
    >>> from certus.io.arpa import parse_arpa
    >>> words = ["-1 <unk>", "0 <s>", "-1 </s>", "-1 the", "-1 poor"]
    >>> lm = LanguageModel(parse_arpa("\n".join(["\\data\\", "ngram 1=5", "\\1-grams:", *words, "\\end\\"])))
    >>> options = [PhraseOption(0, 0, ("the",), 1.0), PhraseOption(1, 1, ("poor",), 1.0)]
    >>> problem = PhraseTranslation(options, lm, source=["les", "pauvres"], distortion=1.0)
    >>> problem.words(problem.decode().structure)
    ['the', 'poor']
    """

    name: ClassVar[str] = "phrase translation"
    reader: WordReader | None = None  # an automaton that translations must be accepted by
    hard_sums: ClassVar[str] = "sums over all orders of the phrases are #P-hard, as permanents are"

    def __init__(
        self,
        options: Iterable[PhraseOption],
        lm: LanguageModel | WordModel,
        *,
        source: Sequence[str],
        lm_weight: float = 1.0,
        distortion: float = 0.0,
        distortion_limit: int | None = 6,
        window: bool = True,
    ) -> None:
        self.source = as_words("source", source)
        self.options = checked_options(options, len(self.source))
        self.lm_weight = _number("lm_weight", lm_weight)
        self.distortion = _number("distortion", distortion)
        if distortion_limit is not None and (
            isinstance(distortion_limit, bool) or not isinstance(distortion_limit, int | np.integer)
        ):
            raise InvalidInput(f"distortion_limit is {distortion_limit!r}; expected a whole number, or None.")
        if distortion_limit is not None and distortion_limit < 0:
            raise InvalidInput(
                f"distortion_limit is {distortion_limit}; no phrase satisfies a limit below 0. 0 keeps the source "
                "order, None allows any."
            )
        self.distortion_limit = None if distortion_limit is None else int(distortion_limit)
        self.window = bool(window)
        of_kind("lm", lm, (LanguageModel, WordModel), 'a certus.LanguageModel: LanguageModel.read("lm.arpa")')
        self.lm = lm if isinstance(lm, LanguageModel) else model_of_options(lm, self.options, self.limit)

    def __repr__(self) -> str:
        limit = "no limit" if self.distortion_limit is None else f"limit {self.distortion_limit}"
        return f"{type(self).__name__}({self.n} words, {len(self.options)} options, {limit})"

    @property
    def n(self) -> int:
        """Number of source words."""
        return len(self.source)

    @property
    def limit(self) -> int:
        """The largest jump: the distortion limit, or the length of the sentence."""
        return self.n if self.distortion_limit is None else min(self.distortion_limit, self.n)

    # -- structures ------------------------------------------------------------------------------------------------

    def words(self, structure: Sequence[int]) -> list[str]:
        """The translation."""
        return [word for k in self._checked(structure) for word in self.options[k].target]

    def phrases(self, structure: Sequence[int]) -> list[PhraseOption]:
        """The options used, in target order."""
        return [self.options[k] for k in self._checked(structure)]

    def _checked(self, structure: Any) -> list[int]:
        """The options of a translation; InvalidInput if it is none."""
        array = np.asarray(structure)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InvalidInput("a translation is a sequence of option numbers, in target order.")
        chosen: list[int] = array.tolist()
        covered, last, g, limit = [False] * (self.n + 1), -1, 0, self.limit
        for place, k in enumerate(chosen):
            if not 0 <= k < len(self.options):
                raise InvalidInput(f"structure[{place}] is {k}; options are 0..{len(self.options) - 1}.")
            o = self.options[k]
            if any(covered[o.start : o.end + 1]):
                raise InvalidInput(f"structure[{place}], option {k} ({o}), covers a word that is covered already.")
            if abs(o.start - last - 1) > limit:
                raise InvalidInput(f"structure[{place}], option {k} ({o}), jumps further than {limit} words.")
            if self.window and o.start != g and o.end + 1 - g > limit:
                raise InvalidInput(f"structure[{place}], option {k} ({o}), leaves word {g} out of reach.")
            covered[o.start : o.end + 1] = [True] * (o.end - o.start + 1)
            while covered[g]:
                g += 1
            last = o.end
        if g < self.n:
            raise InvalidInput(f"word {g} ({self.source[g]!r}) is not covered.")
        return chosen

    def terms(self, structure: Sequence[int]) -> list[float]:
        found, last = list[float](), -1
        chosen = [self.options[k] for k in self._checked(structure)]
        for o in chosen:
            found += [float(o.score), -self.distortion * abs(o.start - last - 1)]
            last = o.end
        words = [word for o in chosen for word in o.target]
        return [*found, *(self.lm_weight * x for x in self.lm.terms(words))]

    def all_structures(self) -> Iterator[Structure]:
        agenda: list[tuple[Structure, int, int]] = [((), 0, -1)]
        while agenda:
            chosen, covered, last = agenda.pop()
            if covered == (1 << self.n) - 1:
                yield chosen
                continue
            g = 0
            while covered >> g & 1:
                g += 1
            for k, o in enumerate(self.options):
                bits = ((1 << (o.end - o.start + 1)) - 1) << o.start
                near = abs(o.start - last - 1) <= self.limit
                if not near or covered & bits or (self.window and o.start != g and o.end + 1 - g > self.limit):
                    continue
                agenda.append(((*chosen, k), covered | bits, o.end))

    @cached_property
    def _extent(self) -> Extent:
        longest = max((len(o.target) for o in self.options if o.score > -inf), default=0)
        scores = np.array([float(o.score) for o in self.options])
        jumps = np.array([0.0, -self.distortion * self.n])
        return extent_of((2 + longest) * self.n, scores, jumps).joined(extent_of_lm(self.lm, self.lm_weight))

    def extent(self) -> Extent:
        return self._extent

    def without_scores_below(self, least: float) -> Self:
        if least == -np.inf:
            return self  # all of them are read
        return self._with_scores(np.array([0.0 if o.score >= least else -inf for o in self.options]))

    def all_scores(self) -> tuple[Floats, ...] | None:
        scores = np.array([float(o.score) for o in self.options])
        return (scores, np.array([-self.distortion])) if self.lm_weight == 0.0 else None

    def with_scores_rounded_up(self, step: float) -> Self:
        if self.lm_weight != 0.0 or self.distortion % step:
            raise NotSupported("scores of a language model, and of jumps, cannot be rounded up.")
        raised = rounded_up(np.array([float(o.score) for o in self.options]), step).tolist()
        pairs = zip(self.options, raised, strict=True)
        return self._with_options(replace(o, score=score) for o, score in pairs)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"options": (len(self.options),)}

    def indicator(self, structure: Sequence[int], view: str) -> Floats:
        (size,) = self.checked_view(view)
        return np.bincount(self._checked(structure), minlength=size).astype(np.float64)

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        """The problem without an option (value 0), or without those that share a word with it (value 1)."""
        (size,) = self.checked_view(view)
        if len(index) != 1 or not 0 <= index[0] < size:
            raise InvalidInput(f"index {index!r} is not one of the options 0..{size - 1}.")
        if value not in (0, 1):
            raise InvalidInput(f"value is {value!r}; an option is fixed to 0 or 1.")
        one = self.options[index[0]]
        penalty = np.zeros(size)
        if value == 0:
            penalty[index[0]] = -inf
        else:
            for k, o in enumerate(self.options):
                if k != index[0] and o.start <= one.end and one.start <= o.end:
                    penalty[k] = -inf
        return self._with_scores(penalty)

    def _with_scores(self, added: Floats) -> Self:
        """The same problem with numbers added to the scores of the options."""
        pairs = zip(self.options, added, strict=True)
        return self._with_options(replace(o, score=float(o.score) + float(x)) for o, x in pairs)

    def _settings(self) -> dict[str, Any]:
        """What a problem with other options is made with."""
        return {
            "source": self.source,
            "lm_weight": self.lm_weight,
            "distortion": self.distortion,
            "distortion_limit": self.distortion_limit,
            "window": self.window,
        }

    def _with_options(self, options: Iterable[PhraseOption]) -> Self:
        return type(self)(options, self.lm, **self._settings())

    def read_by(self, reading: Reading) -> "PhraseTranslation":
        kind: Any = PROBLEMS["accepted phrase translation"]  # by its name, since it is made of this
        restricted: PhraseTranslation = kind.of(self, reading)
        return restricted

    def _penalised(self, penalties: Penalties | None) -> Self:
        problem = self
        for view, penalty in (penalties or {}).items():
            self.checked_view(view)
            problem = problem._with_scores(np.asarray(penalty, dtype=np.float64))
        return problem

    # -- decoding --------------------------------------------------------------------------------------------------

    @cached_property
    def _order(self) -> list[int]:
        """The options that are not forbidden, by span: what the kernels number from 0."""
        usable = [k for k, o in enumerate(self.options) if o.score > -inf]
        return sorted(usable, key=lambda k: (self.options[k].start, self.options[k].end))

    @cached_property
    def _packed(self) -> list[Packed]:
        ids = {word: self.lm.word_id(word) for k in self._order for word in self.options[k].target}
        chosen = (self.options[k] for k in self._order)
        return [(int(o.start), int(o.end), float(o.score), tuple([ids[w] for w in o.target])) for o in chosen]

    @cached_property
    def sentence(self) -> Sentence:
        """The arrays the kernels read."""
        longest = max((j - i + 1 for i, j, _, _ in self._packed), default=0)
        if longest >= WINDOW or (self.n > WINDOW and not (self.window and self.limit < WINDOW)):
            raise NotSupported(
                f"coverage is held in {WINDOW} bits from the first uncovered word on: with {self.n} source words, give "
                f"a distortion_limit below {WINDOW} and window=True, and options of fewer than {WINDOW} words."
            )
        arrays = pack(self.n, self.lm.order, self.lm.end, self._packed)
        reading = None
        if self.reader is not None:
            reading = read_options(self.reader, [self.options[k].target for k in self._order])
        weights = self.lm_weight, self.distortion
        return Sentence(arrays, self.lm, *weights, self.limit, self.window, self.extent(), reading)

    def _check_feasible(self) -> None:
        """Infeasible unless some options cover the sentence without overlap; then source order keeps every limit."""
        spans = sorted({(self.options[k].start, self.options[k].end) for k in self._order})
        reached = [True] + [False] * self.n
        for i, j in spans:
            reached[j + 1] = reached[j + 1] or reached[i]
        if reached[self.n]:
            return
        for i, word in enumerate(self.source):
            if not any(a <= i <= b for a, b in spans):
                raise Infeasible(
                    f"no option covers source word {i} ({word!r}). Add one, or let unknown words be copied "
                    "(PhraseModel(unknown=...))."
                )
        at = max(k for k in range(self.n) if reached[k])
        raise Infeasible(
            f"no set of options covers the sentence without overlap: words 0..{at - 1} can be covered, but nothing "
            f"goes on from word {at} ({self.source[at]!r}) to the end. Add options of single words."
        )

    @sound
    def decode(
        self,
        *,
        max_iterations: int = 500,
        time_limit: float | None = None,
        exact: bool = True,
        method: str = "optimal beam",
        width: int = 100,
        step: StepRule[Any] | None = None,
    ) -> Result[Structure]:
        """The best translation, with its certificate.

        Parameters
        ----------
        max_iterations : int
            Rounds of subgradient descent, for methods that have any.
        time_limit : float, optional
            Seconds; looked at between searches.
        exact : bool
            False stops after a beam search of ``width`` under the default bounds, proved or not.
        method : str
            "optimal beam" (the default and the fastest), "alternating", "staged", "tight", "astar", "ilp" (the integer
            program of ``phrase_program``, short sentences, proved as by the default); or, without a proof
            unless nothing was pruned, "beam" and "stack". ``certus.translation.phrase_decoding`` says what they do.
        width : int
            Hypotheses kept per number of words covered by "beam" and "stack".
        step : StepRule, optional
            How far the multipliers move, for methods that have any (``certus.relax.steps``); Polyak's by default.

        Raises
        ------
        Infeasible : no set of options covers the sentence.
        NotSupported : the sentence has more than 64 words and no limit keeps the uncovered ones together.
        LimitReached : a limit ended the search before any translation was found.
        """
        one_of("method", method, phrase_decoding.METHODS)
        if method == "ilp" and self.reader is not None:
            raise NotSupported('the integer program reads no constraints; leave method="ilp" out.')
        run: Run[Int32] = Run(max_iterations=max_iterations, time_limit=time_limit, scale=self.extent().size)
        width = as_positive_int("width", width)
        self._check_feasible()
        if self.n == 0:
            if self.reader is not None and not self.reader.accepts(()):
                raise Infeasible(phrase_decoding.NONE_ACCEPTED)
            return self.proved((), self.score(()), kind="combinatorial")
        how = method if exact or method != "optimal beam" else "beam"
        if method == "ilp":
            from certus.translation.phrase_program import solve_ilp

            how = "optimal beam"
            self._offer(run, solve_ilp(self, time_limit))
        limits: Any = {"width": width, "max_iterations": max_iterations, "step": step}
        witness = phrase_decoding.decode(run, self.sentence, how, **limits)
        run.info["method"] = method
        return self._result(run, witness)

    def _result(self, run: Run[Int32], witness: tuple[float, Floats] | None) -> Result[Structure]:
        """What a run found, proved by its search or by multipliers."""
        assert run.structure is not None
        structure = self.of_path(run.structure)
        scores, score = partial(self.terms, structure), self.score(structure)
        if run.proof == "search":
            error = max(self.error(), run.error)
            return run.result(structure, certified(scores, score, run.score, error, kind="combinatorial"))
        assert witness is not None
        bound, u = witness
        return run.result(
            structure, certified(scores, score, bound, self.sentence.error(u), kind="dual", duals={"words": u})
        )

    def of_path(self, path: Int32) -> Structure:
        """A path of the relaxation's lattice, options in packed order, as indices into ``options``."""
        return tuple(self._order[o] for o in path.tolist())

    def _offer(self, run: Run[Int32], structure: Structure) -> None:
        """Let a search start from a translation, unless it leaves a word out of reach."""
        with suppress(InvalidInput):
            place = {k: o for o, k in enumerate(self._order)}
            run.offer(np.array([place[k] for k in structure], dtype=np.int32), self.score(structure))

    def solve(self, penalties: Penalties | None = None) -> Solution[Structure]:
        result = self._penalised(penalties).decode()
        return Solution(result.structure, result.score)

    def kbest(self, k: int, *, distinct: bool = False) -> list[Result[Structure]]:
        """The k best translations as sequences of options, best first; fewer when there are fewer. Exact.

        Searches all that may score within some distance of the best, ever further until there are k. Translations of
        the same words by different phrases, or in a different order, are different, unless ``distinct``: then there is
        one, the best, for each sentence of words. Its rank is still that among all sequences, and those that are better
        are named in its certificate, so that the proof says of all of them what their words are. Needs the lattice of
        coverages.

        Raises
        ------
        LimitReached : k different sentences take more than ``MOST_LISTED`` sequences of options.
        """
        if not distinct:
            return self._kbest(k)
        size = as_positive_int("k", k)
        while True:
            listed, seen = self._kbest(size), dict[tuple[str, ...], Result[Structure]]()
            for found in listed:
                seen.setdefault(tuple(self.words(found.structure)), found)
            if len(seen) >= k or len(listed) < size:
                return Gallery(list(seen.values())[:k])
            if size >= MOST_LISTED:
                raise LimitReached(f"the {size} best sequences of options are only {len(seen)} different translations.")
            size = min(4 * size, MOST_LISTED)

    @sound_list
    def _kbest(self, k: int) -> list[Result[Structure]]:
        """The k best sequences of options."""
        as_positive_int("k", k)
        self._check_feasible()
        if self.n == 0:
            return [self.decode()]
        listed = enumerate(phrase_kbest.within(self, self.decode(), k), start=1)
        return [self.proved(y, value, kind="combinatorial", rank=rank) for rank, (value, y) in listed]

    # -- proofs ----------------------------------------------------------------------------------------------------

    @property
    def searched(self) -> bool:
        return True

    def closed_form(self, above: float, witness: Any, penalties: Penalties | None = None) -> Closed:
        form = phrase_proof.closed_form(self, above, witness, penalties)
        return Closed(form, lambda structure: phrase_proof.edges_of(form, self._checked(structure)))

    def make_witness(self, above: float, penalties: Penalties | None = None) -> dict[str, Any]:
        return phrase_witness.make_witness(self._penalised(penalties), above)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """With the language model cut down to the words of the options."""
        return {
            "source": list(self.source),
            "options": [[int(o.start), int(o.end), list(o.target)] for o in self.options],
            "scores": floats_to_json(np.array([o.score for o in self.options], dtype=np.float64)),
            "lm": lm_to_json(self.lm, {word for o in self.options for word in o.target}),
            "lm_weight": self.lm_weight,
            "distortion": self.distortion,
            "distortion_limit": self.distortion_limit,
            "window": self.window,
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        source = given["source"].texts()
        scores = given["scores"].scores((None,)).tolist()
        options = []
        for option, score in zip(given["options"].items(size=len(scores)), scores, strict=True):
            start, end, target = option.items(size=3)
            options.append(PhraseOption(start.whole(), end.whole(), tuple(target.texts()), score))
        lm = lm_from_json(given["lm"])
        weights: dict[str, Any] = {name: given[name].number() for name in ("lm_weight", "distortion")}
        limit = given["distortion_limit"].whole() if "distortion_limit" in given else None
        limits: dict[str, Any] = {"distortion_limit": limit, "window": given["window"].flag()} | cls._more(given)
        return given.made(lambda: cls(options, lm, source=source, **limits, **weights))

    @classmethod
    def _more(cls, given: Field) -> dict[str, Any]:
        """What kinds that are made of this one have besides."""
        return {}

    def structure_to_json(self, structure: Sequence[int]) -> list[int]:
        return self._checked(structure)

    def picture(self, structure: Structure, words: Sequence[str] | None = None) -> Picture:
        """The phrases of a translation, in its order, and the source words that they translate."""
        used = [self.options[k] for k in structure]
        covered = [sum(o.start <= i <= o.end for o in used) for i in range(self.n)]
        return phrases(self.source, [(o.start, o.end + 1, o.target) for o in used], covered=covered)

    def structure_from_json(self, data: Any) -> Structure:
        return tuple(self._checked(Field.of(data, "structure").wholes(0, len(self.options) - 1)))


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not isfinite(value):
        raise InvalidInput(f"{name} is {value!r}; expected a finite number.")
    return float(value)
