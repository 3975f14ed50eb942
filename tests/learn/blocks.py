"""The commands of a chapter: its ```console blocks.

    ```console varies=time,handle status=1
    $ weft dissect --check gallery/bad-crc.pcapng
    what the command prints
    ```

A line that begins with "$ " is a command; a command that ends with a backslash goes on in the next line, behind "> ".
The lines behind it are its output. varies: names of varying.KINDS that differ from run to run. status: the exit status
of the block's last command, where it is not 0.
"""
import dataclasses
import re


class Malformed(Exception):
    """A chapter that the runner cannot run whole."""


@dataclasses.dataclass
class Command:
    line: int  # in the chapter's file, from 1
    typed: list  # the lines as they stand in the chapter
    text: str  # for the shell
    output: list
    varies: tuple = ()
    status: int = 0


def _attributes(words, where):
    varies, status = (), 0
    for word in words:
        name, _, value = word.partition("=")
        if name == "varies":
            varies = tuple(value.split(","))
        elif name == "status" and value.isdigit():
            status = int(value)
        else:
            raise Malformed(f"{where}: unknown attribute {word}")
    return varies, status


def _commands(lines, first, attributes, where):
    """lines: the content of a block, whose first line is line `first` of the file."""
    commands = []
    at = 0
    while at < len(lines):
        if not lines[at].startswith("$ "):
            if not commands:
                raise Malformed(f"{where}: output without a command")
            commands[-1].output.append(lines[at])
            at += 1
            continue
        typed = [lines[at]]
        while typed[-1].endswith("\\"):
            at += 1
            if at == len(lines) or not lines[at].startswith("> "):
                raise Malformed(f"{where}: a command without its end")
            typed.append(lines[at])
        text = "\n".join(line[2:] for line in typed)
        commands.append(Command(first + at, typed, text, [], attributes[0]))
        at += 1
    if not commands:
        raise Malformed(f"{where}: no command")
    commands[-1].status = attributes[1]
    return commands


def parse(text, name):
    """Returns a list of parts: text of the chapter (str), or the list of a block's commands."""
    parts, lines, at, other = [], text.split("\n"), 0, []
    while at < len(lines):
        fence = re.fullmatch(r"```(\S*)(.*)", lines[at])
        if not fence:
            other.append(lines[at])
            at += 1
            continue
        where = f"{name}:{at + 1}"
        end = next((i for i in range(at + 1, len(lines)) if lines[i] == "```"), None)
        if end is None:
            raise Malformed(f"{where}: a block without an end")
        if fence[1] == "console":
            parts += [
                "\n".join([*other, lines[at]]),
                _commands(lines[at + 1 : end], at + 2, _attributes(fence[2].split(), where), where),
            ]
            other = []
        elif fence[1] != "text" or any(line.startswith("$ ") for line in lines[at:end]):
            raise Malformed(f"{where}: a command has to stand in a console block, and all else in a text block")
        else:
            other += lines[at:end]
        other.append(lines[end])
        at = end + 1
    parts.append("\n".join(other))
    return parts


def emit(parts):
    """The chapter that parse() read, with the outputs that its commands have now."""
    out = []
    for part in parts:
        if isinstance(part, str):
            out.append(part)
        else:
            out += ["\n".join([*command.typed, *command.output]) for command in part]
    return "\n".join(out)


def commands_of(parts):
    return [command for part in parts if not isinstance(part, str) for command in part]
