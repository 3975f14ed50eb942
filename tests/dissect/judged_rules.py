"""Holds judged_rules.tsv against the requirement tables and the sources of `weft dissect`.

judged_rules.py: exit status 1 and a line for each failure. Each MUST and MUST NOT of the tables has one row, and no other
requirement has one. A row is "judged" where the sources name it, or where it is named by another row that they name.
"""

import collections
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLES = ["mpa", "mpa2", "ddp", "rdmap", "rdmap-ext", "rdma-security", "rpcrdma1", "rpcrdma2", "rpcrdma2-wg", "nfsulb1",
          "nfsulb2"]
VERDICTS = {"judged", "unseen", "left"}
ID = re.compile(r"\b(?:MPA2?|DDP|RDMAP|EXT|SEC|R1|R2|W2|U1|U2)-[\dA-Z][\d.]*-\d+\b")


def levels():
    """The level of each requirement."""
    rows = [line.split("\t") for table in TABLES
            for line in (ROOT / f"tests/conformance/tables/{table}.tsv").read_text().splitlines()[1:]]
    return {row[0]: row[2] for row in rows}


def named():
    """The requirements in the texts of the program: those of the dissector, and those that Terminates are told with."""
    files = [*(ROOT / "apps/dissect").glob("*.cc"), ROOT / "rdmap/diagnosis.cc"]
    texts = [re.sub(r"//.*", "", file.read_text()) for file in files if not file.name.endswith("_test.cc")]
    return {requirement for text in texts for string in re.findall(r'"([^"\n]*)"', text)
            for requirement in ID.findall(string)}


def faults():
    level, in_sources, rows = levels(), named(), {}
    for line in (HERE / "judged_rules.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        requirement, verdict, *text = line.split("\t")
        if requirement in rows or verdict not in VERDICTS:
            yield f"{requirement}: twice, or with the verdict {verdict}"
        rows[requirement] = verdict, "".join(text)
    for requirement in sorted({one for one in level if level[one].startswith("MUST")} ^ rows.keys()):
        yield f"{requirement}: in one of judged_rules.tsv and the tables"
    for requirement in sorted(in_sources - level.keys()):
        yield f"{requirement}: in the sources, and in no table"
    for requirement, (verdict, text) in rows.items():
        if requirement in in_sources and (verdict, text) != ("judged", ""):
            yield f"{requirement}: the sources name it, and its row says {verdict} {text}"
        other = text.removeprefix("as ")
        if verdict == "judged" and requirement not in in_sources and other not in in_sources:
            yield f"{requirement}: judged, and the sources name neither it nor {other}"
        if verdict != "judged" and not text:
            yield f"{requirement}: {verdict} without a reason"
    counts = collections.Counter(verdict for verdict, _ in rows.values())
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in ("judged", "unseen", "left")))


if __name__ == "__main__":
    sys.exit("\n".join(faults()) or 0)
