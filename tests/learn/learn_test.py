#!/usr/bin/env -S python3 -B
"""The runner of the course and the check of its gallery: each way in which they can be wrong makes them red."""
import pathlib
import shutil
import tempfile
import unittest

import blocks
import gallery
import learn


def chapter(*lines, attributes=""):
    return "\n".join(["# A chapter", "", f"```console{attributes}", *lines, "```", "", "The end.", ""])


class Chapters(unittest.TestCase):
    def faults(self, text, update=False):
        return self.faults_of([("chapter", text)], update)

    def faults_of(self, chapters, update=False):
        updated = [name for name, _ in chapters] if update else []
        faults, outputs = learn.run_chapters(chapters, "/bin/true", updated)
        self.after = outputs[-1]
        return "\n".join(faults)


class Runner(Chapters):
    def test_the_right_output_is_green(self):
        self.assertEqual(self.faults(chapter("$ echo one; echo two >&2", "one", "two", "$ true")), "")

    def test_commands_share_a_shell(self):
        self.assertEqual(self.faults(chapter("$ mkdir a && cd a && word=yes", '$ echo "$word ${PWD##*/}"', "yes a")), "")

    def test_a_long_command_goes_on_in_the_next_line(self):
        self.assertEqual(self.faults(chapter("$ echo one \\", ">   two", "one two")), "")

    def test_output_without_a_newline_is_compared(self):
        self.assertEqual(self.faults(chapter("$ printf one", "one", "$ echo two", "two")), "")

    def test_a_wrong_output_is_red(self):
        self.assertIn("other words", self.faults(chapter("$ echo one", "two")))

    def test_an_output_too_many_is_red(self):
        self.assertIn("the text goes on", self.faults(chapter("$ echo one", "one", "two")))

    def test_an_output_that_the_text_lacks_is_red(self):
        self.assertIn("the run goes on", self.faults(chapter("$ echo one; echo two", "one")))

    def test_a_missing_program_is_red(self):
        self.assertIn("status 127", self.faults(chapter("$ no-such-program")))

    def test_a_command_that_fails_is_red(self):
        self.assertIn("status 1 instead of 0", self.faults(chapter("$ false")))

    def test_a_command_that_fails_before_the_last_is_red(self):
        self.assertIn("status 1 instead of 0", self.faults(chapter("$ false", "$ false", attributes=" status=1")))

    def test_the_status_of_the_last_command_can_be_another(self):
        self.assertEqual(self.faults(chapter("$ true", "$ (exit 3)", attributes=" status=3")), "")

    def test_a_command_that_should_fail_and_does_not_is_red(self):
        self.assertIn("status 0 instead of 1", self.faults(chapter("$ true", attributes=" status=1")))

    def test_a_chapter_without_a_command_is_red(self):
        self.assertIn("no command at all", self.faults("# A chapter\n\nWords.\n"))

    def test_a_command_outside_of_a_console_block_is_red(self):
        for text in ("```sh\nweft --help\n```\n", "```text\n$ weft --help\n```\n", "```\nweft --help\n```\n"):
            with self.assertRaises(blocks.Malformed):
                self.faults(text)

    def test_an_unknown_attribute_is_red(self):
        with self.assertRaises(blocks.Malformed):
            self.faults(chapter("$ true", attributes=" status=one"))

    def test_a_kind_that_nobody_knows_is_red(self):
        self.assertIn("nothing called all", self.faults(chapter("$ true", attributes=" varies=all")))

    def test_a_shell_that_ends_is_red(self):
        self.assertIn("the shell has ended", self.faults(chapter("$ exit")))

    def test_a_command_that_hangs_is_red(self):
        before, learn.TIMEOUT = learn.TIMEOUT, 0.2
        self.addCleanup(setattr, learn, "TIMEOUT", before)
        self.assertIn("no end within", self.faults(chapter("$ sleep 600 &")))

    def test_a_job_has_begun_when_it_says_ready(self):
        text = chapter("$ (echo hello; echo ready 1; exec sleep 600) &", "hello", "ready 1", "$ kill $! && wait", "$ echo one", "one")
        self.assertEqual(self.faults(text), "")

    def test_a_server_that_is_left_is_red(self):
        text = chapter("$ (echo ready 1; exec sleep 600) &", "ready 1")
        self.assertIn("leaves a server behind", self.faults(text))

    def test_chapters_that_follow_each_other_share_a_directory_and_a_shell(self):
        first, second = chapter("$ mkdir a && word=yes"), chapter('$ echo "$word" && mkdir a', "yes")
        self.assertEqual(self.faults_of([("1", first)]), "")
        self.assertIn("status 1 instead of 0", self.faults_of([("1", first), ("2", second)]))

    def test_the_chapters_come_in_their_order(self):
        numbers = [int(name.partition("-")[0]) for name in learn.all_names()]
        self.assertEqual(numbers, list(range(1, 11)))

    def test_an_update_writes_what_the_run_printed(self):
        text = chapter("$ echo one; echo two", "three", "$ echo four", "four", "five")
        self.assertEqual(self.faults(text, update=True), "")
        self.assertEqual(self.after, chapter("$ echo one; echo two", "one", "two", "$ echo four", "four"))

    def test_an_update_leaves_an_output_that_differs_in_what_varies(self):
        text = chapter("$ echo 7 ms", "9 ms", attributes=" varies=duration")
        self.assertEqual(self.faults(text, update=True), "")
        self.assertEqual(self.after, text)

    def test_an_update_does_not_hide_a_failure(self):
        self.assertIn("status 1", self.faults(chapter("$ false"), update=True))


