"""UDPipe 1 by its Python binding, a peer: its sentences from files, its models. Needs ufal.udpipe."""

import gzip
from pathlib import Path
from typing import Any

from certus.errors import InvalidInput


def sentences(path: Path) -> Any:
    """The sentences of a CoNLL-U file, gzipped."""
    import ufal.udpipe as udpipe

    reader = udpipe.InputFormat.newConlluInputFormat()
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        reader.setText(stream.read())
    found, error, sentence = udpipe.Sentences(), udpipe.ProcessingError(), udpipe.Sentence()
    while reader.nextSentence(sentence, error):
        found.append(sentence)
        sentence = udpipe.Sentence()
    return found


def model(file: Path, train: Path, dev: Path | None, tagger: str, parser: str) -> Any:
    """The model of a file, which is trained and written first if it is not there."""
    import ufal.udpipe as udpipe

    if not file.exists():
        error = udpipe.ProcessingError()
        held_out = udpipe.Sentences() if dev is None else sentences(dev)
        made = udpipe.Trainer.train("morphodita_parsito", sentences(train), held_out, "none", tagger, parser, error)
        if error.occurred():
            raise InvalidInput(f"UDPipe cannot be trained: {error.message}.")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(made)
    return udpipe.Model.load(str(file))
