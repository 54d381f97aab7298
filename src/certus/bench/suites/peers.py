"""Words to tags and labelled trees beside UDPipe 1 and spaCy, trained on the same treebank: speed and accuracy of each.

All begin with the words of test, set apart by blanks, a sentence a line, and end with CoNLL-U; one core. ``models`` are
names or folders for certus.load; the first is held against the others and the ``peers``. ``udpipe`` and ``spacy`` are
places of models of the peers: what is not there is trained on ``part`` (dev is enough for their speed, not for their
accuracy), and kept if its place was given. UDPipe has the settings of its own English models, with so many
``tagger_iterations`` and ``iterations`` of its parser and ``system`` projective or swap; ``more`` settings of its
parser may follow, such as ``embedding_form_file=FILE`` for vectors of words, or ``structured_interval=0`` to train
faster. Like certus it gives no lemmas and no morphology. spaCy has its own configuration for speed, without vectors,
for so many ``epochs``, and learns tags without morphology too.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import certus
from certus.bench import udpipe as peer
from certus.bench.cases import Case, Row, Skipped, data_folder
from certus.checks import one_of
from certus.evaluate import AttachmentScores
from certus.io.conllu import parse_conllu, read_conllu
from certus.text import Sentence

TAGGER = "use_lemma=0;provide_lemma=0;use_feats=0;provide_feats=0"
PARSER = (
    "embedding_form=50;embedding_upostag=20;embedding_xpostag=20;embedding_feats=0;embedding_deprel=20;learning_rate=0.01;"
    "learning_rate_final=0.001;l2=0.5;hidden_layer=200;batch_size=10"
)
SYSTEMS = {"projective": "transition_oracle=dynamic", "swap": "transition_oracle=static_lazy"}
COLUMNS = ("UPOS", "XPOS", "UAS", "LAS")
Conllu = Callable[[], str]


def run(
    *,
    data: str = "",
    treebank: str = "en_ewt",
    models: tuple[str, ...] = ("en",),
    peers: tuple[str, ...] = ("udpipe", "spacy"),
    udpipe: str = "",
    spacy: str = "",
    part: str = "train",
    system: str = "projective",
    tagger_iterations: int = 20,
    iterations: int = 10,
    more: str = "",
    epochs: int = 10,
    language: str = "en",
) -> Iterator[Case | Row | Skipped]:
    folder = data_folder(data, "ud", treebank)
    test = [s for s in read_conllu(folder / "test.conllu.gz") if not any(" " in word for word in s.words)]
    words = [s.words for s in test]
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "words.txt"
        text = "".join(" ".join(sentence) + "\n" for sentence in words)
        path.write_text(text, encoding="utf-8")
        contestants = {f"certus {name}": _certus(name, path) for name in models}
        train, ours = folder / f"{part}.conllu.gz", f"certus {models[0]}"
        parser = f"{PARSER};transition_system={system};{SYSTEMS[system]};iterations={iterations}"
        settings = (f"{TAGGER};iterations={tagger_iterations}", f"{parser};{more}" if more else parser)
        for name in peers:
            one_of("peers", name, ("udpipe", "spacy"))
            try:
                if name == "udpipe":
                    contestants |= _udpipe(Path(udpipe or Path(scratch) / "udpipe.model"), train, settings, text)
                else:
                    contestants["spaCy"] = _spacy(
                        Path(spacy or Path(scratch) / "spacy"), train, epochs, language, words
                    )
            except ImportError:
                yield Skipped(f"{name} is not installed")
        for name, answer in contestants.items():
            yield Row(f"{treebank}, {name}", _accuracy(test, answer()))
        yield Case(
            f"{treebank}, words to CoNLL-U",
            contestants.pop(ours),
            contestants,
            items=sum(map(len, test)),
            unit="word",
        )


def _certus(name: str, path: Path) -> Conllu:
    pipeline = certus.load(name)
    return lambda: "".join(p.text for p in pipeline.parse_file(path, tokenised=True, workers=1))


def _accuracy(gold: list[Sentence], found: str) -> dict[str, float]:
    trees = parse_conllu(found.splitlines())
    scores = AttachmentScores.of(zip(gold, trees, strict=True)).scores()
    return {name: float(scores[name]) for name in COLUMNS}


def _udpipe(file: Path, train: Path, settings: tuple[str, str], text: str) -> dict[str, Conllu]:
    import ufal.udpipe as udpipe

    model = peer.model(file, train, train.with_name("dev.conllu.gz"), *settings)

    def pipeline(beam: int) -> Conllu:
        made = udpipe.Pipeline(model, "horizontal", udpipe.Pipeline.DEFAULT, f"beam_search={beam}", "conllu")
        made.kept = model  # which is freed otherwise
        return lambda: str(made.process(text))

    return {"UDPipe, beam 5": pipeline(5), "UDPipe, greedy": pipeline(1)}


def _spacy(place: Path, train: Path, epochs: int, language: str, sentences: list[list[str]]) -> Conllu:
    import spacy
    from spacy.tokens import Doc

    if not (place / "model-last").exists():
        _train_spacy(place, train, epochs, language)
    nlp = spacy.load(place / "model-last")

    def docs() -> Iterator[Any]:
        for words in sentences:
            yield Doc(nlp.vocab, words=words, sent_starts=[True] + [False] * (len(words) - 1))

    return lambda: "".join(_conllu(doc) for doc in nlp.pipe(docs()))


def _conllu(doc: Any) -> str:
    rows = []
    for k, t in enumerate(doc, start=1):
        head, label = (0, "root") if t.head is t or t.head.i == t.i else (t.head.i + 1, t.dep_)
        rows.append(f"{k}\t{t.text}\t_\t{t.pos_}\t{t.tag_ or '_'}\t{t.morph or '_'}\t{head}\t{label}\t_\t_\n")
    return "".join(rows) + "\n"


def _train_spacy(place: Path, source: Path, epochs: int, language: str) -> None:
    """Train with the configuration that ``spacy init config --optimize efficiency`` gives."""
    from spacy.cli.init_config import init_config
    from spacy.tokens import DocBin
    from spacy.training.converters import conllu_to_docs
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train

    place.mkdir(parents=True, exist_ok=True)
    config = init_config(lang=language, pipeline=["tagger", "morphologizer", "parser"], optimize="efficiency")
    for part, path in {"train": source, "dev": source.with_name("dev.conllu.gz")}.items():
        bare = (replace(s, tokens=[replace(t, feats="_") for t in s]) for s in read_conllu(path))
        docs = list(conllu_to_docs("".join(map(str, bare)), n_sents=1, no_print=True))
        DocBin(docs=docs, store_user_data=False).to_disk(place / f"{part}.spacy")
        config["paths"][part] = str(place / f"{part}.spacy")
    config["training"] |= {"max_epochs": epochs, "max_steps": 0, "patience": 0, "eval_frequency": 1000}
    nlp = init_nlp(config.interpolate())
    train(nlp, place, use_gpu=-1, stdout=sys.stderr, stderr=sys.stderr)
