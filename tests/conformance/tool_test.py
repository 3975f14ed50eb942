"""scripts/conformance over small tables, exceptions and results."""

import pathlib
import tempfile
import unittest

import citations
import coverage
import mutate

ROWS = {
    row_id: coverage.Row("t", row_id, level, "requirement", "observable")
    for row_id, level in [("T-1", "MUST"), ("T-2", "MAY"), ("T-3", "MUST NOT")]
}
XML = """<testsuites><testsuite name="S">
<testcase name="Good" status="run" result="completed" classname="S">
  <properties><property name="proves" value="T-1 T-2"/><property name="other" value="T-3"/></properties></testcase>
<testcase name="Bad" status="run" result="completed" classname="S"><failure message="x"/>
  <properties><property name="proves" value="T-3"/></properties></testcase>
<testcase name="Skip" status="run" result="skipped" classname="S"><skipped message="x"/>
  <properties><property name="proves" value="T-3"/></properties></testcase>
<testcase name="Off" status="notrun" result="suppressed" classname="S">
  <properties><property name="proves" value="T-3"/></properties></testcase>
</testsuite></testsuites>"""


class CoverageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def claims(self, xml=XML):
        claims = coverage.Claims()
        coverage.parse_results(self.write("result.xml", xml), claims)
        return claims

    def test_only_a_passing_test_counts(self):
        claims = self.claims()
        self.assertEqual(dict(claims.proven), {"T-1": ["S.Good"], "T-2": ["S.Good"]})
        self.assertEqual(dict(claims.failed), {"T-3": ["S.Bad", "S.Skip", "S.Off"]})
        self.assertEqual((claims.num_passed, claims.num_other), (1, 3))

    def test_verdict(self):
        verdict = coverage.judge(ROWS, {}, {"T-1": "T-1", "T-3": "T-3"}, self.claims())
        self.assertEqual(list(verdict.proven), ["T-1", "T-2"])
        self.assertEqual(verdict.open, ["T-3"])
        self.assertEqual(verdict.regressed, ["T-3"])
        self.assertEqual(verdict.errors, [])
        self.assertIn("S.Bad, which did not pass", "\n".join(coverage.listing(verdict, "open", ["t"])))
        self.assertEqual(coverage.summary(verdict, ["t"])[1].split(), ["t", "3", "2", "0", "1", *"010000"])

    def test_wrong_claims_are_errors(self):
        claims = self.claims(XML.replace("T-1 T-2", "T-1 T-9"))
        errors = coverage.judge(ROWS, {"T-1": "why", "T-8": "why"}, {"T-7": "T-7"}, claims).errors
        self.assertEqual(sorted(error.split(":")[0] for error in errors), ["T-1", "T-7", "T-8", "T-9"])

    def test_a_row_of_a_protocol_needs_a_test_that_ran_it(self):
        rows = {row_id: coverage.Row("rpcrdma2-wg", row_id, "MUST", "requirement", "observable")
                for row_id in ["T-1", "T-2", "T-3"]}
        case = '<testcase name="{}" status="run" result="completed" classname="S"><properties>{}</properties></testcase>'
        prop = '<property name="{}" value="{}"/>'.format

        def judge(*cases):
            text = "".join(case.format(name, prop("proves", proves) + ran) for name, proves, ran in cases)
            return coverage.judge(rows, {"T-3": "why"}, {}, self.claims(f"<testsuites>{text}</testsuites>"))

        silent = ("Silent", "T-1 T-3", "")
        other = ("Other", "T-1", prop("ran", "2-cel05"))
        ran = ("Ran", "T-2", prop("ran", "2-cel05 2-wg07"))
        verdict = judge(silent, other, ran)
        self.assertEqual(verdict.proven, {"T-2": ["S.Ran"]})
        self.assertEqual(verdict.open, ["T-1"])
        self.assertEqual([error.split(" claims")[0] for error in verdict.errors],
                         ["T-1: S.Other", "T-1: S.Silent", "T-3: S.Silent"])
        self.assertIn("2-wg07", verdict.errors[0])
        # One program's run of a test is enough.
        verdict = judge(other, ("Other", "T-1", prop("ran", "2-wg07")))
        self.assertEqual((list(verdict.proven), verdict.errors), (["T-1"], []))

    def test_every_name_of_a_draft_occurs(self):
        def errors(status="completed", **properties):
            props = "".join(f'<property name="{key}" value="{value}"/>' for key, value in properties.items())
            return self.claims(f'<testsuites><testcase name="A" status="run" result="{status}" classname="S">'
                               f"<properties>{props}</properties></testcase></testsuites>").wire.errors()

        names = "RDMA2_ERROR RDMA2_CONNPROP_MIDDLE"
        good = {"names_v2_wg07": names, "wire_v2_wg07": "conversations=1 RDMA2_ERROR=2",
                "arrived_v2_wg07": "RDMA2_CONNPROP_MIDDLE=1"}
        self.assertEqual(errors(**good), [])
        self.assertEqual(errors(wire_v2_wg07="RDMA2_GRANT=1"), [])
        self.assertEqual(errors(status="skipped", **good), [])
        self.assertIn("send RDMA2_ERROR", errors(**{**good, "wire_v2_wg07": "RDMA2_GRANT=1"})[0])
        self.assertIn("send RDMA2_ERROR", errors(names_v2_wg07=names, wire_v2_cel05="RDMA2_ERROR=1",
                                                 arrived_v2_wg07="RDMA2_ERROR=1 RDMA2_CONNPROP_MIDDLE=1")[0])
        self.assertIn("reaches the engines", errors(**{**good, "arrived_v2_wg07": "RDMA2_ERROR=1"})[0])
        self.assertIn("never do", errors(**{**good, "wire_v2_wg07": names.replace(" ", "=1 ") + "=1"})[0])

    def test_a_cut_result_file_is_a_problem(self):
        with self.assertRaises(coverage.Problem):
            self.claims(XML[:200])

    def test_lists(self):
        good = self.write("good.tsv", "# head\nT-1\twhy so\n")
        self.assertEqual(coverage.load_list(good, 2), {"T-1": "why so"})
        for text in ["T-1\n", "T-1\t\n", "T-1\ta\tb\n", "T-1\ta\nT-1\tb\n"]:
            with self.assertRaises(coverage.Problem):
                coverage.load_list(self.write("bad.tsv", text), 2)

    def test_tables(self):
        head = "id\tsection\tlevel\trole\trequirement\tobservable\n"
        self.write("t.tsv", head + "T-1\t1\tMUST\tboth\tr\to\n")
        self.write("codes.tsv", "layer\tcode\n0\t1\n")
        self.assertEqual(list(coverage.load_tables(self.folder)), ["T-1"])
        self.write("u.tsv", head + "T-1\t1\tMUST\tboth\tr\to\n")
        with self.assertRaises(coverage.Problem):
            coverage.load_tables(self.folder)

    def test_a_second_record_in_one_test_is_found(self):
        twice = 'RecordProperty("proves", "T-1");\nRecordProperty(\n"proves", "T-2");\n}\n'
        once = 'RecordProperty("proves", "T-1");\n}\n'
        self.write("a/x_test.cc", "TEST(A, One) {\n" + once + "TEST_F(A, Two) {\n" + twice)
        found = coverage.lost_claims(self.folder)
        self.assertEqual(len(found), 1)
        self.assertIn("A.Two", found[0])

    def test_the_runs_of_a_program_differ_by_their_environment(self):
        self.write("CTestTestfile.cmake",
                   'add_test(one /bin/true --gtest_filter=S.T)\nadd_test(two /bin/true --gtest_filter=S.T)\n'
                   'set_tests_properties(one PROPERTIES ENVIRONMENT P=2)\n'
                   'set_tests_properties(two PROPERTIES ENVIRONMENT P=2 ENVIRONMENT_MODIFICATION W=set:2)\n')
        environments = [environment for _, environment, _ in coverage.gtest_commands(self.folder)]
        self.assertEqual(environments, [("P=2",), ("P=2", "W=2")])

    def test_checks_are_found_in_code_only(self):
        self.write("ddp/x.cc", '// violates("T-1", a)\nif (violates("T-2", a)) {}\nif (violates(\n"T-2", b)) {}\n')
        checks = mutate.find_checks(self.folder)
        self.assertEqual(checks, {"T-2": ["ddp/x.cc:2", "ddp/x.cc:3"]})
        self.assertEqual(mutate.shared_places(checks), set())
        self.assertEqual(mutate.without_row(checks, ROWS), [])
        self.assertEqual(len(mutate.without_row(checks, {})), 1)

    def test_a_check_of_several_rows_counts_for_each(self):
        self.write("ddp/x.cc", 'if (violates("T-1 T-2", a)) {}\nif (violates("T-2", a)) {}\n')
        checks = mutate.find_checks(self.folder)
        self.assertEqual(checks, {"T-1": ["ddp/x.cc:1"], "T-2": ["ddp/x.cc:1", "ddp/x.cc:2"]})
        self.assertEqual(mutate.shared_places(checks), {"ddp/x.cc:1"})
        # The program fails whatever runs, but for tests of other rows.
        program = self.write("program", '#!/bin/sh\ncase "$*" in *gtest_filter=S.Two) exit 0;; esac; exit 1\n')
        program.chmod(0o755)
        runs = [mutate.Run(program, (), 1, "ddp", {"T-1": ["S.One"], "T-2": ["S.Two"]})]
        rows = {"T-1": ROWS["T-1"], "T-2": coverage.Row("rpcrdma2", "T-2", "MUST", "requirement", "observable")}
        self.assertEqual([mutate.needs_claim(*each, {"ddp/x.cc:1"}, rows) for each in
                          [("T-1", "ddp/x.cc:1"), ("T-2", "ddp/x.cc:1"), ("T-2", "ddp/x.cc:2")]], [False, True, False])
        for row_id, by_claim, is_noticed in [("T-1", True, True), ("T-2", True, False), ("T-2", False, True),
                                              ("T-3", True, False)]:
            what = mutate.try_one(mutate.Runner(), row_id, "ddp/x.cc:1", runs, by_claim)[2]
            self.assertEqual(bool(what), is_noticed, (row_id, by_claim))

    def test_the_runs_likely_to_notice_a_check_s_absence_go_first(self):
        def run(name, seconds, folder, *proves):
            return mutate.Run(pathlib.Path(name), (), seconds, folder, dict.fromkeys(proves, []))

        runs = [run("quick", 1, "mpa"), run("beside", 4, "ddp"), run("claims", 30, "tests/sim", "T-1"),
                run("slow", 60, "ddp")]
        first = mutate.likeliest_first("T-1", "ddp/x.cc:7", runs)
        self.assertEqual([each.program.name for each in first], ["claims", "beside", "quick", "slow"])

    def test_a_program_without_a_check_gets_no_endless_memory(self):
        limited = '#!/bin/sh\ncase "$ASAN_OPTIONS" in *max_allocation_size_mb=*) exit 0;; esac; exit 1\n'
        program = self.write("program", limited)
        program.chmod(0o755)
        self.assertEqual(mutate.Runner().run(program, (), "T-1", 10), (False, ""))

    def test_citations(self):
        # Put together here, so that this file cites nothing.
        row, cited, twice, lonely, unknown = (f"T-A-{number:02}" for number in range(1, 6))
        self.write("docs/ambiguities.md",
                   f"**{cited}** a\n\n**{twice}** b, see {cited}\n\n**{twice}** c\n\n**{lonely}** d\n")
        self.write("ddp/x.cc", f"// {cited}, {row}\n// ({unknown}): {twice}\n")
        self.write("ddp/y.md", f"See {'notes'} A-12.\n")
        self.write("build/z.cc", f"// {lonely}\n")
        self.write("ddp/z.bin", f"// {lonely}\n")
        found = citations.wrong_citations({row: ROWS["T-1"]}, self.folder)
        self.assertEqual(len(found), 4, found)
        for line, where, what in zip(found, ["docs/", "ddp/x.cc:2", "ddp/y.md:1", "docs/"],
                                     [f"{twice} is there twice", f"{unknown} is neither", "A-12", f"cites {lonely}"]):
            self.assertTrue(line.startswith(where), line)
            self.assertIn(what, line)
        wrong = "".join(citations.wrong_citations({cited: ROWS["T-1"]}, self.folder))
        self.assertIn(f"{cited} is a requirement row's", wrong)

    def test_the_project_s_own_citations(self):
        self.assertEqual(citations.wrong_citations(coverage.load_tables()), [])

    def test_the_project_s_own_tables(self):
        rows = coverage.load_tables()
        for table, count in [("mpa", 195), ("mpa2", 75), ("ddp", 173), ("rdmap", 232), ("rdmap-ext", 87),
                             ("rdma-security", 72)]:
            self.assertEqual(sum(row.table == table for row in rows.values()), count, table)


unittest.main()
