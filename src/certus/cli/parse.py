"""certus parse: dependency trees in CoNLL-U."""

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import certus
from certus.cli.arguments import Option
from certus.cli.drawing import PARQUET, Form, print_drawings
from certus.cli.inputs import byte_streams, read_sentences
from certus.cli.messages import complain, print_json
from certus.cli.options import Conllu, FilesOrText, JsonLines, KBest, Lines, ParserModel, TimeLimit, Tokenised
from certus.cli.progress import watched
from certus.errors import InvalidInput
from certus.evaluate import Calibration
from certus.models.pipeline import Pipeline, load
from certus.models.rewriting import rewritten, written
from certus.models.trees import Parsed
from certus.result import Certificate
from certus.text import Sentence


class EngineName(StrEnum):
    """Where files are parsed."""

    threads = "threads"
    processes = "processes"
    ray = "ray"


@dataclass(frozen=True)
class Wanted:
    """What is wanted of every sentence."""

    confidences: Annotated[bool, Option("--confidences", help="Marginals of arcs, or estimates, in MISC")] = False
    calibration: Annotated[Path | None, Option(help="--confidences: calibrated by this, from certus calibrate")] = None
    certificates: Annotated[bool, Option("--certificates", help="Score, bound, proof and digests in comments")] = False
    kbest: KBest = None
    save_results: Annotated[
        Path | None, Option(help="Folder for problem, tree and certificate of each sentence, for certus verify")
    ] = None
    time_limit: TimeLimit = None
    format: Annotated[
        Form, Option(help="CoNLL-U, or drawings of the trees; with --output, Parquet, a row a token or a sentence")
    ] = Form.conllu
    json: JsonLines = False

    @property
    def plain(self) -> bool:
        """Whether it is trees in CoNLL-U and nothing else."""
        more = self.confidences or self.certificates or self.save_results or self.json or self.kbest is not None
        return not more and self.format is Form.conllu


@dataclass(frozen=True)
class Corpus:
    """Files in, files out."""

    output: Annotated[Path | None, Option(help="Folder for a file of output for each file of input")] = None
    engine: Annotated[EngineName | None, Option(help="--output: where files are parsed", show_default="threads")] = None
    address: Annotated[str | None, Option(help="--engine ray: of a cluster, instead of this machine")] = None
    again: Annotated[bool, Option("--again", help="--output: parse files too that are done already")] = False


def parse(
    wanted: Wanted,
    corpus: Corpus,
    inputs: FilesOrText = None,
    model: ParserModel = "en",
    add: Annotated[str | None, Option(help="Folder of a network: trees best by the scores of both")] = None,
    scale: Annotated[float, Option(help="--add: what the scores of the network count")] = 1.0,
    conllu: Conllu = False,
    lines: Lines = False,
    tokenised: Tokenised = False,
    workers: Annotated[int | None, Option(min=1, help="Threads, or processes", show_default="all processors")] = None,
) -> int:
    """Parse text, files or stdin into dependency trees.

    Files that end in .conllu (or .conllu.gz) keep their words, tags and comments; text is split into sentences and
    words. For phrase structure there is certus constituents. With --kbest every sentence is printed as often as it has
    trees, best first, with rank and score in comments.

    With --output every file, and every file of a folder or a pattern, is parsed into a file of that folder, whole or
    not at all; a run that was broken off goes on where it was.
    """
    if corpus.output is not None:
        if add or conllu:
            raise InvalidInput("--add and --conllu do not go with --output.")
        return _parse_files(inputs or [], corpus, wanted, model, {"tokenised": tokenised, "lines": lines}, workers)
    if corpus != Corpus() or wanted.format in PARQUET:
        raise InvalidInput("--engine, --address, --again and Parquet are for files: give a folder with --output.")
    pipeline = load(model, add=add, scale=scale)
    streams = byte_streams(inputs or [], conllu=conllu) if wanted.plain and not sys.stdout.isatty() else None
    if streams is not None:
        limits = {"time_limit": wanted.time_limit, "workers": workers}
        _rewrite(streams, pipeline, {"tokenised": tokenised, "lines": lines}, limits)
        return 0
    sentences = read_sentences(inputs or [], conllu=conllu, tokenised=tokenised, lines=lines)
    if wanted.calibration is not None:
        pipeline = replace(pipeline, calibration=Calibration.load(wanted.calibration))
    _print_trees(_found(sentences, pipeline, wanted, workers), pipeline, wanted)
    return 0


def _parse_files(
    inputs: list[str], corpus: Corpus, wanted: Wanted, model: str, reading: dict[str, Any], workers: int | None
) -> int:
    """Files in, files out; returns the exit code."""
    from certus.cli.corpus_run import parse_corpus

    if wanted.calibration or wanted.kbest is not None or wanted.save_results:
        raise InvalidInput("--calibration, --kbest and --save-results do not go with --output.")
    assert corpus.output is not None
    settings = reading | {"confidences": wanted.confidences, "certificates": wanted.certificates}
    return parse_corpus(
        inputs,
        corpus.output,
        settings | {"format": str(wanted.format), "time_limit": wanted.time_limit},
        model=model,
        engine=str(corpus.engine or EngineName.threads),
        workers=workers,
        address=corpus.address,
        again=corpus.again,
        json=wanted.json,
    )


