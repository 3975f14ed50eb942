"""Compares `weft dissect --json` with tshark over the same captures, field by field.

agree.py WEFT CAPTURE...: exit status 1 and a line for each difference. Two comparisons for each capture:

 - MPA, DDP and RDMAP by packet: each field of BELOW has to have the same values in the same order in each packet.
   tshark does not decode RPC-over-RDMA for it: it loses the FPDU that follows a Send which it decodes as NFS in the
   same TCP segment.
 - RPC-over-RDMA, RPC and NFS by message. tshark tells a Call with a Read chunk where the chunk has arrived, so RPC
   messages are compared by XID and not by packet. Messages that tshark lost are not compared. A message that tshark
   alone has is a difference. Fields that one of both does not show are counted by name.

docs/dissect.md explains the differences that the tables below leave out.
"""

import collections
import json
import subprocess
import sys
import xml.etree.ElementTree

# The name of a field in dissect, by layer, and in tshark.
BELOW = {
    ("MPA", "M (Markers wanted)"): "iwarp_mpa.marker_flag",
    ("MPA", "C (CRC wanted)"): "iwarp_mpa.crc_flag",
    ("MPA", "R (rejected)"): "iwarp_mpa.rej_flag",
    ("MPA", "Rev"): "iwarp_mpa.rev",
    ("MPA", "PD_Length"): "iwarp_mpa.pdlength",
    ("MPA", "ULPDU_Length"): "iwarp_mpa.ulpdulength",
    ("MPA", "Marker"): "iwarp_mpa.marker_fpduptr",
    ("MPA", "CRC"): "iwarp_mpa.crc_check",
    ("DDP", "T (tagged)"): "iwarp_ddp.tagged_flag",
    ("DDP", "L (last)"): "iwarp_ddp.last_flag",
    ("DDP", "Resrv"): "iwarp_ddp.rsvd",
    ("DDP", "DV"): "iwarp_ddp.dv",
    ("DDP", "STag"): "iwarp_ddp.stag",
    ("DDP", "TO"): "iwarp_ddp.tagged_offset",
    ("DDP", "QN"): "iwarp_ddp.qn",
    ("DDP", "MSN"): "iwarp_ddp.msn",
    ("DDP", "MO"): "iwarp_ddp.mo",
    ("RDMAP", "RV"): "iwarp_rdma.version",
    ("RDMAP", "Rsv"): "iwarp_rdma.rsv",
    ("RDMAP", "Opcode"): "iwarp_rdma.opcode",
    ("RDMAP", "Invalidate STag"): "iwarp_rdma.inval_stag",
    ("RDMAP", "Data Sink STag"): "iwarp_rdma.sinkstag",
    ("RDMAP", "Data Sink TO"): "iwarp_rdma.sinkto",
    ("RDMAP", "RDMA Read Message Size"): "iwarp_rdma.rdmardsz",
    ("RDMAP", "Data Source STag"): "iwarp_rdma.srcstag",
    ("RDMAP", "Data Source TO"): "iwarp_rdma.srcto",
    ("RDMAP", "Layer"): "iwarp_rdma.term_layer",
    ("RDMAP", "M (DDP Segment Length)"): "iwarp_rdma.term_hdrct_m",
    ("RDMAP", "D (DDP header)"): "iwarp_rdma.hdrct_d",
    ("RDMAP", "R (RDMAP header)"): "iwarp_rdma.hdrct_r",
    ("RDMAP", "Request Identifier"): "iwarp_rdma.atomic.request_identifier",
    ("RDMAP", "Remote STag"): "iwarp_rdma.atomic.remote_stag",
    ("RDMAP", "Remote TO"): "iwarp_rdma.atomic.remote_tagged_offset",
    ("RDMAP", "Original Request Identifier"): "iwarp_rdma.atomic.original_request_identifier",
    ("RDMAP", "Original Remote Data Value"): "iwarp_rdma.atomic.original_remote_data_value",
}

