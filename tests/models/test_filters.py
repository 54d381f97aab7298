"""Filters of arcs: levels against enumeration, thresholds that lose no more than asked, cascades, a parser's widths."""

from dataclasses import replace

import numpy as np
import pytest

from certus import Dependency
from certus.dependency.vine import OUTER_LEFT, OUTER_RIGHT, Vine
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.features import templates as T
from certus.features.encode import Encoder
from certus.learn.parts import Features, Parts
from certus.learn.trees import TreeModel, arc_scores
from certus.learn.vine import VineParts, vine_model
from certus.learn.weights import Packed
from certus.models.cascade import Cascade, stages
from certus.models.filter_training import KINDS, train_cascade, train_filter
from certus.models.filters import LengthDictionary, LinearFilter, Treebank, all_arcs
from certus.models.training import train_parser
from certus.text import Sentence
from tests.learn.toy import treebank as random_sentences
from tests.models.test_parser import SMALL
from tests.models.test_parser import treebank as small_grammar
from tests.oracles.trees import is_tree, projective_trees

BITS = 10


def random_bank(lengths, seed):
    """Random sentences with random projective trees."""
    rng = np.random.default_rng(seed)
    batch, trees = random_sentences(lengths, seed)
    for s, n in enumerate(lengths):
        if n:
            every = projective_trees(n, "single")
            trees[s] = np.array(every[rng.integers(len(every))])
    return Treebank.of(batch, trees)


def random_filter(model, measure, seed, **more):
    weight = np.random.default_rng(seed).standard_normal(1 << BITS).astype(np.float32)
    return LinearFilter("random", model, measure, BITS, Packed.of(weight), 0.0, **more)


def lost(stage, bank):
    """How many right arcs a filter loses, of how many that were in some tree."""
    there = gone = 0
    for s, (tree, before) in enumerate(zip(bank.trees, bank.allowed, strict=True)):
        arcs = (tree[1:], np.arange(1, len(tree)))
        usable = (stage.levels(bank.batch, s, before) > -np.inf)[arcs]
        there += int(usable.sum())
        gone += int((usable & ~stage.keep(bank.batch, s, before)[arcs]).sum())
    return gone, there


def has_tree(allowed):
    """Whether the arcs contain a projective tree with one root word: only then is there a problem to decode."""
    return len(allowed) == 1 or is_tree(Dependency(np.where(allowed, 0.0, -np.inf), projective=True).decode().structure)


# -- levels ----------------------------------------------------------------------------------------------------------


def vine_of(stage, vine, batch, s):
    """The vine parses of a sentence as a problem, with the scores that a filter gives the index set."""
    n, sentence = vine.n, batch.sentence(s)
    arc, unit = arc_scores(sentence, vine.short, stage.of_arcs) * stage.weight.unit, stage.weight.unit
    outer = np.full((2, n + 1, 2), -np.inf)
    rows = vine.rows[vine.n_short :]
    for (kind, h, m, *_), score in zip(rows.tolist(), stage._scores(sentence, rows), strict=True):
        assert abs(h - m) == vine.band + 1  # the border of the band stands for the other end
        outer[kind - 1][(m, int(h > m)) if kind == 1 else (h, int(m > h))] = unit * score
    return Vine(arc, outer[0], outer[1], band=vine.band, root="multi")