def _found(
    sentences: Iterator[Sentence], pipeline: Pipeline, wanted: Wanted, workers: int | None
) -> Iterator[list[Parsed]]:
    """The trees of each sentence."""
    if wanted.kbest is None:
        options: Any = {"confidences": wanted.confidences, "time_limit": wanted.time_limit}
        results = pipeline.results(sentences, **options, certificates=wanted.certificates, workers=workers)
        return ([parsed] for parsed in results)
    if wanted.confidences or wanted.time_limit is not None or wanted.save_results is not None:
        raise InvalidInput(
            "--confidences, --time-limit and --save-results are for the best tree: leave them out, or --kbest."
        )
    return pipeline.kbest(sentences, wanted.kbest, certificates=wanted.certificates, workers=workers)


def _print_trees(lists: Iterator[list[Parsed]], pipeline: Pipeline, wanted: Wanted) -> None:
    checked = _checked(lists)
    if wanted.save_results is not None:
        checked = _saved(checked, pipeline, wanted.save_results)
    if wanted.json or wanted.format is Form.conllu:
        for parsed in checked:
            print_json(_fields(parsed)) if wanted.json else print(parsed.annotated(), end="")
    else:
        print_drawings(wanted.format, ((p.annotated().picture(), p.certificate.in_words()) for p in checked))


def _rewrite(
    streams: Iterator[tuple[str, BinaryIO, bool]], pipeline: Pipeline, reading: dict[str, bool], limits: dict[str, Any]
) -> None:
    """Files in, CoNLL-U out; what is printed is what sentences one by one would print, and so are complaints."""
    pieces = (
        piece
        for name, stream, conllu in streams
        for piece in (
            rewritten(pipeline, stream, name, **limits)
            if conllu
            else written(pipeline, stream, name, **reading, **limits)
        )
    )
    before = 0
    for piece in watched(pieces, "parsing"):
        for place, name, certificate in piece.unproved:
            _complain(before + place + 1, name, "", certificate)
        before += piece.sentences
        print(piece.text, end="")


def _checked(lists: Iterator[list[Parsed]]) -> Iterator[Parsed]:
    """The trees of each sentence, as they come; those that are not proved are complained of."""
    for number, trees in enumerate(watched(lists, "parsing"), start=1):
        for parsed in trees:
            proof = parsed.certificate
            if not proof.exact:
                rank = "" if parsed.rank is None else f", tree {parsed.rank}"
                _complain(number, parsed.sentence.comment("sent_id"), rank, proof)
            yield parsed


def _complain(number: int, name: str | None, rank: str, proof: Certificate) -> None:
    complain(
        f"sentence {number}{f' ({name})' if name else ''}{rank}: not proved optimal, {proof.reason}; "
        f"a better tree could score {proof.gap:.6g} more."
    )


def _saved(found: Iterator[Parsed], pipeline: Pipeline, folder: Path) -> Iterator[Parsed]:
    """The best trees, as they come, each saved with its problem and certificate."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, parsed in enumerate(found, start=1):
        problem, result, source = pipeline.parser.saved(parsed)
        certus.save_result(folder / f"{number:06d}.json", problem, result, source=source)
        yield parsed


def _fields(parsed: Parsed) -> dict[str, Any]:
    sentence, proof = parsed.sentence, parsed.proof
    columns = ("form", "lemma", "upos", "xpos", "head", "deprel")
    tokens: list[dict[str, Any]] = [{name: getattr(token, name) for name in columns} for token in sentence]
    if parsed.confidence is not None:
        for shown, share in zip(tokens, parsed.confidence.share, strict=True):
            shown["confidence"] = share
    data: dict[str, Any] = {"sent_id": sentence.comment("sent_id"), "tokens": tokens}
    if parsed.rank is not None:
        c = parsed.certificate
        data |= {"rank": parsed.rank, "score": c.score, "exact": c.exact}
    if parsed.confidence is not None and not parsed.confidence.exact:
        data["confidences"] = {key: value for key, value in asdict(parsed.confidence).items() if key != "share"}
    if proof is not None:
        c = proof.certificate
        data |= {"score": c.score, "bound": c.bound, "kind": c.kind, "exact": c.exact, "reason": c.reason}
        data["units"] = {"score": proof.units[0], "bound": proof.units[1], "unit": proof.unit}
        root = "single" if proof.single else "multi"
        data["scope"] = {"projective": proof.projective, "root": root, "kept": proof.kept, "arcs": proof.arcs}
        data |= {"model_digest": proof.model, "problem_digest": proof.problem}
    return data
