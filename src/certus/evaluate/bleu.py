"""BLEU and chrF of translations, by sacrebleu, which the extra ``mt`` installs."""

from collections.abc import Sequence
from dataclasses import dataclass

from certus.errors import InvalidInput
from certus.evaluate.percent import Scores


@dataclass(frozen=True, slots=True)
class TranslationScores:
    """Scores of a corpus, and sacrebleu's signature of how BLEU was computed."""

    sentences: int
    bleu: float
    brevity_penalty: float
    chrf: float
    signature: str

    @classmethod
    def of(cls, references: Sequence[str], outputs: Sequence[str], *, tokenizer: str = "13a") -> "TranslationScores":
        """Scores of outputs against one reference each, with one of sacrebleu's tokenisers; "none" for tokenised text.

        Raises
        ------
        InvalidInput : sacrebleu is not installed, or has no such tokeniser; the numbers of sentences differ.
        """
        try:
            from sacrebleu.metrics.bleu import BLEU
            from sacrebleu.metrics.chrf import CHRF
        except ImportError:
            raise InvalidInput(
                "BLEU needs the package sacrebleu, which is not installed; install it with: pip install 'certus[mt]'"
            ) from None
        if tokenizer not in BLEU.TOKENIZERS:
            raise InvalidInput(f"sacrebleu has no tokenizer {tokenizer!r}; it has {', '.join(BLEU.TOKENIZERS)}.")
        if len(references) != len(outputs):
            raise InvalidInput(f"{len(outputs)} translations, but {len(references)} references; give one for each.")
        metric = BLEU(tokenize=tokenizer, force=True)
        score = metric.corpus_score(outputs, [references])
        chrf = CHRF().corpus_score(outputs, [references])
        signature = str(metric.get_signature())
        return cls(len(references), float(score.score), float(score.bp), float(chrf.score), signature)

    def scores(self) -> Scores:
        """By name, without the signature."""
        return {
            "sentences": self.sentences,
            "BLEU": self.bleu,
            "brevity penalty": self.brevity_penalty,
            "chrF": self.chrf,
        }
