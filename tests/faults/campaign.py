"""One draw of faults from beginning to end. Its state lies in files, so that it can be taken up again."""

import collections
import dataclasses
import json
import subprocess
import threading
from concurrent import futures

import build
import plant
import runs
from places import Fault, Problem


def group(name):
    """The part of the product that a file counts for."""
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in ("apps", "verbs-shim") and len(parts) > 2 else parts[0]


class Campaign:
    def __init__(self, source, folder, preset, jobs, patience, say):
        self.source, self.folder, self.jobs, self.patience, self.say = source, folder, jobs, patience, say
        self.tree = build.Tree(source, folder, preset, say)
        self.head = {}  # seed, count, folders, commit
        self.faults = {}  # number -> Fault
        self.diffs = {}  # number -> lines, from when it was planted
        self.results = {}  # number -> runs.Outcome
        self.reached = None

    # The files.
    def path(self, name):
        return self.folder / name

    def save(self):
        self.diffs = {n: plant.difference((self.tree.source / f.file).read_bytes(), f) for n, f in self.faults.items()}
        data = {**self.head, "diffs": self.diffs, "faults": {n: dataclasses.asdict(f) for n, f in self.faults.items()}}
        self.path("draw.json").write_text(json.dumps(data, indent=1), encoding="utf-8")

    def load(self):
        try:
            data = json.loads(self.path("draw.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Problem(f"there is no finished draw in {self.folder} ({error}); begin with scripts/faults") from error
        self.faults = {int(n): Fault(**f) for n, f in data.pop("faults").items()}
        self.diffs = {int(n): lines for n, lines in data.pop("diffs").items()}
        self.head = data
        if self.path("reached.json").exists():
            self.reached = runs.Reached.from_json(json.loads(self.path("reached.json").read_text(encoding="utf-8")))
        if self.path("results.jsonl").exists():
            for line in self.path("results.jsonl").read_text(encoding="utf-8").splitlines():
                if line.endswith("}"):
                    outcome = runs.Outcome(**json.loads(line))
                    self.results[outcome.fault] = outcome

    def how_to_resume(self):
        return "; scripts/faults --resume goes on" if self.faults and self.path("draw.json").exists() else ""

    def forget(self):
        """Removes the files of an earlier draw, but for the copy and its build."""
        for name in ["draw.json", "reached.json", "results.jsonl"]:
            self.path(name).unlink(missing_ok=True)

    # Drawing.
    def commit(self):
        done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=self.source, capture_output=True, text=True,
                              check=False)
        return done.stdout.strip()

    def plant_new(self, seed, count, folders, headers):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.forget()
        self.head = {"seed": seed, "count": count, "folders": folders, "headers": headers, "commit": self.commit()}
        self.say(f"seed {seed}, {count or 'all'} faults of {' '.join(folders)}{'' if headers else ' without headers'}, commit {self.head['commit']}")
        self.say(f"copying to {self.tree.root} and configuring")
        self.tree.take()
        self.tree.plant()
        self.tree.configure()
        self.say("drawing, planting, building")
        draw = build.Draw(self.tree, folders, seed, headers)
        self.faults = build.plant_and_build(self.tree, draw, count, self.jobs, self.say)
        self.save()

    def plant_again(self, only_left):
        self.load()
        kept = {n: o for n, o in self.results.items() if only_left and o.outcome == "noticed"}
        before = len(self.faults)
        self.say(f"seed {self.head['seed']}, the draw of commit {self.head['commit']} in commit {self.commit()}")
        self.tree.take()
        self.tree.plant()
        self.tree.configure()
        self.faults = build.again(self.tree, self.faults, self.say)
        self.tree.plant(self.faults)
        bad = self.tree.build(self.jobs, self.faults)
        if bad:
            raise Problem(f"faults {sorted(bad)} are no C++ any more; make a new draw")
        self.say(f"{len(self.faults)} of {before} faults still have their place")
        self.forget()
        self.reached, self.results = None, {}
        self.head["commit"] = self.commit()
        self.save()
        for number, outcome in kept.items():
            if number in self.faults:
                self.record(outcome)

    # Running.
    def record(self, outcome):
        self.results[outcome.fault] = outcome
        with open(self.path("results.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(dataclasses.asdict(outcome)) + "\n")

    def run(self, floor):
        sandbox = runs.Sandbox(self.tree.root, self.folder, self.say)
        runner = runs.Runner(sandbox, self.patience)
        if self.reached is None:
            self.say("running every test without a fault")
            all_programs = runs.programs(self.tree.build_dir, self.tree.root)
            room = 128 * (max(self.faults) // 128 + 1)
            self.reached = runs.find_reached(runner, all_programs, room, self.jobs, self.say)
            if not self.reached.num_tests:
                raise Problem("no test passes without a fault")
            self.path("reached.json").write_text(json.dumps(self.reached.to_json()), encoding="utf-8")
        sandbox.clear()
        for note in self.reached.notes:
            self.say(f"note: {note}")
        self.try_all(runner)
        return self.summary(floor)

    def try_all(self, runner):
        left = [n for n in self.faults if n not in self.results]
        self.say(f"{self.reached.num_tests} tests; {len(left)} of {len(self.faults)} faults to try")
        lock = threading.Lock()

        def one(number):
            outcome = runs.try_fault(runner, self.reached, number, self.faults[number].file)
            with lock:
                if runner.stopped:
                    return
                self.record(outcome)
                told = f"{outcome.how}: {outcome.by}" if outcome.by else outcome.outcome.upper()
                fault = self.faults[number]
                self.say(f"[{len(self.results)}/{len(self.faults)}] {number} {fault.file}:{fault.line} {fault.what}: "
                         f"{told} ({outcome.seconds:.0f} s)")
                for name in outcome.flaky:
                    self.say(f"  note: {name} failed by chance; that does not count")

        pool = futures.ThreadPoolExecutor(self.jobs)
        try:
            for done in futures.as_completed([pool.submit(one, number) for number in left]):
                done.result()
        except BaseException:
            runner.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    # Telling.
    def summary(self, floor):
        counts = collections.defaultdict(collections.Counter)
        for number, fault in self.faults.items():
            for name in (group(fault.file), "all"):
                counts[name][self.results[number].outcome] += 1
        self.say(f"{'':<18}{'faults':>7}{'noticed':>9}{'survived':>10}{'not reached':>13}{'noticed':>9}")
        for name in [*sorted(set(counts) - {"all"}), "all"]:
            count = counts[name]
            total = sum(count.values())
            self.say(f"{name:<18}{total:>7}{count['noticed']:>9}{count['survived']:>10}{count['not reached']:>13}"
                     f"{100 * count['noticed'] / total:>8.0f}%")
        share = 100 * counts["all"]["noticed"] / len(self.faults)
        self.say(f"seed {self.head['seed']}, commit {self.head['commit']}: {share:.1f}% noticed; "
                 "scripts/faults --list survived shows the others")
        return 0 if share >= floor else 1

    def list(self, kind):
        self.load()
        for number, fault in self.faults.items():
            outcome = self.results.get(number)
            told = outcome.outcome if outcome else "not tried"
            if kind == "survived" and told == "noticed" or kind == "noticed" and told != "noticed":
                continue
            by = f" by {outcome.by} ({outcome.how})" if outcome and outcome.by else ""
            self.say(f"{number}  {fault.file}:{fault.line}  {fault.what}  {told}{by}")
            for line in self.diffs[number]:
                self.say(f"    {line}")
        return 0

    def show(self, number):
        self.load()
        if number not in self.faults:
            raise Problem(f"no fault {number}; there are {min(self.faults)} to {max(self.faults)}")
        fault, outcome = self.faults[number], self.results.get(number)
        self.say(f"fault {number}, {fault.file}:{fault.line}, {fault.what}: {outcome.outcome if outcome else 'not tried'}")
        for line in self.diffs[number]:
            self.say(f"    {line}")
        if outcome and outcome.by:
            self.say(f"{outcome.how}: {outcome.by}")
        if self.reached is None:
            return 0
        by_program = collections.defaultdict(list)
        for test in self.reached.tests.get(number, []):
            by_program[test.program].append(test.name)
        for index, names in by_program.items():
            program = self.reached.programs[index]
            self.say(f"reached by {program.name}: {len(names)} of its tests, {' '.join(names[:8])}")
        for index, names in list(by_program.items())[:1]:
            program = self.reached.programs[index]
            environment = " ".join([*program.environment, f"WEFT_FAULT={number}"])
            test = f" --gtest_filter={names[0]}" if names[0] else ""
            self.say(f"run: cd {program.directory} && {environment} {' '.join(program.command)}{test}")
        return 0

    def markdown(self):
        self.load()
        for number, fault in self.faults.items():
            outcome = self.results.get(number)
            if outcome is None or outcome.outcome == "noticed":
                continue
            lines = "<br>".join(f"`{line.replace('|', chr(92) + '|')}`"
                                for line in (each[0] + " ".join(each[1:].split()) for each in self.diffs[number]))
            self.say(f"| {number} | `{fault.file}:{fault.line}` | {lines} | {outcome.outcome} | |")
        return 0