@pytest.mark.parametrize(("n", "band"), [(1, 1), (2, 1), (4, 1), (5, 1), (4, 2), (3, 5)])
def test_levels_of_a_vine_agree_with_all_its_parses(n, band):
    batch, _ = random_sentences([n], n)
    allowed = all_arcs(n) & (np.random.default_rng(n).random((n + 1, n + 1)) < 0.8)
    allowed[np.arange(n), np.arange(1, n + 1)] = True  # there is a tree
    model = vine_model(T.FIRST_FILTER, single=True)
    by_value, by_share = (random_filter(model, m, 7, band=band) for m in ("shortfall", "probability"))
    problem = vine_of(by_value, VineParts(model, allowed, band), batch, 0)
    parses = list(problem.all_structures())
    value = np.array([problem.score(parse) for parse in parses])
    share = np.exp(value - np.logaddexp.reduce(value))
    assert np.isclose(share.sum(), 1.0)
    levels = [stage.levels(batch, 0, allowed) for stage in (by_value, by_share)]
    for h in range(n + 1):
        for m in range(1, n + 1):
            if not allowed[h, m]:
                assert levels[0][h, m] == levels[1][h, m] == -np.inf
                continue
            ends = [[parse[m, 0] == h for parse in parses]]
            if abs(h - m) > band:
                ends = [[parse[m, 0] == (OUTER_LEFT if h < m else OUTER_RIGHT) for parse in parses],
                        [parse[h, 1 + (m > h)] == 1 for parse in parses]]  # fmt: skip
            assert levels[0][h, m] == pytest.approx(
                min(value[end].max(initial=-np.inf) - value.max() for end in ends), abs=1e-9
            )
            assert levels[1][h, m] == pytest.approx(min(share[end].sum() for end in ends), abs=1e-9)


def test_the_indices_of_a_tree_in_a_vine_score_as_its_short_arcs_and_loose_ends():
    n, band = 5, 2
    batch, _ = random_sentences([n], 3)
    model = vine_model(T.FIRST_FILTER, single=False)
    stage, vine = random_filter(model, "score", 5, band=band), VineParts(model, all_arcs(n), band)
    problem = vine_of(stage, vine, batch, 0)
    score = stage.weight.unit * stage._vine_scores(batch.sentence(0), vine)
    for heads in projective_trees(n, "multi"):
        parse = np.zeros((n + 1, 3), dtype=np.int64)
        parse[0, 0] = -1
        for m in range(1, n + 1):
            far = abs(heads[m] - m) > band
            parse[m, 0] = heads[m] if not far else OUTER_LEFT if heads[m] < m else OUTER_RIGHT
            if far:
                parse[heads[m], 1 + (m > heads[m])] = 1
        assert vine.of_tree(np.array(heads)) @ score == pytest.approx(problem.score(parse), abs=1e-9)


@pytest.mark.parametrize("projective", [True, False])
def test_levels_of_trees_are_their_marginals_and_max_marginals(projective):
    n = 5
    batch, _ = random_sentences([n], 2)
    allowed = all_arcs(n)
    allowed[2, 4] = allowed[0, 3] = False
    model = TreeModel((T.FIRST_FILTER,), projective, True)
    level = {m: random_filter(model, m, 3).levels(batch, 0, allowed) for m in
             ("score", "max-marginal", "shortfall", "probability", "beam")}  # fmt: skip
    problem = Dependency(level["score"], projective=projective)
    share, through = problem.marginals()["arcs"], problem.max_marginals()["arcs"]
    best = through[:, 1].max()
    np.testing.assert_allclose(np.where(allowed, level["probability"], 0.0), share, atol=1e-12)
    np.testing.assert_allclose(np.where(allowed, level["beam"], 0.0)[:, 1:], share[:, 1:] / share[:, 1:].max(axis=0))
    np.testing.assert_allclose(level["shortfall"], through - best, atol=1e-9)
    mean = through[through > -np.inf].mean()
    np.testing.assert_allclose(level["max-marginal"], (through - mean) / (best - mean), atol=1e-9)
    stage = random_filter(model, "max-marginal", 3)
    kept = {eta: replace(stage, threshold=eta).keep(batch, 0, allowed) for eta in (0.4, 1.0)}
    assert (kept[0.4] == (through >= 0.4 * best + 0.6 * mean)).all()
    assert kept[1.0].sum() == n  # the best tree alone


