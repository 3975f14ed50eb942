"""scripts/faults over a small project, and its parts over small texts."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parent.parent / "scripts/faults"
# The build's folder for this test: not below /tmp, which the sandbox covers.
WORK = pathlib.Path(sys.argv.pop(1)).resolve()

import build  # noqa: E402
import places  # noqa: E402
import plant  # noqa: E402


def made(text, wanted, what, form, change, line=1):
    start = text.index(wanted)
    return places.Fault("x.cc", start, start + len(wanted), line, what, form, wanted, change)


class PartsTest(unittest.TestCase):
    def test_comments_and_literals_are_no_code(self):
        text = b"a /* if (x) */ = 'b' + \"c;\" + 1'000; // d\n"
        self.assertEqual(places.blank(text), b"a              =     +      + 1'000;     \n")

    def test_template_arguments_are_told_from_less(self):
        code = b"std::array<int, 4> a; if (b < 4 && c > 5) f<g<1>(2)>(3);"
        found = [code[a:b] for a, b in places.template_arguments(code)]
        self.assertEqual(found[0], b"<int, 4>")
        self.assertNotIn(b"4 &&", b" ".join(found))

    def test_each_form_has_its_switch(self):
        text = "if (a) return b + 1;"
        self.assertEqual(plant.plant(text.encode(), [(3, made(text, "a", "negate", "negation", "!a"))]).decode(),
                         "if ((::weft_faults::on(3) != static_cast<bool>(a))) return b + 1;")
        self.assertEqual(plant.plant(text.encode(), [
            (4, made(text, "return b + 1;", "skip a jump", "statement", "")),
            (5, made(text, "b + 1", "arithmetic", "value", "b - 1")),
            (6, made(text, "1", "constant", "shift", "-1"))]).decode(),
            "if (a) { if (!::weft_faults::on(4)) return (::weft_faults::on(5) ? (b - 1) : "
            "(b + ::weft_faults::shift(6, 1, -1))); }")

    def test_the_diff_shows_what_a_reader_would_have_changed(self):
        text = "{\n  f(1);\n  g();  // why\n}\n"
        fault = made(text, "1", "constant", "shift", "+1")
        self.assertEqual(plant.difference(text.encode(), fault), ["-  f(1);", "+  f(2);"])
        fault = made(text, "g();", "drop a statement", "statement", "")
        self.assertEqual(plant.difference(text.encode(), fault), ["-  g();  // why"])

    def test_faults_that_cross_do_not_fit(self):
        text = "a + b + c"
        one, two = made(text, "a + b", "", "value", "x"), made(text, "b + c", "", "value", "x")
        self.assertFalse(plant.fits(two, [one]))
        self.assertTrue(plant.fits(made(text, "b", "", "value", "x"), [one, two]))
        self.assertFalse(plant.fits(one, [one]))


class SampleTest(unittest.TestCase):
    """The whole script over the sample, with every fault that there is room for."""

    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK, ignore_errors=True)
        shutil.copytree(HERE / "sample", WORK / "sample")
        subprocess.run(["git", "init", "-q"], cwd=WORK / "sample", check=True)
        (WORK / "sample/.gitignore").write_text("build/\n", encoding="utf-8")
        cls.first = cls.faults("--count", "all", "--seed", "1", "--folder", "src")

    @staticmethod
    def command(*arguments):
        return [sys.executable, "-B", str(SCRIPT), "--source", str(WORK / "sample"), "--preset", "sample",
                "--build-dir", str(WORK / "faults"), "--patience", "3", *arguments]

    @classmethod
    def faults(cls, *arguments):
        return subprocess.run(cls.command(*arguments), capture_output=True, text=True, check=False)

    def outcome(self, line, what, change=None):
        draw = json.loads((WORK / "faults/draw.json").read_text(encoding="utf-8"))
        text = (HERE / "sample/src/sample.cc").read_text(encoding="utf-8").splitlines()
        number = [n for n, f in draw["faults"].items() if f["file"] == "src/sample.cc" and f["what"] == what
                  and line in text[f["line"] - 1] and change in (None, f["change"])]
        self.assertEqual(len(number), 1, (line, what, self.first.stdout, self.first.stderr))
        results = [json.loads(each) for each in
                   (WORK / "faults/results.jsonl").read_text(encoding="utf-8").splitlines()]
        return next(r for r in results if r["fault"] == int(number[0]))

    def test_a_fault_that_is_noticed(self):
        result = self.outcome("if (a > b)", "negate")
        self.assertEqual((result["outcome"], result["how"], result["by"]),
                         ("noticed", "fails", "sample_test Sample.Larger"))

    def test_faults_that_survive(self):
        for line, what in [("if (a > b)", "compare"), ("mark =", "drop a statement"), ("void set_mark", "early return")]:
            self.assertEqual(self.outcome(line, what)["outcome"], "survived", line)

    def test_a_fault_that_hangs(self):
        result = self.outcome("++i;", "drop a statement")
        self.assertEqual((result["outcome"], result["how"]), ("noticed", "hangs"))

    def test_a_fault_that_crashes(self):
        result = self.outcome("if (p == nullptr)", "skip a jump")
        self.assertEqual((result["outcome"], result["how"], result["by"]),
                         ("noticed", "crashes", "sample_test Sample.ValueOf"))

    def test_a_fault_that_no_test_reaches(self):
        self.assertEqual(self.outcome("return n - 3", "arithmetic")["outcome"], "not reached")

    def test_asserts_and_constant_expressions_are_left_alone(self):
        draw = json.loads((WORK / "faults/draw.json").read_text(encoding="utf-8"))
        text = (HERE / "sample/src/sample.cc").read_text(encoding="utf-8").splitlines()
        for fault in draw["faults"].values():
            if fault["file"] == "src/sample.cc":
                self.assertNotRegex(text[fault["line"] - 1], "assert|std::array|twice")

    def test_the_test_that_fails_of_itself_counts_for_nothing(self):
        self.assertIn("Sample.FailsOfItself fails without a fault", self.first.stdout)
        self.assertNotIn("FailsOfItself (", self.first.stdout)

    def test_the_summary_and_the_exit_status(self):
        self.assertEqual(self.first.returncode, 1, self.first.stderr)  # fewer than 90%
        self.assertRegex(self.first.stdout, r"\nsrc +\d+ +\d+ +\d+ +\d+ +\d+%\n")
        self.assertEqual(self.faults("--resume", "--floor", "1").returncode, 0)

    def test_list_show_and_markdown(self):
        self.assertIn("-  if (a > b) return a;\n    +  if (a >= b) return a;", self.faults("--list", "survived").stdout)
        number = self.outcome("if (a > b)", "negate")["fault"]
        shown = self.faults("--show", str(number)).stdout
        self.assertIn("fails: sample_test Sample.Larger", shown)
        self.assertIn(f"WEFT_FAULT={number}", shown)
        self.assertIn("| `-if (a > b) return a;`<br>`+if (a >= b) return a;` | survived | |", self.faults("--markdown").stdout)
        self.assertEqual(self.faults("--show", "4000").returncode, 2)

    def test_the_same_seed_draws_the_same_faults(self):
        commands = []
        for _ in range(2):
            tree = build.Tree(WORK / "sample", WORK / "faults", "sample", lambda line: None)
            tree.configure()
            draw = build.Draw(tree, ["src"], 7)
            kept = []
            for _ in range(6):
                kept.append(draw.next(kept))
            commands.append(kept)
        self.assertEqual(*commands)

    def test_what_was_interrupted_is_taken_up_again(self):
        work = WORK / "faults"
        lines = (work / "results.jsonl").read_text(encoding="utf-8").splitlines()
        (work / "results.jsonl").write_text("\n".join(lines[:1]) + "\n", encoding="utf-8")
        command = self.command("--resume")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if line.startswith("[3/"):
                    process.send_signal(signal.SIGINT)
                    break
            process.stdout.read()
            self.assertIn("--resume goes on", process.stderr.read())
        self.assertEqual(process.returncode, 130)
        kept = (work / "results.jsonl").read_text(encoding="utf-8").splitlines()
        self.assertGreaterEqual(len(kept), 3)
        self.assertLess(len(kept), len(lines))
        self.assertEqual(self.faults("--resume").returncode, 1)
        self.assertEqual(len((work / "results.jsonl").read_text(encoding="utf-8").splitlines()), len(lines))


if __name__ == "__main__":
    unittest.main()