# Of messages: compared if tshark shows the field at all.
HEADER = {
    "rdma_vers": "rpcordma.version",
    "rdma_credit": "rpcordma.flow_control",
    "rdma_proc": "rpcordma.msg_type",
    "position": "rpcordma.position",
    "handle": "rpcordma.rdma_handle",
    "length": "rpcordma.rdma_length",
    "offset": "rpcordma.rdma_offset",
    "rdma_err": "rpcordma.errcode",
    "rdma_vers_low": "rpcordma.vers_low",
    "rdma_vers_high": "rpcordma.vers_high",
}
RPC = {
    "program": ["rpc.program"],
    "version": ["rpc.programversion"],
    "procedure": ["rpc.procedure"],
    "reply_stat": ["rpc.replystat"],
    "accept_stat": ["rpc.state_accept"],
    "operation": ["nfs.opcode"],
    "fh": ["nfs.fh.hash"],
    "name": ["nfs.name", "nfs.pathname.component", "nfs.path"],
    "offset": ["nfs.offset3", "nfs.offset4"],
    "count": ["nfs.count3", "nfs.count4"],
    "status": ["nfs.status3", "nfs.status"],
}


def number(text):
    """The number of a value: "12 (RDMA Write)", "0x0000001f"; the text itself where there is none at its front."""
    if str(text).startswith("the frame began "):  # a Marker
        return int(str(text).split(" ")[3])
    word = str(text).split(" ")[0].split(" (")[0]
    try:
        return int(word, 0)
    except ValueError:
        return str(text)


def tshark(capture, *options):
    run = subprocess.run(["tshark", "-2", "-n", "-o", "tcp.reassemble_out_of_order:TRUE", "-r", capture, "-T", "pdml",
                          *options], capture_output=True)
    if run.returncode != 0:
        sys.exit(f"{capture}: tshark: {run.stderr.decode()}")
    return enumerate(xml.etree.ElementTree.fromstring(run.stdout).iter("packet"), 1)


def dissect(weft, capture):
    run = subprocess.run([weft, "dissect", "--json", capture], capture_output=True, check=True)
    return [json.loads(line) for line in run.stdout.decode().splitlines()]


def shown_value(field):
    if field.get("name") == "iwarp_mpa.crc_check":
        return "good" if "(Good CRC32)" in field.get("showname") else "BAD"
    flags = {"True": 1, "False": 0}  # as tshark 4.4 shows them; 4.0 has the numbers
    return flags.get(field.get("show"), number(field.get("show")))


def below_of_tshark(capture):
    packets = collections.defaultdict(lambda: collections.defaultdict(list))
    names = set(BELOW.values())
    options = ["--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct"]
    for packet, tree in tshark(capture, *options):
        for field in tree.iter("field"):
            if field.get("name") in names:
                packets[packet][field.get("name")].append(shown_value(field))
    return packets


def text_of(field):
    """The text of a field: that of a number may say more than the number."""
    return str(field.get("text", field["value"]))


def below_of_dissect(lines):
    packets = collections.defaultdict(lambda: collections.defaultdict(list))
    for frame in lines:
        for layer in frame.get("layers", []):
            for field in layer["fields"]:
                name = BELOW.get((layer["layer"], field["name"]))
                if name and not (name == "iwarp_mpa.crc_check" and field["value"] == "not in use"):
                    packets[frame["packet"]][name].append(number(text_of(field)))
    return packets


def judge_below(capture, lines):
    ours, theirs = below_of_dissect(lines), below_of_tshark(capture)
    compared = 0
    for packet in sorted(ours.keys() | theirs.keys()):
        for name in sorted(set(ours[packet]) | set(theirs[packet])):
            a, b = ours[packet][name], theirs[packet][name]
            compared += len(b)
            if a != b:
                yield f"{capture}: packet {packet}: {name}: dissect {show(a)}, tshark {show(b)}"
    yield compared


def messages_of_tshark(capture):
    """RPC-over-RDMA headers by packet, in order, and RPC messages by XID and type."""
    headers, rpcs = {}, {}
    for packet, tree in tshark(capture):
        parts = [part for part in tree.findall("proto") if part.get("name") in ("rpcordma", "rpc", "nfs", "mount")]
        if not any(part.get("name") == "rpcordma" for part in parts):
            continue
        values = collections.defaultdict(list)
        for part in parts:
            for field in part.iter("field"):
                values[field.get("name")].append(number(field.get("show")))
        if len(values["rpcordma.xid"]) == 1:
            headers[packet] = values
        if len(values["rpc.xid"]) == 1:
            rpcs[(values["rpc.xid"][0], values["rpc.msgtyp"][0])] = values
    return headers, rpcs


