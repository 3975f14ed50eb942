"""What differs from run to run in an output, and the comparison of two outputs but for that.

A value of a `any` kind may be another one. A value of a `same` kind may be another one as well, but throughout the
chapter the same one of the run stands for the same one of the text: an STag that the text shows twice has to be twice
the same in the run, and two that differ in the text differ in the run.
"""
import re

ANY, SAME = "any", "same"

KINDS = {
    "time": (ANY, r"(?m)^ *\d+\.\d{6}(?= )"),  # seconds at the beginning of a line
    "duration": (ANY, r" *\+?\d+(?:\.\d+)? (?:ns|us|ms|s)\b"),
    "waits": (ANY, r"spun\b|slept in (?:less than 1|\d+)% of its waits"),  # how a measuring command waited
    "shaft": (ANY, r"-{2,}"),  # of an arrow, whose length follows the words on it
    "rate": (ANY, r" *\d+(?:[.,]\d+)* (?:[kMG]?B|op)/s"),
    "port": (SAME, r"(?<=127\.0\.0\.1:)[3-6]\d{4}\b"),  # one that the kernel chose
    "handle": (SAME, r"\b0x[0-9a-f]{8}\b"),  # an STag or an XID
    "address": (SAME, r"(?<=TO )0x[0-9a-f]+"),  # of memory: a tagged offset
    "fh": (SAME, r"(?<=fh )[0-9a-f]{8}\b"),  # an NFS file handle, shortened
}


class Comparison:
    """Remembers which value of the run stands for which value of the text, throughout a chapter."""

    def __init__(self):
        self._run_of, self._text_of = {}, {}

    def difference(self, text, run, kinds):
        """Returns why two outputs differ, or an empty string. text, run: lists of lines."""
        for number, (expected, got) in enumerate(zip(text, run), 1):
            why = self._line_difference(expected, got, kinds)
            if why:
                return f"line {number} of the output: {why}\n  the text has  {expected}\n  the run has   {got}"
        if len(text) > len(run):
            return f"the run has {len(run)} lines, the text goes on:\n  the text has  {text[len(run)]}"
        if len(run) > len(text):
            return f"the text has {len(text)} lines, the run goes on:\n  the run has   {run[len(text)]}"
        return ""

    def _line_difference(self, text, run, kinds):
        text_words, text_values = split(text, kinds)
        run_words, run_values = split(run, kinds)
        if text_words != run_words:
            return "other words"
        for (kind, expected), (_, got) in zip(text_values, run_values):
            if KINDS[kind][0] == ANY:
                continue
            if self._run_of.setdefault((kind, expected), got) != got:
                return f"{kind} {expected} was {self._run_of[kind, expected]} in this run, and is {got}"
            if self._text_of.setdefault((kind, got), expected) != expected:
                return f"{kind} {got} stood for {self._text_of[kind, got]}, and stands for {expected}"
        return ""


def split(line, kinds):
    """The line without its varying values, and the values: pairs of kind and text."""
    if not kinds:
        return line, []
    named = re.compile("(?m)" + "|".join(f"(?P<{kind}>{KINDS[kind][1].removeprefix('(?m)')})" for kind in kinds))
    values = [(match.lastgroup, match.group()) for match in named.finditer(line)]
    return named.sub(lambda match: f"\0{match.lastgroup}\0", line), values
