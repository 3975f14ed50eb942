"""Copies the tree, draws faults, plants them in the copy and builds it."""

import dataclasses
import filecmp
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess

import places
import plant
from places import Fault, Problem

SKIPPED = re.compile(r"(_test\.(cc|h)$|/testing/|/tests/)")
GENERATED = re.compile(rb"^// (Generated|Written) by", re.MULTILINE | re.IGNORECASE)


def put_copy(source, to):
    if to.is_file() and filecmp.cmp(source, to, shallow=False):
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, to)


def remove_others(root, names):
    for folder, folders, files in os.walk(root):
        if folder == str(root):
            folders[:] = [f for f in folders if f not in ("build", ".git")]
        for file in files:
            path = os.path.join(folder, file)
            if os.path.relpath(path, root) not in names:
                os.remove(path)


class Tree:
    """A copy of the sources, built with faults in it."""

    def __init__(self, origin, folder, preset, say):
        self.origin = origin
        self.source = folder / "source"  # as it was when the draw began: the origin may be worked on meanwhile
        self.root = folder / "tree"
        self.build_dir = self.root / "build" / preset
        self.preset = preset
        self.say = say
        self.cache = {}
        self.headers = None  # their digest

    def take(self):
        """Copies the project as it is now."""
        listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "."],
                                 cwd=self.origin, capture_output=True, check=False)
        if listing.returncode:
            raise Problem(f"{self.origin} is no git tree: {listing.stderr.decode().strip()}")
        names = {name for name in listing.stdout.decode().split("\0") if name and (self.origin / name).is_file()}
        for name in names:
            put_copy(self.origin / name, self.source / name)
        remove_others(self.source, names)

    def plant(self, faults=()):
        """Makes the tree to build: the source with faults (number to Fault) in it. Unchanged files stay untouched."""
        names = {path.relative_to(self.source).as_posix() for path in self.source.rglob("*") if path.is_file()}
        by_file = {}
        for number, fault in dict(faults).items():
            by_file.setdefault(fault.file, []).append((number, fault))
        made = {name: plant.whole_file(name, (self.source / name).read_bytes(), numbered)
                for name, numbered in by_file.items()}
        room = 128 * (max(dict(faults), default=0) // 128 + 1)  # grows seldom: each change compiles them all anew
        made["weft_faults.h"] = plant.HEADER.replace("@NUM@", str(room)).encode()
        made["weft_faults_listener.cc"] = plant.LISTENER.encode()
        sources = " ".join(f"${{PROJECT_SOURCE_DIR}}/{name}" for name in sorted(by_file) if name.endswith(".cc"))
        made["CMakeLists.txt"] = ((self.source / "CMakeLists.txt").read_text(encoding="utf-8")
                                  + plant.CMAKE.replace("@FILES@", sources or "none.cc")).encode()
        for name in names - set(made):
            put_copy(self.source / name, self.root / name)
        for name, content in made.items():
            to = self.root / name
            to.parent.mkdir(parents=True, exist_ok=True)
            if not to.is_file() or to.read_bytes() != content:
                to.write_bytes(content)
        remove_others(self.root, names | set(made))

    def configure(self):
        command = ["cmake", "--preset", self.preset, "-B", str(self.build_dir), "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
        if shutil.which("ccache"):
            command.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        if shutil.which("ld.lld"):
            command.append("-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld")
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Problem(f"cannot configure {self.root}:\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
        self.commands = {}
        for entry in json.loads((self.build_dir / "compile_commands.json").read_text(encoding="utf-8")):
            name = os.path.relpath(entry["file"], self.root)
            self.commands.setdefault(name, entry["command"])

    def build(self, jobs, faults, only_objects=False):
        """Builds. Numbers of faults that do not compile; Problem where something else does not."""
        targets = []
        if only_objects:
            sources = {fault.file for fault in faults.values()}
            for name in sorted(sources & set(self.commands)):
                words = shlex.split(self.commands[name])
                targets.append(words[words.index("-o") + 1])
            if not targets:
                return set()
        process = subprocess.Popen(["ninja", "-C", str(self.build_dir), "-k", "0", f"-j{jobs}", *targets],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        output = self.follow(process)
        if process.returncode == 0:
            return set()
        bad = self.guilty(output, faults)
        if not bad:
            at = output.find("FAILED:")
            raise Problem(f"the copy does not build:\n{output[max(at, 0):][:4000]}")
        return bad

    def follow(self, process):
        """ninja's output; a line of progress from time to time."""
        kept, told = [], 0
        try:
            for line in process.stdout:
                step = re.match(r"\[(\d+)/(\d+)\]", line)
                if step and int(step[1]) >= told + 100:
                    told = int(step[1])
                    self.say(f"  built {step[1]} of {step[2]}")
                elif not step:
                    kept.append(line)
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        return "".join(kept)

    def guilty(self, output, faults):
        """The faults whose lines an error names; else the faults of the files that errors, or notes on them, name."""
        named = set(re.findall(r"(\S+?):(\d+):\d+: (?:error|fatal error|note|  )", output))
        errors = set(re.findall(r"(\S+?):(\d+):\d+: (?:error|fatal error)", output))

        def of(places_, by_line):
            bad = set()
            for file, line in places_:
                name = os.path.relpath(os.path.join(self.build_dir, file), self.root)
                for number, fault in faults.items():
                    last = fault.line + fault.text.count("\n")
                    if fault.file == name and (not by_line or fault.line <= int(line) <= last):
                        bad.add(number)
            return bad

        return of(errors, True) or of(errors, False) or of(named, True) or of(named, False)

    def options(self, name):
        """The compiler's options for a file; a header has the options of a source beside it."""
        if name in self.commands:
            return places.compiler_options(self.commands[name])
        folder = os.path.dirname(name)
        while True:
            for other in sorted(self.commands):
                if other.startswith(folder) and not SKIPPED.search(other):
                    return places.compiler_options(self.commands[other])
            if not folder:
                raise Problem(f"{name}: nothing says how to compile it")
            folder = os.path.dirname(folder)

    def product_files(self, folders, headers=True):
        """Name to lines of code of every source in folders that a fault may be in."""
        files = {}
        for folder in folders:
            top = self.source / folder
            if not top.is_dir():
                raise Problem(f"no folder {folder} in {self.origin}")
            for path in sorted([*top.rglob("*.cc"), *(top.rglob("*.h") if headers else [])]):
                name = path.relative_to(self.source).as_posix()
                if SKIPPED.search(name) or GENERATED.search(path.read_bytes()[:1000]):
                    continue
                if name.endswith(".cc") and name not in self.commands:
                    continue  # not part of this build
                code = places.blank(path.read_bytes())
                files[name] = sum(1 for line in code.splitlines() if len(line.strip()) > 1)
        return files

    def find(self, name):
        """The faults that a file has room for, kept in a file of its own: trees take a while to parse."""
        if name in self.cache:
            return self.cache[name]
        # Of the source as it is: the tree to build may hold faults.
        options = [option.replace(str(self.root), str(self.source)) for option in self.options(name)]
        kept = self.source.parent / "places" / (self.digest(name, options) + ".json")
        if kept.exists():
            found = [Fault(*each) for each in json.loads(kept.read_text(encoding="utf-8"))]
        else:
            try:
                found = places.find(self.source / name, name, options)
            except places.Unparsed as problem:
                self.say(f"  note: no faults in {problem}")
                found = []
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(json.dumps([dataclasses.astuple(each) for each in found]), encoding="utf-8")
        self.cache[name] = found
        return found

    def digest(self, name, options):
        """Of all that decides which faults there are in a file: itself, the headers of the project, the finder."""
        if self.headers is None:
            self.headers = hashlib.sha256(pathlib.Path(places.__file__).read_bytes())
            for path in sorted(self.source.rglob("*.h")):
                self.headers.update(path.read_bytes())
        digest = self.headers.copy()
        digest.update(repr([name, options]).encode())
        digest.update((self.source / name).read_bytes())
        return digest.hexdigest()[:32]


class Draw:
    """Faults from a seed: a file by its lines of code, then one of its places."""

    def __init__(self, tree, folders, seed, headers=True):
        self.tree = tree
        self.files = tree.product_files(folders, headers)
        self.random = random.Random(seed)
        self.misses = 0

    def next(self, others):
        names = list(self.files)
        while self.misses < 10000:
            name = self.random.choices(names, weights=[self.files[n] for n in names])[0]
            found = self.tree.find(name)
            if not found:
                self.misses += 1
                continue
            fault = self.random.choice(found)
            if plant.fits(fault, others):
                return fault
            self.misses += 1
        raise Problem("there is no room for so many faults")

    def everything(self):
        kept = []
        for name in self.files:
            for fault in self.tree.find(name):
                if plant.fits(fault, kept):
                    kept.append(fault)
        return kept


def plant_and_build(tree, draw, wanted, jobs, say):
    """number -> Fault of the faults that compile, planted and built. Other faults replace the rest."""
    tried = []  # by number - 1
    dropped = set()

    def live():
        return {n: f for n, f in enumerate(tried, 1) if n not in dropped}

    if wanted is None:
        tried = draw.everything()
    only_objects = True
    while True:
        while wanted is not None and len(live()) < wanted:
            tried.append(draw.next(tried))
            if len(tried) % 20 == 0:
                say(f"  drawn {len(tried)}")
        tree.plant(live())
        bad = tree.build(jobs, live(), only_objects)
        for number in sorted(bad):
            say(f"  not C++, drawn anew: {tried[number - 1].file}:{tried[number - 1].line} {tried[number - 1].what}")
        dropped |= bad
        if bad:
            continue
        if not only_objects:
            break
        only_objects = False
    return live()


def again(tree, faults, say):
    """The same faults in the present sources: number -> Fault. A fault whose place is gone is reported and left out."""
    kept = {}
    for number, fault in faults.items():
        path = tree.source / fault.file
        if not path.is_file():
            say(f"  gone: {fault.file}")
            continue
        same = [f for f in tree.find(fault.file)
                if (f.what, f.form, f.text, f.change) == (fault.what, fault.form, fault.text, fault.change)]
        if not same:
            say(f"  gone: fault {number}, {fault.file}:{fault.line}")
            continue
        kept[number] = min(same, key=lambda f: abs(f.line - fault.line))
    return kept