def messages_of_dissect(lines):
    headers, rpcs, packets = {}, {}, collections.Counter()
    for frame in lines:
        for layer in frame.get("layers", []):
            values = collections.defaultdict(list)
            for field in layer["fields"]:
                values[field["name"]].append(number(text_of(field)))
            if layer["layer"] == "RPC-over-RDMA" and values:
                packets[frame["packet"]] += 1
                headers[frame["packet"]] = values
            elif layer["layer"] == "RPC" and values["xid"]:
                rpcs.setdefault((values["xid"][0], values["msg_type"][0]), values)
    # Packets with several messages: tshark may have lost some.
    several = {packet for packet, count in packets.items() if count > 1}
    return {packet: values for packet, values in headers.items() if packet not in several}, rpcs, several


def judge_messages(capture, lines):
    our_headers, our_rpcs, several = messages_of_dissect(lines)
    their_headers, their_rpcs = messages_of_tshark(capture)
    compared, skipped = 0, collections.Counter()
    for packet in sorted(their_headers.keys() - our_headers.keys() - several):
        yield f"{capture}: packet {packet}: tshark alone has an RPC-over-RDMA header"
    for key in sorted(their_rpcs.keys() - our_rpcs.keys()):
        yield f"{capture}: tshark alone has the {message_str(key)}"
    skipped["messages of packets with several, which tshark loses"] += len(several)
    skipped["headers that tshark lost"] += len(our_headers.keys() - their_headers.keys())
    skipped["RPC messages that tshark lost"] += len(our_rpcs.keys() - their_rpcs.keys())
    for packet in sorted(our_headers.keys() & their_headers.keys()):
        for name, theirs in HEADER.items():
            a, b = our_headers[packet][name], their_headers[packet][theirs]
            compared += len(b)
            if not b:
                skipped[f"{name}, which tshark does not show"] += len(a)
            if b and a != b:
                yield f"{capture}: packet {packet}: {theirs}: dissect {show(a)}, tshark {show(b)}"
    for key in sorted(our_rpcs.keys() & their_rpcs.keys()):
        for name, names in RPC.items():
            a = our_rpcs[key][name]
            b = next((their_rpcs[key][theirs] for theirs in names if their_rpcs[key][theirs]), [])
            if not a or not b:
                skipped[f"{name}, which {'tshark' if a else 'dissect'} does not show"] += len(a) + len(b)
                continue
            compared += len(a)
            # tshark also shows handles, names and counts in results, and repeats some; dissect tells the main ones.
            if not is_part(a, b):
                yield f"{capture}: {message_str(key)}: {name}: dissect {show(a)}, tshark {show(b)}"
    yield compared
    yield skipped


def message_str(key):
    return f"{'Reply' if key[1] else 'Call'} with XID {key[0]:#010x}"


def is_part(some, all_of):
    """Whether `some` stand in `all_of` in this order."""
    rest = iter(all_of)
    return all(any(one == other for other in rest) for one in some)


def show(values):
    return ", ".join(hex(value) if isinstance(value, int) else value for value in values[:12]) or "nothing"


def main(weft, captures):
    differences, total, skipped = 0, 0, collections.Counter()
    for capture in captures:
        lines = dissect(weft, capture)
        counts = []
        for judge in (judge_below, judge_messages):
            for found in judge(capture, lines):
                if isinstance(found, int):
                    counts.append(found)
                    continue
                if isinstance(found, collections.Counter):
                    skipped.update(found)
                    continue
                differences += 1
                if differences <= 40:
                    print(found, file=sys.stderr)
        print(f"{capture}: {counts[0]} fields of MPA, DDP and RDMAP and {counts[1]} above compared")
        total += sum(counts)
    print("not compared:")
    for name, count in sorted((+skipped).items()):
        print(f"  {count} {name}")
    if differences:
        sys.exit(f"FAILED: {differences} differences")
    if total == 0:
        sys.exit("FAILED: nothing was compared")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