class Varying(Chapters):
    def test_what_may_vary_varies(self):
        for kind, run, text in (
            ("time", "   0.000021   1> x", "  10.000001   1> x"),
            ("duration", "took 7 ms, 1.20 us", "took 12.5 us, 7 s"),
            ("waits", "0.1 s; slept in 7% of its waits", "0.1 s; spun"),
            ("rate", "12.5 GB/s    9,000 op/s", "7 MB/s 12 op/s"),
            ("shaft", "<--- a -|", "<-------- a -|"),
            ("port", "127.0.0.1:40000 to 127.0.0.1:7174", "127.0.0.1:50000 to 127.0.0.1:7174"),
            ("handle", "STag 0x00000001", "STag 0xffffffff"),
            ("address", "TO 0x7f0", "TO 0x12345678"),
            ("fh", "fh 00000001", "fh ffffffff"),
        ):
            with self.subTest(kind):
                self.assertEqual(self.faults(chapter(f"$ echo '{run}'", text, attributes=f" varies={kind}")), "")
                self.assertIn("other words", self.faults(chapter(f"$ echo '{run}'", text)))

    def test_other_words_beside_it_are_red(self):
        self.assertIn("other words", self.faults(chapter("$ echo 7 ms more", "9 ms less", attributes=" varies=duration")))

    def test_a_port_that_the_text_chose_is_compared(self):
        self.assertIn("other words", self.faults(chapter("$ echo 127.0.0.1:7174", "127.0.0.1:7175", attributes=" varies=port")))

    def test_the_same_stag_twice_has_to_be_the_same_twice(self):
        text = ("0x00000001 0x00000002", "0x00000001")
        same = chapter("$ echo 0xaaaaaaaa 0xbbbbbbbb; echo 0xaaaaaaaa", *text, attributes=" varies=handle")
        other = chapter("$ echo 0xaaaaaaaa 0xbbbbbbbb; echo 0xbbbbbbbb", *text, attributes=" varies=handle")
        self.assertEqual(self.faults(same), "")
        self.assertIn("was 0xaaaaaaaa in this run", self.faults(other))

    def test_two_stags_have_to_be_two(self):
        text = chapter("$ echo 0xaaaaaaaa 0xaaaaaaaa", "0x00000001 0x00000002", attributes=" varies=handle")
        self.assertIn("stood for 0x00000001", self.faults(text))

    def test_an_stag_is_the_same_throughout_the_chapter(self):
        block = "```console varies=handle\n$ echo {}\n0x00000001\n```\n"
        self.assertEqual(self.faults(block.format("0xaaaaaaaa") * 2), "")
        self.assertIn("in this run", self.faults(block.format("0xaaaaaaaa") + block.format("0xbbbbbbbb")))


class Gallery(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="weft-gallery-")
        self.addCleanup(directory.cleanup)
        self.addCleanup(setattr, gallery, "GALLERY", gallery.GALLERY)
        self.copy = pathlib.Path(directory.name) / "gallery"
        shutil.copytree(gallery.GALLERY, self.copy)
        gallery.GALLERY = self.copy

    def test_the_captures_in_the_tree_are_those_of_the_scenes(self):
        gallery.check_files()

    def test_a_capture_that_is_too_long_is_red(self):
        (self.copy / "markers.pcap").write_bytes(bytes(gallery.MAX_LEN + 1))
        with self.assertRaisesRegex(SystemExit, "markers.pcap is above"):
            gallery.check_files()

    def test_a_capture_that_is_missing_is_red(self):
        (self.copy / "lost.pcap").unlink()
        with self.assertRaisesRegex(SystemExit, "other files"):
            gallery.check_files()

    def test_a_capture_without_a_scene_is_red(self):
        (self.copy / "more.pcap").touch()
        with self.assertRaisesRegex(SystemExit, "other files"):
            gallery.check_files()

    def test_an_answer_that_weft_does_not_give_is_red(self):
        with self.assertRaisesRegex(SystemExit, "does not say"):
            gallery.check_answers("/bin/true")


if __name__ == "__main__":
    unittest.main()
