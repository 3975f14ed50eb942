"""Whether each header type, error code and property of both drafts of version 2 occurred in the tests' messages.

The names come from a test of tests/wire_v2 (names_v2_DRAFT), the messages from its recorder: wire_v2_DRAFT has what the
engines sent, arrived_v2_DRAFT what reached them from peers that tests play."""

# What the engines never send, and why. It has to arrive in a test.
NEVER_SENT = {
    "cel05": {
        "RDMA2_OPTIONAL": "Weft has no extension (R2-5.3-1)",
        "RDMA2_UPDPROP": "no Link changes its properties (R2-6.2.1-5); v2_cel05::Exchange::update makes the message",
    },
    "wg07": {
        "RDMA2_CONNPROP_MIDDLE": "Weft's properties fit one message",
        "HOSTAUTH": "the draft defines no material (W2-5.2.6-1)",
    },
}


def names_in(kind, properties):
    """(draft, name) of each word of the properties KIND_DRAFT, without counts and the number of conversations."""
    found = set()
    for key, words in properties.items():
        if key.startswith(kind + "_v2_"):
            found |= {(key.removeprefix(kind + "_v2_"), word.split("=")[0]) for word in words}
    return found


class WireTally:
    """What occurred in all tests together."""

    def __init__(self):
        self.names, self.sent, self.arrived = set(), set(), set()

    def add(self, properties):
        self.names |= names_in("names", properties)
        self.sent |= names_in("wire", properties)
        self.arrived |= names_in("arrived", properties)

    def errors(self):
        """A line for each name that did not occur as it has to. Without the test that tells the names: none."""
        lines = []
        for draft, name in sorted(self.names):
            reason = NEVER_SENT.get(draft, {}).get(name)
            if reason is None and (draft, name) not in self.sent:
                lines.append(f"2-{draft}: no test has the engines send {name}")
            if reason is not None and (draft, name) in self.sent:
                lines.append(f"2-{draft}: the engines send {name}, and wire_tally.py says that they never do: {reason}")
            if reason is not None and (draft, name) not in self.arrived:
                lines.append(f"2-{draft}: in no test {name} reaches the engines")
        return lines
