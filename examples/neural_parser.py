"""Train a neural dependency parser on a CPU, with losses over trees, and parse with it.

    python examples/neural_parser.py train.conllu dev.conllu folder --epochs 12
    certus parse --model folder test.conllu
    certus parse --model linear --add folder --scale 0.5 test.conllu

The network (certus.models.network) reads words, lemmas, characters and tags with a bidirectional LSTM, and scores arcs,
siblings, grandparents and labels. The loss has three terms: minus the log-probability of the right tree among all trees
by scores of arcs; in the last epochs the hinge loss of trees by all scores, so that the right tree wins by one for each
wrong head; and minus the log-probability of the right labels. Crossing arcs are kept (--crossing) or lifted.

After every epoch the state is saved; the same command goes on where a training was broken off. With --linear, a folder
of certus train parser, the scale by which both are added is tuned on the second file. Without files a toy treebank is
learned.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import certus.torch as ct
from certus import load
from certus.dependency.projectivize import nearest_projective
from certus.evaluate import AttachmentScores
from certus.io.conllu import read_conllu
from certus.learn.trees import TreeModel
from certus.models.checkpoints import Checkpoint
from certus.models.network import Network, Sizes, Vocabulary
from certus.models.neural import NeuralParser, by_length
from certus.models.pipeline import NEURAL_FILE
from certus.models.sum_parser import SumParser
from certus.text import Sentence, Token

HINGE = 0.3  # share of the epochs, the last ones, in which pairs of arcs are learned
WARM = 100  # steps until the learning rate is at its highest; from there it falls to zero


class Treebank:
    """Sentences with their trees, and what batches of them are to be taught."""

    def __init__(self, sentences: Sequence[Sentence], *, crossing: bool) -> None:
        self.sentences = [sentence for sentence in sentences if 0 < len(sentence) <= 120]
        self.labels = tuple(sorted({token.deprel for sentence in self.sentences for token in sentence}))
        self.single = all((sentence.heads == 0).sum() == 1 for sentence in self.sentences)
        self.number = {label: k for k, label in enumerate(self.labels)}
        self.lifted = [nearest_projective(sentence.heads) for sentence in self.sentences]
        self.heads = [s.heads for s in self.sentences] if crossing else self.lifted
        self.lengths = [len(sentence) for sentence in self.sentences]

    def batches(self, words: int, rng: np.random.Generator) -> list[list[int]]:
        """All sentences in a new order, those of like lengths together."""
        found = list(by_length(self.lengths, words, rng.permutation(len(self.lengths)).tolist()))
        return [found[k] for k in rng.permutation(len(found))]

    def gold(self, batch: list[int]) -> Iterator[Tensor]:
        """Heads, lifted heads and labels of a batch, (B, N) each, -1 at node 0 and beyond the end."""
        labels = {k: [-1, *(self.number[token.deprel] for token in self.sentences[k])] for k in batch}
        for rows in (self.heads, self.lifted, labels):
            padded = np.full((len(batch), 1 + max(self.lengths[k] for k in batch)), -1)
            for b, k in enumerate(batch):
                padded[b, : self.lengths[k] + 1] = rows[k]
            yield torch.from_numpy(padded)


def loss_of(parser: NeuralParser, treebank: Treebank, batch: list[int], *, pairs: bool) -> Tensor:
    """The loss of a batch, by word."""
    inputs = parser.vocabulary.inputs([treebank.sentences[k] for k in batch])
    heads, lifted, labels = treebank.gold(batch)
    scores = parser.network(inputs)
    shape = {"lengths": inputs.lengths, "root": "single" if parser.single else "multi"}
    loss = -ct.Dependency(scores.arc, **shape, projective=parser.projective).log_prob(heads).sum()
    if pairs:
        loss = loss + ct.Dependency(scores.arc, *scores.pairs(), **shape, projective=True).hinge(lifted).sum()
    of_labels = parser.network.label_scores(scores, heads)
    loss = loss + torch.nn.functional.nll_loss(of_labels.transpose(1, 2), labels, ignore_index=-1, reduction="sum")
    return loss / inputs.lengths.sum()


def train(
    parser: NeuralParser, treebank: Treebank, dev: Sequence[Sentence], folder: Path, options: argparse.Namespace
) -> None:
    """Train, and keep the parser of the epoch that is best on dev."""
    optimizer = torch.optim.AdamW(
        parser.network.parameters(), lr=options.rate, betas=(0.9, 0.95), weight_decay=1e-4, fused=True
    )
    checkpoint = Checkpoint(
        folder / "checkpoint.safetensors", "neural training", fingerprint(parser, treebank, options)
    )
    done, best = resumed(parser, optimizer, checkpoint)
    for epoch in range(done, options.epochs):
        torch.manual_seed(options.seed + epoch)
        batches = treebank.batches(options.words, np.random.default_rng([options.seed, epoch]))
        started, total = time.perf_counter(), 0.0
        parser.network.train()
        for k, batch in enumerate(batches):
            step, steps = epoch * len(batches) + k, options.epochs * len(batches)
            optimizer.param_groups[0]["lr"] = options.rate * min((step + 1) / WARM, 1.0 - step / steps)
            optimizer.zero_grad()
            loss = loss_of(parser, treebank, batch, pairs=epoch >= (1.0 - HINGE) * options.epochs)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parser.network.parameters(), 5.0)
            optimizer.step()
            total += loss.item() / len(batches)
        minutes = (time.perf_counter() - started) / 60
        uas, las = accuracy(parser, dev)
        print(
            f"epoch {epoch + 1}: loss {total:.3f}, dev UAS {uas:.2f}, LAS {las:.2f}, {minutes:.1f} minutes", flush=True
        )
        if uas + las >= best:
            best = uas + las
            parser.save(folder / NEURAL_FILE)
        keep(parser, optimizer, checkpoint, epoch + 1, best)


def accuracy(parser: NeuralParser | SumParser, sentences: Sequence[Sentence]) -> tuple[float, float]:
    """UAS and LAS in percent."""
    scores = AttachmentScores.of(zip(sentences, parser.parse(sentences), strict=True)).scores()
    return scores["UAS"], scores["LAS"]


def fingerprint(parser: NeuralParser, treebank: Treebank, options: argparse.Namespace) -> str:
    """What two trainings with the same outcome have in common."""
    settings = (options.epochs, options.words, options.rate, options.seed, parser.sizes, parser.projective)
    return f"{len(treebank.sentences)} sentences, {sum(treebank.lengths)} words, {settings}"


def keep(
    parser: NeuralParser, optimizer: torch.optim.Optimizer, checkpoint: Checkpoint, epoch: int, best: float
) -> None:
    """Save weights and the averages of AdamW."""
    arrays = {f"weight.{name}": tensor.numpy() for name, tensor in parser.network.state_dict().items()}
    for k, state in optimizer.state_dict()["state"].items():
        arrays |= {f"state.{k}.{name}": np.atleast_1d(tensor.numpy()) for name, tensor in state.items()}
    checkpoint.save({"epoch": epoch, "best": best}, arrays)


def resumed(parser: NeuralParser, optimizer: torch.optim.Optimizer, checkpoint: Checkpoint) -> tuple[int, float]:
    """Epochs that were done before, and the best accuracy until then."""
    found = checkpoint.load()
    if found is None:
        return 0, 0.0
    config, stored = found
    weights = parser.network.state_dict()
    for name, tensor in weights.items():
        weights[name] = torch.from_numpy(stored.array(f"weight.{name}", np.float32, tuple(tensor.shape)))
    parser.network.load_state_dict(weights)
    state: dict[int, dict[str, Tensor]] = {}
    for k, parameter in enumerate(parser.network.parameters()):
        shape = tuple(parameter.shape)
        averages = {n: stored.array(f"state.{k}.{n}", np.float32, shape) for n in ("exp_avg", "exp_avg_sq")}
        state[k] = {name: torch.from_numpy(array) for name, array in averages.items()}
        state[k]["step"] = torch.from_numpy(stored.array(f"state.{k}.step", np.float32, (1,)))[0]
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return config["epoch"].whole(), config["best"].number()


def toy() -> list[Sentence]:
    """Sentences such as "the big dog sees a cat"."""
    rng, out = np.random.default_rng(0), []
    for _ in range(60):
        adjective = rng.random(2) < 0.5
        words: list[tuple[str, str, int, str]] = []
        verb = 3 + int(adjective[0])
        for side, (relation, big) in enumerate(zip(("nsubj", "obj"), adjective, strict=True)):
            noun = (2 + int(big)) + side * verb
            words.append((str(rng.choice(["the", "a"])), "DET", noun, "det"))
            words += [("big", "ADJ", noun, "amod")] if big else []
            words.append((str(rng.choice(["dog", "cat", "bird"])), "NOUN", verb, relation))
            words += [(str(rng.choice(["sees", "hears"])), "VERB", 0, "root")] if side == 0 else []
        out.append(Sentence([Token(i, w, upos=t, head=h, deprel=r) for i, (w, t, h, r) in enumerate(words, 1)]))
    return out


def main() -> None:
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    read = [list(read_conllu(path)) for path in (options.train, options.dev) if path is not None]
    if len(read) == 2:
        sentences, dev = read
    else:
        sentences, dev, options.words = toy()[:50], toy()[50:], 60
    treebank = Treebank(sentences, crossing=options.crossing)
    vocabulary, sizes = Vocabulary.of(treebank.sentences), replace(Sizes(), hidden=options.hidden)
    network = Network(vocabulary, len(treebank.labels), sizes)
    model = TreeModel((), projective=not options.crossing, single=treebank.single)
    parser = NeuralParser(network, vocabulary, treebank.labels, sizes, model)
    options.folder.mkdir(parents=True, exist_ok=True)
    train(parser, treebank, dev, options.folder, options)
    best = NeuralParser.load(options.folder / NEURAL_FILE)
    if options.linear is not None:
        linear = load(options.linear).parser
        both = SumParser(linear, best).tuned(dev)
        uas, las = accuracy(both, dev)
        print(f"with {options.linear}, --scale {both.scale:g}: dev UAS {uas:.2f}, LAS {las:.2f}")


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path, nargs="?", help="trees in CoNLL-U")
    parser.add_argument("dev", type=Path, nargs="?", help="other trees, to choose the best epoch by")
    parser.add_argument("folder", type=Path, nargs="?", default="neural", help="for the model and the checkpoint")
    parser.add_argument("--crossing", action="store_true", help="arcs may cross")
    parser.add_argument("--linear", type=Path, help="folder of a linear parser, to be added to")
    for name, default in {"epochs": 12, "words": 800, "hidden": Sizes().hidden, "threads": 1, "seed": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=3e-3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
