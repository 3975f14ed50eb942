#!/usr/bin/env python3
"""Makes copies of the encoders with the faults of faults.tsv in them, and a table of the faults.

Usage: plant.py ROOT FOLDER      ROOT/FILE becomes FOLDER/FILE for each file that faults.tsv names; FOLDER/faults.inc
                                 is the table as initializers in C++
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEAD = '#include "tests/wire_v2/planted/planted.h"\n'


def main():
    root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    lines = (HERE / "faults.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    texts, table = {}, []
    for number, (file, right, wrong, rules, words) in enumerate(rows, 1):
        text = texts.setdefault(file, (root / file).read_text(encoding="utf-8"))
        if text.count(right) != 1 or "PLANTED" not in wrong:
            sys.exit(f"faults.tsv: fault {number}: {file} has {text.count(right)} times: {right}")
        texts[file] = text.replace(right, wrong.replace("PLANTED", f"weft::wire_v2::planted({number})"))
        table.append(f'{{{number}, "{rules}", "{words}"}},\n')
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(HEAD + text, encoding="utf-8")
    (folder / "faults.inc").write_text("".join(table), encoding="utf-8")


main()
