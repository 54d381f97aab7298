"""Plain English text to sentences of words, by rules, in one of three styles.

"web"
    In the manner of the English Web Treebank: sentences are found, clitics set off (do n't, it 's), hyphens split
    compounds but not prefixes (well - known, co-workers).
"penn"
    In the manner of the Penn Treebank, lightly: every line is a sentence; punctuation at the edges of what stands
    between blanks and clitics are set off, and nothing else is split.
"blank"
    Text that is tokenised already: every line is a sentence, and words are separated by blanks.

Every word is a piece of the text as it stands, and nothing but white space is dropped.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from certus.checks import one_of
from certus.errors import InvalidInput


class TextSpan(NamedTuple):
    """A word and where it stands: ``text[start:end] == form``."""

    form: str
    start: int
    end: int


def tokenize(text: str, *, style: str = "web") -> list[list[str]]:
    """Sentences of words; the style is "web", "penn" or "blank".

    >>> tokenize("Mr. Fry can't come. He's ill!")
    [['Mr.', 'Fry', 'ca', "n't", 'come', '.'], ['He', "'s", 'ill', '!']]
    >>> tokenize("(Don't!) Well-known.", style="penn")
    [['(', 'Do', "n't", '!', ')', 'Well-known', '.']]
    """
    return [[span.form for span in sentence] for sentence in tokenize_spans(text, style=style)]


def tokenize_spans(text: str, *, style: str = "web") -> list[list[TextSpan]]:
    """Sentences of words with their places in the text; white space belongs to no word, all else to just one."""
    if not isinstance(text, str):
        raise InvalidInput(f"text is {type(text).__name__}; expected a string.")
    one_of("style", style, tuple(_STYLES))
    return list(_STYLES[style](text))


# -- lines: the Penn Treebank, and text that is tokenised ------------------------------------------------------------

_LINE = re.compile(r"[^\n]+")
_CHUNK = re.compile(r"\S+")
_OPENING = re.compile(r"``|''|[(\[{<\"'`“‘«¿¡$£€#]")
_CLOSING_MARK = re.compile(r"(?:\.\.\.|''|[)\]}>\"'”’»,;:?!%.…])$")
_KEPT_PERIOD = re.compile(
    r"(?:[A-Za-z]\.)+|(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Inc|Corp|Ltd|Co|vs|etc|No|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec)\."
)
_CLITIC_AFTER = re.compile(r"(?i)(.*?)(n['’]t|['’](?:s|m|d|ll|re|ve))")


def _by_lines(text: str, split: Callable[[str], Iterable[str]]) -> Iterator[list[TextSpan]]:
    """Every line that is not blank; ``split`` cuts what stands between blanks into words."""
    for line in _LINE.finditer(text):
        words = []
        for chunk in _CHUNK.finditer(text, *line.span()):
            at = chunk.start()
            for form in split(chunk[0]):
                words.append(TextSpan(form, at, at + len(form)))
                at += len(form)
        if words:
            yield words


def _penn_words(chunk: str) -> list[str]:
    """Periods stay with initials and common abbreviations; numbers, dates, hyphens and addresses stay whole."""
    before: list[str] = []
    after: list[str] = []
    while (mark := _OPENING.match(chunk)) and mark[0] != chunk and not _CLITIC_AFTER.fullmatch(chunk):
        before.append(mark[0])
        chunk = chunk[mark.end() :]
    while (mark := _CLOSING_MARK.search(chunk)) and mark[0] != chunk and not _KEPT_PERIOD.fullmatch(chunk):
        after.append(mark[0])
        chunk = chunk[: mark.start()]
    clitic = _CLITIC_AFTER.fullmatch(chunk)
    middle = [part for part in clitic.groups() if part] if clitic else [chunk]
    return before + middle + after[::-1]


# -- the English Web Treebank ----------------------------------------------------------------------------------------


_TITLES = "Mr|Mrs|Ms|Dr|Prof|St|Gen|Lt|Col|Sgt|Capt|Maj|Cpl|Adm|Rev|Hon|Gov|Sen|Rep|Reps|Sens|Pres|Fr|Sr|Mt|Ft|Messrs"
_BEFORE_NAMES = rf"{_TITLES}|No|Nos|Vol|Sec|Fig|vs|v|Attn|cf|viz|approx|ca"
_OTHERS = (
    "Jr|Inc|Corp|Ltd|Co|Bros|Ph|etc|eg|ie|al|est|ext|dept|Dept|Univ|Ave|Blvd|Rd|Hwy|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|"
    "Oct|Nov|Dec|Mon|Tues?|Wed|Thurs?|Fri|Sat|lbs?|oz|yrs?|hrs?|Va|Calif|Conn|Tenn|Mass|Ariz|Ala|Fla|Ga|Ill|Pa|Que|Ont"
)
_DOMAIN = "com|org|net|edu|gov|mil|info|biz|co|uk|de|fr|ca|au|us|tv|eu|int|in|ru|jp|cn|html?|php|asp"
_FILE = "docx?|xlsx?|pptx?|pdf|txt|jpe?g|gif|png|zip|html?|mp3|csv|exe"
_PREFIX = (
    "e|co|non|pre|post|anti|pro|ex|re|mid|multi|semi|inter|intra|sub|super|ultra|un|mini|micro|neo|pan|quasi|counter|"
    "bi|tri|de|pseudo|over|under|psycho|socio|trans|extra|mega|cyber"
)
_UNIT = "am|pm|a\\.m\\.|p\\.m\\.|k|m|mm|cm|km|kg|mg|g|ft|lbs?|oz|mph|hrs?|mins?|yrs?|x|gb|mb|ghz|mhz|bn|b|w|v"
_CLITIC = "['’`´](?:s|m|d|ll|re|ve)"

# The kinds of words, tried in this order at each place. Repetition before a mark that may be missing has a limit, so
# that no text takes more than linear time.
_WORD = re.compile(
    rf"""
      (?P<address> (?:https?|ftp|file)://[^\s<>"]+ | www\.[^\s<>"]+
          | (?i:mailto:)?[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,9}}
          | [A-Za-z0-9][\w-]{{0,62}}(?:\.[\w-]{{1,63}}){{0,9}}\.(?i:{_DOMAIN})\b(?:/[^\s<>"]*)?(?!\.?\w)
          | [\w#-]{{1,63}}(?:\.[\w#-]{{1,63}}){{0,3}}\.(?i:{_FILE})\b
          | [a-z]{{1,63}}(?:\.[a-z][a-z-]{{1,63}}){{2,9}}(?!\w) )
    | (?P<face> [:;=8][-^o'*]?[)(\]\[DPpOo3|\\/*]+(?!\w)
          | [)(]{{1,8}}-?[:;](?!\w) | <3+(?!\d) | \^_{{1,8}}\^ | [xX]D\b )
    | (?P<period> (?:[A-Za-z]\.){{2,}}(?!\w) | (?:{_BEFORE_NAMES}|{_OTHERS})\.(?![\w]) | [A-Z]\.(?=\s+[A-Z][\w.]) )
    | (?P<figure> (?<![\w-])(?:\+?\d{{1,2}}[-.])?(?:\(?\d{{3}}\)?[-.])?\d{{3}}[-.]\d{{4}}(?![\w-])
          | (?<!\w)\d{{1,2}}/\d{{1,2}}(?:/\d{{2,4}})?(?![\w/]) | (?<![\w-])\d{{1,4}}-\d{{1,2}}-\d{{2,4}}(?![\w-])
          | \d+(?i:st|nd|rd|th|s)\b
          | (?:\d+(?:[.,:]\d+)*|[.,]\d+)(?=(?i:{_UNIT})\b)
          | (?:\d+(?:[.,:]\d+)*|(?<![\w.])\.\d+)(?![A-Za-z\d]) )
    | (?P<clitic> {_CLITIC}\b | [nN]['’`´][tT]\b )
    | (?P<prefixed> (?<![\w-])(?i:{_PREFIX})-[^\W\d_][\w]*(?:-?[^\W\d_]\w*)?? (?=\W|$) )
    | (?P<brief> \b(?:[A-Z]&[A-Z]|[bB]/[cC]|[lL]/[cC]|[wW]/[oO])\b | \b[wW]/(?=\s|\Z) )
    | (?P<letters> \w+? (?=[nN]['’`´][tT]\b) | \w+(?:['’](?!(?i:s|m|d|ll|re|ve|t)\b)(?=[a-zA-Z]{{2}})\w+)? )
    | (?P<run> \.{{2,}} | [!?]+ | \${{2,}} | (?P<same>[-*=_~+\#<>^|])(?P=same)* | '' | `` )
    | (?P<mark> \S )
    """,
    re.VERBOSE,
)
_PLAIN = re.compile(r"\s*([^\W\d_]+)(?=\s|\Z)")  # letters up to the next blank: all kinds of words agree about these
_BLANKS = re.compile(r"\s*")
_NO_APOSTROPHE = re.compile(r"(?i)(do|does|did|wo|ca|would|could|should|is|was|were|are|have|has|had)(nt)")
_FUSED = {"cannot": 3, "gonna": 3, "wanna": 3, "gotta": 3, "gimme": 3, "lemme": 3, "im": 1, "ive": 1, "dunno": 2}
_END = re.compile(r"(?:[.!?…]+|\.{2,})")
_CLOSING = frozenset("\"'”’)]}»") | {"''"}
_NO_END = re.compile(rf"(?:{_BEFORE_NAMES}|[A-Z])\.|(?:e\.g|i\.e)\.")
_STARTER = re.compile(
    "The|This|That|These|Those|There|It|He|She|We|They|I|You|An?|In|On|At|If|When|But|And|So|For|As|My|Our|His|Her|"
    "Their|What|Why|How|Who|Where|Please|However|Also"
)
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")


def _web_sentences(text: str) -> Iterator[list[TextSpan]]:
    """A sentence ends at a full stop, question or exclamation mark, with the quotes and brackets that close after it,
    unless what follows shows that it goes on; and at an empty line. As in web text, small letters after a single full
    stop do not show that; after dots, quotes and abbreviations they do.
    """
    start = 0
    for gap in [*_PARAGRAPH.finditer(text), None]:
        end = gap.start() if gap else len(text)
        yield from _sentences(list(_words(text, start, end)))
        start = gap.end() if gap else end


def _words(text: str, start: int, end: int) -> Iterator[TextSpan]:
    """The words of text[start:end]."""
    while start < end:
        if found := _PLAIN.match(text, start, end):
            form, start, kind = found[1], found.start(1), "letters"
        else:
            start = _BLANKS.match(text, start, end).end()  # type: ignore[union-attr]
            found = _WORD.match(text, start, end)
            if found is None:  # nothing is left
                return
            form, kind = found[0], found.lastgroup or ""
        if kind == "address":
            form = _without_marks_after(form)
        cut = _cut(form) if kind == "letters" else 0
        if cut:
            yield TextSpan(form[:cut], start, start + cut)
        yield TextSpan(form[cut:], start + cut, start + len(form))
        start += len(form)


@lru_cache(maxsize=1 << 16)
def _cut(form: str) -> int:
    """Where a word written as one falls into two; 0 if it does not."""
    if found := _NO_APOSTROPHE.fullmatch(form):
        return found.end(1)
    return _FUSED.get(form.lower(), 0)


def _without_marks_after(address: str) -> str:
    """An address without the punctuation of the sentence around it."""
    kept = address.rstrip(".,;:!?'\"”’*")
    while kept.endswith(")") and kept.count("(") < kept.count(")"):
        kept = kept[:-1].rstrip(".,;:!?'\"”’*")
    return kept or address


# What the ends of sentences are found by, bits of ``marks``: a word ends sentences, closes quotes or brackets, goes on
# with one (a comma), is a single full stop, is dots; its first character is a letter, a letter or digit, a large or a
# small letter; it is one that begins sentences after abbreviations.
ENDS, CLOSES, GOES_ON, STOP, DOTS, ALPHA, ALNUM, UPPER, LOWER, STARTS = (1 << k for k in range(10))


@lru_cache(maxsize=1 << 16)
def marks(form: str) -> int:
    """What matters of a word for where sentences end."""
    first = form[0]
    return sum(
        bit
        for bit, found in (
            (ENDS, _may_end(form)),
            (CLOSES, form in _CLOSING),
            (GOES_ON, first in ",;:)]}-–%"),
            (STOP, form == "." or form == "…"),
            (DOTS, first == "…" or form.startswith("..")),
            (ALPHA, first.isalpha()),
            (ALNUM, first.isalnum()),
            (UPPER, first.isupper()),
            (LOWER, first.islower()),
            (STARTS, _STARTER.fullmatch(form) is not None),
        )
        if found
    )


def _may_end(form: str) -> bool:
    if form[-1] not in ".!?…":
        return False
    if _END.fullmatch(form):
        return True
    return len(form) > 2 and form[-1] == "." and form[0].isalpha() and not _NO_END.fullmatch(form)


def _sentences(words: list[TextSpan]) -> list[list[TextSpan]]:
    """Cut a paragraph at the ends of sentences; kernels.tokens.cut_sentences does the same."""
    mark = [marks(word.form) for word in words]
    sentences: list[list[TextSpan]] = []
    begin = 0
    k = 0
    while k < len(words):
        last = k
        if mark[k] & ENDS:
            while last + 1 < len(words) and mark[last + 1] & CLOSES and _touch(words, last):
                last += 1
            if last + 1 < len(words) and _may_begin(mark[last], mark[last + 1], _touch(words, last)):
                sentences.append(words[begin : last + 1])
                begin = last + 1
        k = last + 1
    if begin < len(words):
        sentences.append(words[begin:])
    return sentences


def _touch(words: list[TextSpan], k: int) -> bool:
    return words[k].end == words[k + 1].start


def _may_begin(form: int, following: int, touch: bool) -> bool:
    """Whether a sentence may begin with a word after one that may end one, by their marks."""
    if following & GOES_ON:
        return False
    if touch and form & STOP and following & ALNUM:
        return bool(following & UPPER)
    if form & ALPHA:  # an abbreviation
        return bool(following & STARTS)
    if form & DOTS:
        return bool(following & UPPER)
    return not (following & LOWER and (form & CLOSES or touch))


def chunk_words(text: str, *, style: str = "web") -> list[str]:
    """The words of the first chunk of a text, that is of what stands before its first blank.

    They depend on what follows only if the chunk ends in a large letter and a full stop: then on the next chunk, and on
    no more.
    """
    size = len(text.split(maxsplit=1)[0])
    if style == "blank":
        return [text[:size]]
    return [word.form for word in takewhile(lambda word: word.start < size, _words(text, 0, len(text)))]


_STYLES: dict[str, Callable[[str], Iterable[list[TextSpan]]]] = {
    "web": _web_sentences,
    "penn": lambda text: _by_lines(text, _penn_words),
    "blank": lambda text: _by_lines(text, lambda chunk: (chunk,)),
}