def test_siblings_count_at_second_order():
    n = 4
    batch, _ = random_sentences([n], 2)
    model = TreeModel((T.FIRST_FILTER, T.SIBLING), True, True)
    stage = random_filter(model, "shortfall", 3)
    level = stage.levels(batch, 0, all_arcs(n))
    first = replace(stage, model=TreeModel((T.FIRST_FILTER,), True, True)).levels(batch, 0, all_arcs(n))
    parts = Parts(model, all_arcs(n))
    score = Features(model, batch, BITS).scores(0, parts.rows, stage.weight.value * stage.weight.unit)
    value = {heads: parts.of_tree(np.array(heads)) @ score for heads in projective_trees(n, "single")}
    for h, m in np.argwhere(level > -np.inf):
        best = max(v for heads, v in value.items() if heads[m] == h)
        assert level[h, m] == pytest.approx(best - max(value.values()), abs=1e-9)
    assert not np.allclose(first[all_arcs(n)], level[all_arcs(n)])


# -- thresholds ------------------------------------------------------------------------------------------------------


@pytest.mark.compiled
@pytest.mark.parametrize("kind", KINDS)
def test_a_tuned_filter_loses_no_more_than_asked_and_keeps_a_tree(kind):
    bank = random_bank([0, 1, 2, 3, 4, 5, 6, 6, 5, 4] * 2, 1)
    held_out = random_bank([6, 5, 0, 4, 1, 2, 6, 6, 5] * 2, 2)
    stage = train_filter(kind, bank, band=2, bits=BITS, epochs=1)
    before = held_out.after(train_filter("length dictionary", bank))  # right arcs that are gone do not count
    for error in (0.0, 0.1, 0.3):
        tuned = stage.tuned(before, error)
        gone, there = lost(tuned, before)
        assert gone <= error * there < sum(map(len, held_out.trees))
        above = replace(tuned, threshold=np.nextafter(tuned.threshold, np.inf))
        assert tuned.threshold == np.inf or lost(above, before)[0] > error * there  # none is sharper
    last = None
    for threshold in (-np.inf, 0.0, 0.2, 0.5, 0.9, 1.0, 2.0, np.inf):
        left = before.after(replace(stage, threshold=threshold)).allowed
        for s, arcs in enumerate(left):
            assert not (arcs & ~before.allowed[s]).any()
            assert has_tree(arcs)
            assert last is None or not (arcs & ~last[s]).any()  # monotone
        last = left
    assert all(arcs.sum() == len(tree) - 1 for arcs, tree in zip(last, before.trees, strict=True))


def test_what_cannot_be_filtered_is_refused():
    bank = random_bank([2, 3], 1)
    stage = random_filter(TreeModel((T.FIRST_FILTER,), True, True), "score", 1)
    assert stage.tuned(Treebank.of(*random_sentences([0], 1))).threshold == np.inf  # nothing to lose
    with pytest.raises(InvalidInput, match=r"right arcs to lose is 1\.5"):
        stage.tuned(bank, 1.5)
    nothing = np.zeros((3, 3), dtype=np.bool_)
    with pytest.raises(Infeasible, match="2 words contain no tree"):
        stage.keep(bank.batch, 0, nothing)
    with pytest.raises(InvalidInput, match="measure"):
        replace(stage, measure="magic")
    with pytest.raises(InvalidInput, match="kind"):
        train_filter("magic", bank)
    for kind in ("vine", "second order"):
        with pytest.raises(NotSupported, match="projective trees"):
            train_filter(kind, bank, projective=False)
    with pytest.raises(NotSupported, match="learns from trees"):
        train_filter("vine", bank, learner="mira")


# -- cascades --------------------------------------------------------------------------------------------------------


