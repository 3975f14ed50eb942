#!/usr/bin/env -S python3 -B
"""Runs the commands of a chapter of docs/learn and compares their output with the text.

learn.py WEFT CHAPTER           CHAPTER: a name in docs/learn, without .md, or all
learn.py WEFT CHAPTER --update  writes the outputs of this run into the chapter, where they differ from the text
learn.py WEFT course            all chapters one after the other in one shell and one directory, as a reader goes on

Each chapter, and the course, has a network namespace and a directory of its own, and begins with the set-up that
docs/learn/README.md shows. No chapter leaves a server behind. blocks.py describes the notation of a chapter, varying.py the values that may differ from run to run.
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
TIMEOUT = 180  # seconds, of a command; no command of the course takes one where nothing else runs


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


def left_servers(bash, name):
    """What a reader who goes on to the next chapter would still have."""
    jobs, _ = bash.run("jobs -r", TIMEOUT)
    return [f"{name}: the chapter leaves a server behind: {job}" for job in jobs]


def run_chapters(chapters, weft, updated=()):
    """Runs chapters in one shell, up to the first that fails. chapters: pairs of a name and a text.

    updated: names of the chapters that get the outputs of this run. Returns the faults, and the texts with the outputs of this run.
    """
    parsed = [(name, blocks.parse(text, name)) for name, text in chapters]
    with tempfile.TemporaryDirectory(prefix="weft-learn-") as directory:
        home = pathlib.Path(directory) / "home"
        home.mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
        bash = shell.Shell(clone_like(directory, weft), environment)
        faults = []
        try:
            for name, parts in parsed:
                faults += run(parts, bash, varying.Comparison(), name, name in updated)
                faults += [] if faults else left_servers(bash, name)
                if faults:
                    break
        finally:
            bash.close()
    return faults, [blocks.emit(parts) for _, parts in parsed]


def texts_of(names):
    """Pairs of the chapters and their texts, with the set-up first."""
    return [(name, (CHAPTERS / f"{name}.md").read_text()) for name in [SET_UP, *(name for name in names if name != SET_UP)]]


def all_names():
    """The chapters in the order of the course."""
    names = {file.stem for file in CHAPTERS.glob("*.md")} - WITHOUT_COMMANDS - {SET_UP}
    return sorted(names, key=lambda name: int(name.partition("-")[0]))


def run_files(names, weft, update=False):
    """Runs these chapters one after the other. Returns what went wrong."""
    texts = texts_of(names)
    try:
        faults, outputs = run_chapters(texts, weft, names if update else ())
    except blocks.Malformed as malformed:
        return [str(malformed)]
    for (name, before), after in zip(texts, outputs):
        if after != before:
            (CHAPTERS / f"{name}.md").write_text(after)
            print(f"{name} has new outputs")
    return faults


def main():
    weft, chapter = sys.argv[1:3]
    own_network.enter("--pid", "--fork", "--kill-child", "--mount-proc")
    update = sys.argv[3:] == ["--update"]
    if chapter == "course":
        faults = run_files(all_names(), weft)
    elif chapter == "all":
        faults = [fault for name in [SET_UP, *all_names()] for fault in run_files([name], weft, update)]
    else:
        faults = run_files([chapter], weft, update)
    return "\n".join(faults) or 0


if __name__ == "__main__":
    sys.exit(main())
