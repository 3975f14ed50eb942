-- The parts of iWARP that Wireshark's dissectors leave out: the words of MPA revision 2 (RFC 6581 sections 6, 8 and 9), Immediate
-- Data (RFC 7306 section 6), and the private data of RPC-over-RDMA version 1 (RFC 8797 section 4).
--
-- A post-dissector: it finds the frames through the fields of iwarp_mpa and iwarp_ddp_rdmap, and reads the octets from
-- the buffer of these fields.

local proto = Proto("weft_iwarp", "iWARP extensions (RFC 6581, 7306, 8797)")

local f = proto.fields
f.s_flag = ProtoField.bool("weft_iwarp.mpa.s_flag", "Enhanced connection data (S)", 8, nil, 0x10)
f.peer_to_peer = ProtoField.bool("weft_iwarp.mpa.a_flag", "Peer-to-peer connection (A)", 32, nil, 0x80000000)
f.rtr_send = ProtoField.bool("weft_iwarp.mpa.b_flag", "RTR by a Send of no bytes (B)", 32, nil, 0x40000000)
f.ird = ProtoField.uint32("weft_iwarp.mpa.ird", "IRD", base.DEC, nil, 0x3fff0000)
f.rtr_write = ProtoField.bool("weft_iwarp.mpa.c_flag", "RTR by an RDMA Write of no bytes (C)", 32, nil, 0x8000)
f.rtr_read = ProtoField.bool("weft_iwarp.mpa.d_flag", "RTR by an RDMA Read of no bytes (D)", 32, nil, 0x4000)
f.ord = ProtoField.uint32("weft_iwarp.mpa.ord", "ORD", base.DEC, nil, 0x3fff)
f.term_error = ProtoField.string("weft_iwarp.mpa.term_error", "MPA error")
f.format = ProtoField.uint32("weft_iwarp.rpcrdma1.format", "Format identifier", base.HEX)
f.version = ProtoField.uint8("weft_iwarp.rpcrdma1.version", "Version")
f.invalidation = ProtoField.bool("weft_iwarp.rpcrdma1.r_flag", "Remote invalidation (R)", 8, nil, 0x01)
f.send_size = ProtoField.uint32("weft_iwarp.rpcrdma1.send_size", "Send size in bytes")
f.receive_size = ProtoField.uint32("weft_iwarp.rpcrdma1.receive_size", "Receive size in bytes")
f.opcode = ProtoField.string("weft_iwarp.rdma.opcode", "RDMAP message")
f.immediate_data = ProtoField.uint64("weft_iwarp.rdma.immediate_data", "Immediate Data", base.HEX)

