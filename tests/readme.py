#!/usr/bin/env python3
"""The example in README.md is examples/client.cc (but for its first line, a comment)."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
shown = re.findall(r"^```cpp\n(.*?)^```$", (root / "README.md").read_text(), re.M | re.S)
example = (root / "examples/client.cc").read_text().split("\n", 1)[1]
if shown != [example]:
    sys.exit("README.md does not show examples/client.cc as it is")