def encoded(sentences, encoder=None):
    encoder = encoder or Encoder.of(sentences)
    return encoder, Treebank.of(encoder.encode(sentences), [s.heads for s in sentences])


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("kinds", "learner"),
    [
        (("length dictionary", "vine", "first order", "second order"), None),
        (("length dictionary", "first order", "second order"), "mira"),
        (("local short", "local", "marginal beam"), None),
    ],
)
def test_a_cascade_learns_to_keep_the_right_arcs_and_few_others(kinds, learner):
    encoder, bank = encoded(small_grammar(60, 1))
    _, held_out = encoded([*small_grammar(30, 2), Sentence([])], encoder)
    cascade = train_cascade(kinds, bank, held_out, error=0.02, band=2, bits=14, learner=learner)
    _, new = encoded(small_grammar(30, 3), encoder)
    found = stages(cascade, new.batch, new.trees)
    assert [stage.name for stage in found] == list(kinds)
    assert np.all(np.diff([stage.heads for stage in found]) <= 0)
    assert np.all(np.diff([stage.oracle for stage in found]) <= 0)
    assert found[-1].oracle > 0.95
    assert found[-1].pruned > 0.7
    for s in range(len(new.trees)):
        assert has_tree(cascade.survivors(new.batch, s))


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("single", [True, False])
def test_the_kernel_of_a_cascade_leaves_what_its_stages_leave_one_by_one(projective, single):
    bank = random_bank([0, 1, 2, 4, 6], 4)
    dictionary = LengthDictionary.of(random_bank([3, 4, 5], 5), projective=projective, single=single)
    model = TreeModel((T.FIRST_FILTER,), projective, single)
    fine, coarse = random_filter(model, "shortfall", 1), random_filter(model, "shortfall", 2)
    coarse = replace(coarse, weight=Packed(np.sign(coarse.weight.value).astype(np.int8), 0.25))  # with many ties
    passed_over = 0
    for width, heads in [(0.0, 9), (0.5, 9), (2.0, 2), (np.inf, 3)]:
        first, second = (replace(stage, threshold=-width, heads=heads) for stage in (coarse, fine))
        for filters in [(first,), (replace(first, heads=2 * heads), second)]:
            cascade = Cascade((dictionary, *filters))
            assert cascade.arrays is not None
            for s, arcs in enumerate(bank.allowed):
                assert (cascade.survivors(bank.batch, s) == cascade.one_by_one(bank.batch, s)).all()
                passed_over += len(arcs) > 1 and (dictionary.keep(bank.batch, s, arcs) == arcs).all()
    assert passed_over  # dictionaries that leave no tree


def test_a_cascade_of_other_filters_is_run_one_by_one():
    dictionary = LengthDictionary.of(random_bank([3, 4, 5], 5))
    model = TreeModel((T.FIRST_FILTER,), True, True)
    stage = random_filter(model, "shortfall", 1)
    others = [replace(stage, measure="score"), replace(stage, threshold=0.1), replace(stage, threshold=np.inf),
              replace(stage, model=TreeModel((T.FIRST_FILTER,), False, True)), dictionary]  # fmt: skip
    for filters in [(), (dictionary,), (stage,), (stage, dictionary), *((dictionary, stage, one) for one in others)]:
        assert Cascade(filters).arrays is None
    left = Cascade((dictionary, replace(stage, threshold=np.inf))).survivors(random_bank([4], 1).batch, 0)
    assert left.sum() == 4  # one tree


@pytest.mark.compiled
@pytest.mark.parametrize("with_dev", [True, False])
def test_the_widths_of_a_parser_are_chosen_by_the_arcs_they_may_lose(tmp_path, with_dev):
    data = small_grammar(40, 1)
    dev = small_grammar(20, 2) if with_dev else []
    settings = replace(SMALL, order=2, epochs=1, label_epochs=1)
    wide, sharp = (train_parser(data, dev, settings=replace(settings, pruning_error=e)) for e in (0.0, 0.2))
    assert 0.0 <= sharp.settings.first_width <= wide.settings.first_width < settings.first_width
    assert sharp.cascade.linear[1].width == sharp.settings.second_width <= wide.settings.second_width
    wide.save(tmp_path / "wide")
    assert type(wide).load(tmp_path / "wide").settings == wide.settings
    if with_dev:
        found = stages(wide.cascade, wide.encoder.encode(dev), [s.heads for s in dev])
        assert found[0].oracle == found[-1].oracle  # no filter loses a right arc
        found = stages(sharp.cascade, sharp.encoder.encode(dev), [s.heads for s in dev])
        assert found[-1].oracle >= 0.8**2 * found[0].oracle
    assert all(is_tree(s.heads.tolist()) for s in sharp.parse(small_grammar(5, 3)))
    with pytest.raises(InvalidInput, match="pruning_error"):
        replace(settings, pruning_error=-0.1)