local malformed = ProtoExpert.new("weft_iwarp.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
proto.experts = { malformed }

local mpa_key_fields = { Field.new("iwarp_mpa.key.req"), Field.new("iwarp_mpa.key.rep") }
local mpa_ulpdu_length = Field.new("iwarp_mpa.ulpdulength")
local ddp_header = Field.new("iwarp_ddp")
local rdma_opcode = Field.new("iwarp_rdma.opcode")
local term_error_llp = Field.new("iwarp_rdma.term_errcode_llp")

-- Wireshark 4.6 shows the words of MPA revision 2 itself (iwarp_mpa.enhanced.*).
local shows_connection_data = not pcall(Field.new, "iwarp_mpa.enhanced_flag")

local UNTAGGED_HEADER_LEN = 18
local RPCRDMA1_FORMAT = 0xf6ab0e18
local NO_DEPTH = 0x3fff -- RFC 6581 section 9.1
local IMMEDIATE_NAMES = { [8] = "Immediate Data", [9] = "Immediate Data with Solicited Event" }
local TERM_ERRORS = {
  [5] = "Local catastrophic",
  [6] = "Insufficient IRD resources",
  [7] = "No matching RTR option",
}

-- octets returns length octets of a buffer (Tvb or TvbRange) from offset, or nil where the buffer ends before.
local function octets(buffer, offset, length)
  if length <= 0 or offset + length > buffer:len() then
    return nil
  end
  return buffer(offset, length)
end

-- LazyTree makes the subtree of this dissector with the first item in it.
local LazyTree = {}
LazyTree.__index = LazyTree

function LazyTree.new(root)
  return setmetatable({ root = root }, LazyTree)
end

function LazyTree:get()
  self.item = self.item or self.root:add(proto, "iWARP extensions")
  return self.item
end

function LazyTree:malformed(text)
  self:get():add_proto_expert_info(malformed, "Malformed: " .. text)
end

local function add_depth(tree, field, word, first_bit)
  local item = tree:add(field, word)
  if word:bitfield(first_bit, 14) == NO_DEPTH then
    item:append_text(" (not negotiated)")
  end
end

local function add_connection_data(tree, private)
  local word = private and octets(private, 0, 4)
  if not word then
    tree:malformed("the private data ends within the enhanced connection data")
    return
  end
  if not shows_connection_data then
    return
  end
  local data = tree:get():add(word, "Enhanced RDMA connection establishment data (RFC 6581)")
  data:add(f.peer_to_peer, word)
  data:add(f.rtr_send, word)
  add_depth(data, f.ird, word, 2)
  data:add(f.rtr_write, word)
  data:add(f.rtr_read, word)
  add_depth(data, f.ord, word, 18)
end

local function add_rpcrdma1(tree, private, offset)
  local format = private and octets(private, offset, 4)
  if not format or format:uint() ~= RPCRDMA1_FORMAT then
    return
  end
  local rest = octets(private, offset + 4, 4)
  if not rest then
    tree:malformed("the private data ends within the message of RFC 8797")
    return
  end
  local data = tree:get():add(private(offset, 8), "RPC-over-RDMA version 1 private data (RFC 8797)")
  data:add(f.format, format)
  data:add(f.version, rest(0, 1))
  if rest(0, 1):uint() == 1 then
    data:add(f.invalidation, rest(1, 1))
    data:add(f.send_size, rest(2, 1), (rest(2, 1):uint() + 1) * 1024)
    data:add(f.receive_size, rest(3, 1), (rest(3, 1):uint() + 1) * 1024)
  end
end

-- A startup frame is a key of 16 octets, flags, the revision, the length of the private data, and the private data.
local function add_startup_frame(tree, key)
  local head = octets(key.source, key.offset + 16, 4)
  if not head then
    return
  end
  local length = head(2, 2):uint()
  local private = octets(key.source, key.offset + 20, length)
  if length > 0 and not private then
    tree:malformed("the private data ends beyond the frame")
    return
  end
  local has_connection_data = false
  if head(1, 1):uint() >= 2 then
    if shows_connection_data then
      tree:get():add(f.s_flag, head(0, 1))
    end
    has_connection_data = head(0, 1):bitfield(3, 1) == 1
  end
  if has_connection_data then
    add_connection_data(tree, private)
  end
  add_rpcrdma1(tree, private, has_connection_data and 4 or 0)
end

local function add_immediate_data(tree, pinfo, header, opcode, ulpdu_length)
  local name = IMMEDIATE_NAMES[opcode]
  tree:get():add(f.opcode, header.range, name)
  pinfo.cols.info = tostring(pinfo.cols.info):gsub("Unknown " .. opcode, name)
  local data = octets(header.source, header.offset + UNTAGGED_HEADER_LEN, 8)
  if ulpdu_length ~= UNTAGGED_HEADER_LEN + 8 or not data then
    tree:malformed("Immediate Data is not 8 bytes long")
    return
  end
  tree:get():add(f.immediate_data, data)
end

-- Every FPDU has one of each of these fields, in the same order.
local function add_immediates(tree, pinfo)
  local headers, opcodes, lengths = { ddp_header() }, { rdma_opcode() }, { mpa_ulpdu_length() }
  if #headers ~= #opcodes or #headers ~= #lengths then
    return
  end
  for i, opcode in ipairs(opcodes) do
    if IMMEDIATE_NAMES[opcode.value] then
      add_immediate_data(tree, pinfo, headers[i], opcode.value, lengths[i].value)
    end
  end
end

local function add_term_error(tree)
  local code = term_error_llp()
  local name = code and TERM_ERRORS[code.value]
  if name then
    tree:get():add(f.term_error, code.range, name)
  end
end

local function add_all(tree, pinfo)
  for _, key_field in ipairs(mpa_key_fields) do
    for _, key in ipairs({ key_field() }) do
      add_startup_frame(tree, key)
    end
  end
  add_immediates(tree, pinfo)
  add_term_error(tree)
end

function proto.dissector(_, pinfo, root)
  local tree = LazyTree.new(root)
  if not pcall(add_all, tree, pinfo) then
    tree:malformed("these octets cannot be read")
  end
end

register_postdissector(proto)
