#!/usr/bin/env python3
"""docs/security.md has the rows that the code describes (LedgerKind of base/ledger.h).

  security.py ROWS            fails where the file has another row, or none, of a name
  security.py ROWS --update   writes these rows into the file

ROWS is the program ledger_rows. A row that is new gets its place by hand: its name and empty cells suffice.
"""
import pathlib
import re
import subprocess
import sys

DOC = pathlib.Path(__file__).resolve().parents[2] / "docs" / "security.md"


def name_of(row):
    """The first cell of a row of a table; None for other lines."""
    found = re.match(r"\| (.+?) \|", row)
    return found and found[1]


def main():
    rows = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines()
    lines = DOC.read_text().splitlines()
    wrong = []
    for row in rows:
        places = [number for number, line in enumerate(lines) if name_of(line) == name_of(row)]
        if len(places) != 1:
            sys.exit(f"{DOC.name} has {len(places)} rows '{name_of(row)}', and the code describes one")
        if lines[places[0]] != row:
            wrong.append(name_of(row))
            lines[places[0]] = row
    if "--update" in sys.argv[2:]:
        DOC.write_text("\n".join(lines) + "\n")
    elif wrong:
        sys.exit(f"{DOC.name} differs from the code, which describes these rows: {', '.join(wrong)}\n"
                 f"tests/docs/security.py {sys.argv[1]} --update writes them")
    print(f"{len(rows)} rows of {DOC.name} are as the code describes them")


main()
