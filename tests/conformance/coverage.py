"""Requirement rows and the tests' proofs: tables, exceptions, gtest results, and the verdict over them."""

import collections
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
import xml.etree.ElementTree
from concurrent import futures

import wire_tally

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LEVELS = ["MUST", "MUST NOT", "FACT", "SHOULD", "SHOULD NOT", "MAY"]
# Levels of which no row may stay open once the work is done.
BINDING = {"MUST", "MUST NOT", "FACT"}
# A test counts for a row of these tables only if it ran this protocol (ran.h).
PROTOCOLS = {"rpcrdma2": "2-cel05", "rpcrdma2-wg": "2-wg07", "nfsulb2": "2-wg07"}


@dataclasses.dataclass(frozen=True)
class Row:
    table: str
    id: str
    level: str
    requirement: str
    observable: str


@dataclasses.dataclass
class Claims:
    """The tests' records: row id to the names of the tests that claim it."""

    proven: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(list))
    failed: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(list))  # not run, skipped, failed
    # Row id and name of a test that passed to the protocols that it ran, in all programs that have it.
    ran: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(set))
    num_passed: int = 0
    num_other: int = 0
    notes: list = dataclasses.field(default_factory=list)
    wire: wire_tally.WireTally = dataclasses.field(default_factory=wire_tally.WireTally)


class Problem(Exception):
    """Something the caller has to put right before there can be a verdict."""


