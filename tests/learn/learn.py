#!/usr/bin/env -S python3 -B
"""Runs the commands of a chapter of docs/learn and compares their output with the text.

learn.py WEFT CHAPTER           CHAPTER: a name in docs/learn, without .md, or all
learn.py WEFT CHAPTER --update  writes the outputs of this run into the chapter, where they differ from the text

Each chapter has a network namespace and a directory of its own, and begins with the set-up that docs/learn/README.md
shows. blocks.py describes the notation of a chapter, varying.py the values that may differ from run to run.
"""
import os
import pathlib
import sys
import tempfile

import blocks
import shell
import varying

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
import own_network  # noqa: E402

CHAPTERS = ROOT / "docs/learn"
SET_UP = "README"
WITHOUT_COMMANDS = {"10-answers"}  # gallery.py checks these
TIMEOUT = 60  # seconds, of a command


def run(parts, bash, comparison, name, update):
    """Runs all commands. Returns what went wrong; with update, puts the outputs of this run into the parts."""
    faults = []
    commands = blocks.commands_of(parts)
    if not commands:
        faults.append(f"{name}: no command at all")
    for command in commands:
        where = f"{name}:{command.line}: {command.text}"
        unknown = [kind for kind in command.varies if kind not in varying.KINDS]
        if unknown:
            faults.append(f"{where}\n  nothing called {unknown[0]} varies")
            break
        try:
            output, status = bash.run(command.text, TIMEOUT)
        except shell.Hung as hung:
            faults.append(f"{where}\n  {hung}")
            break
        if status != command.status:
            faults.append(f"{where}\n  status {status} instead of {command.status}\n" + "\n".join(output))
            break
        why = comparison.difference(command.output, output, command.varies)
        if not why:
            continue
        if update:
            command.output = output
        else:
            faults.append(f"{where}\n  {why}")
    return faults


def clone_like(directory, weft):
    """A directory in which the paths of a clone with a release build lead where a reader's lead."""
    clone = pathlib.Path(directory) / "clone"
    (clone / "build/release/apps").mkdir(parents=True)
    (clone / "build/release/apps/weft").symlink_to(pathlib.Path(weft).resolve())
    (clone / "docs").symlink_to(ROOT / "docs")
    return clone


def run_chapter(text, name, set_up, weft, update=False):
    """Returns the faults, and the chapter with its outputs. set_up: text with the commands that come first."""
    parts = blocks.parse(text, name)
    with tempfile.TemporaryDirectory(prefix="weft-learn-") as directory:
        home = pathlib.Path(directory) / "home"
        home.mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
        bash = shell.Shell(clone_like(directory, weft), environment)
        try:
            faults = [] if set_up is None else run(blocks.parse(set_up, SET_UP), bash, varying.Comparison(), SET_UP, False)
            if not faults:
                faults = run(parts, bash, varying.Comparison(), name, update)
        finally:
            bash.close()
    return faults, blocks.emit(parts)


def run_file(chapter, weft, update):
    """Returns what went wrong."""
    file = CHAPTERS / f"{chapter}.md"
    set_up = None if chapter == SET_UP else (CHAPTERS / f"{SET_UP}.md").read_text()
    before = file.read_text()
    try:
        faults, after = run_chapter(before, chapter, set_up, weft, update)
    except blocks.Malformed as malformed:
        return [str(malformed)]
    if update and after != before:
        file.write_text(after)
        print(f"{file} has new outputs")
    return faults


def main():
    weft, chapter = sys.argv[1:3]
    own_network.enter("--pid", "--fork", "--kill-child", "--mount-proc")
    names = [chapter]
    if chapter == "all":
        names = sorted(file.stem for file in CHAPTERS.glob("*.md") if file.stem not in WITHOUT_COMMANDS)
    faults = [fault for name in names for fault in run_file(name, weft, sys.argv[3:] == ["--update"])]
    return "\n".join(faults) or 0


if __name__ == "__main__":
    sys.exit(main())
