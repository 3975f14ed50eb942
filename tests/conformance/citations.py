"""Compares the project's citations with the entries of docs/ambiguities.md."""

import re

import coverage

AMBIGUITIES = "docs/ambiguities.md"
# A document's name, a letter, two digits: the ids of the ambiguities, and of rows from the RFCs' appendices.
ID = re.compile(r"\b[A-Z][A-Z0-9]*-[A-Z]-[0-9]{2}\b")
ENTRY = re.compile(r"^\*\*(" + ID.pattern + r")\*\*", re.MULTILINE)
# An id without its document, which means something to its author alone.
BARE = re.compile(r"\b[Nn]otes? [A-Z]-[0-9]{2}\b")
SUFFIXES = {".cc", ".h", ".md", ".py", ".sh", ".tsv", ".txt", ""}


def sources(root):
    for top in sorted(root.iterdir()):
        if top.name.startswith(".") or top.name == "build":
            continue
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def wrong_citations(rows, root=coverage.ROOT):
    """A line for each id that stands nowhere, each entry that nothing cites, and each id that is used twice."""
    document = root / AMBIGUITIES
    entries = ENTRY.findall(document.read_text(encoding="utf-8"))
    found = [f"{AMBIGUITIES}: {entry} is there twice" for entry in sorted(set(entries)) if entries.count(entry) > 1]
    found += [f"{AMBIGUITIES}: {entry} is a requirement row's id, too" for entry in sorted(set(entries) & set(rows))]
    cited = set()
    for path in sources(root):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            place = f"{path.relative_to(root)}:{number}"
            ids = set(ID.findall(line))
            found += [f"{place}: {an_id} is neither in {AMBIGUITIES} nor a requirement row"
                      for an_id in sorted(ids - set(entries) - set(rows))]
            found += [f"{place}: \"{bare}\" does not say of which document; see {AMBIGUITIES}"
                      for bare in BARE.findall(line)]
            if path != document:
                cited |= ids
    found += [f"{AMBIGUITIES}: nothing cites {entry}" for entry in sorted(set(entries) - cited)]
    return found