def load_tables(folder=HERE / "tables"):
    """Rows by id, in the tables' order. Files whose first column is not "id" hold other data."""
    rows = {}
    for path in sorted(folder.glob("*.tsv")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines[0].startswith("id\t"):
            continue
        for number, line in enumerate(lines[1:], 2):
            cells = line.split("\t")
            if len(cells) != 6 or cells[2] not in LEVELS:
                raise Problem(f"{path}:{number}: want id, section, level, role, requirement, observable")
            if cells[0] in rows:
                raise Problem(f"{path}:{number}: {cells[0]} is there twice")
            rows[cells[0]] = Row(path.stem, cells[0], cells[2], cells[4], cells[5])
    return rows


def load_list(path, columns):
    """The lines of a tab-separated file as tuples, without comments; the first cell is a row's id, there once."""
    entries = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != columns or not all(cells):
            raise Problem(f"{path}:{number}: want {columns} tab-separated cells, none empty")
        if cells[0] in entries:
            raise Problem(f"{path}:{number}: {cells[0]} is there twice")
        entries[cells[0]] = cells[-1]
    return entries


def parse_results(path, claims):
    """Adds the claims of one gtest XML file."""
    try:
        tree = xml.etree.ElementTree.parse(path)
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        raise Problem(f"{path}: not a whole gtest XML file ({error})") from error
    for case in tree.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        passed = (case.get("status") == "run" and case.get("result") == "completed" and case.find("failure") is None)
        claims.num_passed += passed
        claims.num_other += not passed
        properties = {prop.get("name"): prop.get("value", "").split() for prop in case.iter("property")}
        for row_id in properties.get("proves", []):
            (claims.proven if passed else claims.failed)[row_id].append(name)
            if passed:
                claims.ran[row_id, name].update(properties.get("ran", []))
        if passed:
            claims.wire.add(properties)


def gtest_commands(build_dir):
    """CTest's own list of gtest tests: (program, its environment, result file of its last run or None) for each."""
    listing = subprocess.run(["ctest", "--test-dir", str(build_dir), "--show-only=json-v1"], capture_output=True,
                             text=True, check=False)
    if listing.returncode != 0:
        raise Problem(f"{build_dir}: ctest lists no tests there; configure and build it first (scripts/test does)\n"
                      + listing.stderr.strip())
    commands = []
    for test in json.loads(listing.stdout)["tests"]:
        command = test.get("command", [])
        if not any(argument.startswith("--gtest_filter=") for argument in command):
            continue
        output = [argument.split("xml:", 1)[1] for argument in command if argument.startswith("--gtest_output=xml:")]
        properties = {prop["name"]: prop["value"] for prop in test.get("properties", [])}
        changes = properties.get("ENVIRONMENT_MODIFICATION", [])  # NAME=set:VALUE
        environment = (*properties.get("ENVIRONMENT", []), *(change.replace("=set:", "=", 1) for change in changes))
        if wrong := [setting for setting in environment if "=" not in setting]:
            raise Problem(f"{test['name']}: {', '.join(wrong)} is no setting of the environment (cmake/Weft.cmake)")
        commands.append((pathlib.Path(command[0]), environment, pathlib.Path(output[0]) if output else None))
    if not commands:
        raise Problem(f"{build_dir}: no test program is built there")
    return commands


def last_results(build_dir):
    """The results of the last ctest run in build_dir. A file older than its program belongs to another program."""
    claims = Claims()
    num_stale = 0
    for program, _, output in gtest_commands(build_dir):
        if output and output.exists() and output.stat().st_mtime >= program.stat().st_mtime:
            parse_results(output, claims)
        else:
            num_stale += 1
    if num_stale:
        claims.notes.append(f"{num_stale} tests have not run since they were built; what they claim does not count")
    return claims


def with_environment(settings, **more):
    """This process's environment with CTest's "NAME=value" settings and more; None takes a variable away."""
    env = {**os.environ, **dict(setting.split("=", 1) for setting in settings), **more}
    return {name: value for name, value in env.items() if value is not None}


def run_programs(build_dir, pattern, jobs, say):
    """Runs each test program once, in each environment that CTest knows for it, and collects its records."""
    runs = sorted({(program, environment) for program, environment, _ in gtest_commands(build_dir)})
    runs = [run for run in runs if re.search(pattern, run[0].name)]
    claims = Claims()

    def run(program, environment, folder):
        name = " ".join([program.name, *environment])
        output = pathlib.Path(folder) / (name + ".xml")
        with open(output.with_suffix(".log"), "w", encoding="utf-8") as log:
            status = subprocess.run([program, f"--gtest_output=xml:{output}"], cwd=ROOT, stdout=log, check=False,
                                    stderr=subprocess.STDOUT, env=with_environment(environment)).returncode
        return name, output, status

    with tempfile.TemporaryDirectory() as folder, futures.ThreadPoolExecutor(jobs) as pool:
        for done in futures.as_completed([pool.submit(run, *each, folder) for each in runs]):
            name, output, status = done.result()
            say(f"{name}: {'passed' if status == 0 else f'exit status {status}'}")
            if output.exists():
                parse_results(output, claims)
            else:
                claims.notes.append(f"{name} left no result (exit status {status})")
    return claims


TEST_HEAD = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\((\w+),\s*(\w+)\)", re.MULTILINE)


def lost_claims(root=ROOT):
    """Tests whose text records "proves" twice: gtest keeps only the last value of a key."""
    found = []
    for path in sorted(root.rglob("*.cc")):
        if "build" in path.relative_to(root).parts:
            continue
        text = path.read_text(encoding="utf-8")
        heads = list(TEST_HEAD.finditer(text))
        for head, following in zip(heads, heads[1:] + [None]):
            body = text[head.end():following.start() if following else len(text)]
            if len(re.findall(r'RecordProperty\(\s*"proves"', body)) > 1:
                found.append(f"{path.relative_to(root)}: {head[1]}.{head[2]} records \"proves\" more than once, and "
                             "gtest keeps only the last: put all ids into one string")
    return found


@dataclasses.dataclass
class Verdict:
    rows: dict
    proven: dict
    excepted: dict
    open: list
    errors: list
    regressed: list
    claims: Claims


def without_protocol(rows, claims):
    """Claims by tests that did not run the protocol of the row: (row id, name of the test), each once."""
    return sorted((row_id, name) for (row_id, name), ran in claims.ran.items()
                  if row_id in rows and not {PROTOCOLS.get(rows[row_id].table, "")} - {""} <= ran)


def judge(rows, exceptions, baseline, claims):
    errors = []
    for row_id, name in without_protocol(rows, claims):
        errors.append(f"{row_id}: {name} claims it, and saw no message of {PROTOCOLS[rows[row_id].table]}")
        claims.proven[row_id] = [other for other in claims.proven[row_id] if other != name]
    for row_id, tests in sorted({**claims.failed, **claims.proven}.items()):
        if row_id not in rows:
            errors.append(f"{row_id}: no such row, but {tests[0]} claims it")
    errors += [f"{row_id}: no such row, but exceptions.tsv excepts it" for row_id in exceptions if row_id not in rows]
    errors += [f"{row_id}: no such row, but proven.txt lists it" for row_id in baseline if row_id not in rows]
    errors += [f"{row_id}: excepted, and yet proven by {claims.proven[row_id][0]}: one of the two is wrong"
               for row_id in exceptions if claims.proven.get(row_id)]
    proven = {row_id: claims.proven[row_id] for row_id in rows if claims.proven.get(row_id)}
    excepted = {row_id: exceptions[row_id] for row_id in rows if row_id in exceptions}
    still_open = [row_id for row_id in rows if row_id not in proven and row_id not in excepted]
    regressed = [row_id for row_id in baseline if row_id in rows and row_id not in proven]
    return Verdict(rows, proven, excepted, still_open, errors, regressed, claims)


def summary(verdict, tables):
    """The table of counts, as lines."""
    head = f"{'table':<14}{'rows':>6}{'proven':>8}{'excepted':>10}{'open':>6}   open: "
    lines = [head + "  ".join(LEVELS)]
    width = [len(level) for level in LEVELS]
    total = collections.Counter()
    for table in [*tables, "total"]:
        count = total if table == "total" else collections.Counter()
        if table != "total":
            for row in verdict.rows.values():
                if row.table != table:
                    continue
                count["rows"] += 1
                kind = ("proven" if row.id in verdict.proven else "excepted" if row.id in verdict.excepted else "open")
                count[kind] += 1
                if kind == "open":
                    count[row.level] += 1
            total += count
        levels = "  ".join(f"{count[level]:>{w}}" for level, w in zip(LEVELS, width))
        lines.append(f"{table:<14}{count['rows']:>6}{count['proven']:>8}{count['excepted']:>10}{count['open']:>6}"
                     f"         {levels}")
    return lines


def listing(verdict, kind, tables):
    """One paragraph for each row of a kind, with its facts."""
    lines = []
    for row in verdict.rows.values():
        if row.table not in tables:
            continue
        if kind == "open" and row.id in verdict.open:
            lines += [f"{row.id}  {row.level}  {row.requirement}", f"    observable: {row.observable}"]
            if row.id in verdict.claims.failed:
                lines.append(f"    claimed by {verdict.claims.failed[row.id][0]}, which did not pass")
        elif kind == "proven" and row.id in verdict.proven:
            lines.append(f"{row.id}  {row.level}  {', '.join(sorted(set(verdict.proven[row.id])))}")
        elif kind == "excepted" and row.id in verdict.excepted:
            lines.append(f"{row.id}  {row.level}  {verdict.excepted[row.id]}")
    return lines
