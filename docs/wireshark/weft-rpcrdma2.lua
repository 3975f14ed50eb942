-- RPC-over-RDMA version 2 over iWARP, which Wireshark's rpcordma leaves alone: draft-cel-nfsv4-rpcrdma-version-two-05
-- ("cel05") and draft-ietf-nfsv4-rpcrdma-version-two-07 ("wg07").
--
-- A heuristic dissector of iwarp_ddp_rdmap, and a post-dissector for the messages that rpcordma hides from it. Both
-- drafts write version 2 into the header and give the types 4 to 9 different meanings: the types that only one of them
-- has tell the draft of a connection.

local proto = Proto("rpcrdma2", "RPC-over-RDMA version 2")

local UNTAGGED_HEADER_LEN = 18
local MAX_ITEMS = 20000 -- of one message in the tree
local MAX_ASSEMBLED = 1048576 -- bytes of one continued message
local MAX_KEPT = 67108864 -- bytes of all continued messages
local MAX_CALLS = 65536 -- remembered for their Replies
local MAX_FILL = 1048576 -- bytes that stand for chunks in one RPC message

local f = proto.fields
f.draft = ProtoField.string("rpcrdma2.draft", "Draft")
f.xid = ProtoField.uint32("rpcrdma2.xid", "XID", base.HEX)
f.version = ProtoField.uint32("rpcrdma2.version", "Version")
f.credit = ProtoField.uint32("rpcrdma2.credit", "Credit")
f.type = ProtoField.uint32("rpcrdma2.type", "Type")
f.type_name = ProtoField.string("rpcrdma2.type_name", "Type name")
f.direction = ProtoField.uint32("rpcrdma2.direction", "Direction", base.DEC, { [0] = "CALL", [1] = "REPLY" })
f.inv_handle = ProtoField.uint32("rpcrdma2.inv_handle", "Handle to invalidate", base.HEX)
f.remaining = ProtoField.uint32("rpcrdma2.remaining", "Remaining bytes")
f.present = ProtoField.uint32("rpcrdma2.list.present", "Present", base.DEC, { [0] = "No", [1] = "Yes" })
f.position = ProtoField.uint32("rpcrdma2.position", "Position")
f.handle = ProtoField.uint32("rpcrdma2.handle", "Handle", base.HEX)
f.length = ProtoField.uint32("rpcrdma2.length", "Length")
f.offset = ProtoField.uint64("rpcrdma2.offset", "Offset", base.HEX)
f.segment_count = ProtoField.uint32("rpcrdma2.segment_count", "Segments")
f.error = ProtoField.uint32("rpcrdma2.error", "Error")
f.error_name = ProtoField.string("rpcrdma2.error_name", "Error name")
f.vers_low = ProtoField.uint32("rpcrdma2.vers_low", "Lowest version")
f.vers_high = ProtoField.uint32("rpcrdma2.vers_high", "Highest version")
f.max_chunks = ProtoField.uint32("rpcrdma2.max_chunks", "Most chunks")
f.max_segments = ProtoField.uint32("rpcrdma2.max_segments", "Most segments")
f.chunk_index = ProtoField.uint32("rpcrdma2.chunk_index", "Chunk index")
f.length_needed = ProtoField.uint32("rpcrdma2.length_needed", "Length needed")
f.opttype = ProtoField.uint32("rpcrdma2.opttype", "Option type", base.HEX)
f.optinfo = ProtoField.bytes("rpcrdma2.optinfo", "Option")
f.property_count = ProtoField.uint32("rpcrdma2.property_count", "Properties")
f.property_id = ProtoField.uint32("rpcrdma2.property.id", "Property")
f.property_name = ProtoField.string("rpcrdma2.property.name", "Property name")
f.property_length = ProtoField.uint32("rpcrdma2.property.length", "Value length")
f.property_value = ProtoField.uint32("rpcrdma2.property.value", "Value")
f.property_octets = ProtoField.bytes("rpcrdma2.property.octets", "Value")
f.subset_count = ProtoField.uint32("rpcrdma2.subset_count", "Words")
f.subset_word = ProtoField.uint32("rpcrdma2.subset_word", "Positions", base.HEX)
f.payload = ProtoField.bytes("rpcrdma2.payload", "Payload")
f.note = ProtoField.string("rpcrdma2.note", "Note")

local malformed = ProtoExpert.new("rpcrdma2.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
proto.experts = { malformed }

local ddp_header = Field.new("iwarp_ddp")
local ddp_last = Field.new("iwarp_ddp.last_flag")
local mpa_ulpdu_length = Field.new("iwarp_mpa.ulpdulength")
local rdma_opcode = Field.new("iwarp_rdma.opcode")
local shown_xid = Field.new("rpcrdma2.xid")
local rpc_dissector = Dissector.get("rpc")

-- Reader reads XDR and keeps the items as nodes for the tree. Every length is checked before use. Trouble is a Lua
-- error whose value is a table with a text.
local Reader = {}
Reader.__index = Reader

function Reader.new(tvb)
  local root = { children = {}, first = 0 }
  return setmetatable({ tvb = tvb, at = 0, root = root, group_node = root, num_items = 0 }, Reader)
end

local function fail(text)
  error({ text = text })
end

function Reader:left()
  return self.tvb:len() - self.at
end

function Reader:take(length, what)
  if length > self:left() then
    fail(what .. " ends beyond the message")
  end
  local first = self.at
  self.at = first + length
  return first
end

function Reader:add(node)
  self.num_items = self.num_items + 1
  if self.num_items > MAX_ITEMS then
    fail("more than " .. MAX_ITEMS .. " items")
  end
  table.insert(self.group_node.children, node)
  return node
end

function Reader:u32(field, what)
  local first = self:take(4, what)
  local value = self.tvb(first, 4):uint()
  self:add({ field = field, first = first, length = 4 })
  return value
end

-- named adds a generated field with the name of the number just read.
function Reader:named(field, name)
  self:add({ field = field, first = self.at - 4, length = 4, value = name, generated = true })
end

function Reader:u64(field, what)
  local first = self:take(8, what)
  self:add({ field = field, first = first, length = 8 })
end

function Reader:octets(field, length, what)
  local padded = length + (4 - length % 4) % 4
  local first = self:take(padded, what)
  if length > 0 then
    self:add({ field = field, first = first, length = length })
  end
end

function Reader:group(text, body)
  local outer = self.group_node
  self.group_node = self:add({ text = text, first = self.at, children = {} })
  local result = body()
  self.group_node.length = self.at - self.group_node.first
  self.group_node = outer
  return result
end

-- Chunk lists. Each returns the number of its bytes, or of the list a table of its segments.

local function read_present(reader, what)
  local present = reader:u32(f.present, what)
  if present > 1 then
    fail(what .. ": neither present nor absent")
  end
  return present == 1
end

local function read_segment(reader)
  reader:u32(f.handle, "A segment")
  local length = reader:u32(f.length, "A segment")
  reader:u64(f.offset, "A segment")
  return length
end

local function read_read_list(reader, title)
  return reader:group(title, function()
    local segments = {}
    while read_present(reader, title) do
      reader:group("Read segment", function()
        local position = reader:u32(f.position, "A Read segment")
        table.insert(segments, { position = position, length = read_segment(reader) })
      end)
    end
    return segments
  end)
end

local function read_segments(reader)
  local count = reader:u32(f.segment_count, "A chunk")
  if count > reader:left() / 16 then
    fail("a chunk has more segments than the message")
  end
  local total = 0
  for _ = 1, count do
    total = total + reader:group("Segment", function() return read_segment(reader) end)
  end
  return total
end

local function read_write_list(reader)
  return reader:group("Write list", function()
    local total = 0
    while read_present(reader, "Write list") do
      total = total + reader:group("Write chunk", function() return read_segments(reader) end)
    end
    return total
  end)
end

local function read_reply_chunk(reader)
  return reader:group("Reply chunk", function()
    return read_present(reader, "Reply chunk") and read_segments(reader) or 0
  end)
end

local function read_lists(reader, message)
  message.reads = read_read_list(reader, "Read list")
  message.written = read_write_list(reader)
  message.reply_chunk = read_reply_chunk(reader)
end

local function has_position_zero(reads)
  for _, segment in ipairs(reads) do
    if segment.position == 0 and segment.length > 0 then
      return true
    end
  end
  return false
end

-- Properties and errors, which both drafts write alike and number differently.

local function read_property_value(reader, property, length)
  if not property or length == 0 then
    reader:octets(f.property_octets, length, "The value of a property")
  elseif property.is_opaque then
    local inner = reader:u32(f.property_length, "The value of a property")
    if length < 4 or inner > length - 4 or length ~= 4 + inner + (4 - inner % 4) % 4 then
      fail("the value of a property is no opaque")
    end
    reader:octets(f.property_octets, inner, "The value of a property")
  elseif length ~= 4 then
    fail("the value of a property is not 4 bytes long")
  else
    local value = reader:u32(f.property_value, "The value of a property")
    if property.levels then
      if not property.levels[value] then
        fail("a property has an unknown value")
      end
      reader:named(f.note, property.levels[value])
    end
  end
end

local function read_propset(reader, draft, title)
  reader:group(title, function()
    local count = reader:u32(f.property_count, title)
    if count > reader:left() / 8 then
      fail("more properties than the message has")
    end
    for _ = 1, count do
      reader:group("Property", function()
        local property = draft.properties[reader:u32(f.property_id, "A property")]
        reader:named(f.property_name, property and property.name or "unknown")
        local length = reader:u32(f.property_length, "A property")
        if length > reader:left() then
          fail("the value of a property ends beyond the message")
        end
        read_property_value(reader, property, length)
      end)
    end
  end)
end

local function read_propsubset(reader, title)
  reader:group(title, function()
    local count = reader:u32(f.subset_count, title)
    if count > reader:left() / 4 then
      fail("more words than the message has")
    end
    for _ = 1, count do
      reader:u32(f.subset_word, title)
    end
  end)
end

local ERROR_ARMS = {
  versions = { f.vers_low, f.vers_high },
  chunks = { f.max_chunks },
  segments = { f.max_segments },
  write_resource = { f.chunk_index, f.length_needed },
  length = { f.length_needed },
  none = {},
}

local function read_error(reader, draft, message)
  local code = reader:u32(f.error, "The error")
  local known = draft.errors[code]
  if not known then
    fail("unknown error " .. code)
  end
  reader:named(f.error_name, known[1])
  message.error, message.error_name = code, known[1]
  for _, field in ipairs(ERROR_ARMS[known[2]]) do
    reader:u32(field, "The error")
  end
end

-- cel05. A type is its name, its reader, and, where it has a Payload, the fewest bytes of that.

local cel05 = { name = "draft-cel-nfsv4-rpcrdma-version-two-05", error_vers = { [1] = true } }

cel05.errors = {
  [1] = { "RDMA2_ERR_VERS", "versions" },
  [2] = { "RDMA2_ERR_BAD_XDR", "none" },
  [3] = { "RDMA2_ERR_INVAL_PROC", "none" },
  [4] = { "RDMA2_ERR_READ_CHUNKS", "chunks" },
  [5] = { "RDMA2_ERR_WRITE_CHUNKS", "chunks" },
  [6] = { "RDMA2_ERR_SEGMENTS", "segments" },
  [7] = { "RDMA2_ERR_WRITE_RESOURCE", "write_resource" },
  [8] = { "RDMA2_ERR_REPLY_RESOURCE", "length" },
  [9] = { "RDMA2_ERR_INVAL_OPTION", "none" },
  [10] = { "RDMA2_ERR_SYSTEM", "none" },
}

cel05.properties = {
  [1] = { name = "RDMA2_PROPID_RBSIZ" },
  [2] = {
    name = "RDMA2_PROPID_BRS",
    levels = { [0] = "RDMA2_BKREQSUP_NONE", "RDMA2_BKREQSUP_INLINE", "RDMA2_BKREQSUP_GENL" },
  },
}

local function read_direction(reader, message)
  local direction = reader:u32(f.direction, "The direction")
  if direction > 1 then
    fail("unknown direction")
  end
  message.is_reply = direction == 1
end

local function read_cel05_lists(reader, message)
  read_direction(reader, message)
  reader:u32(f.inv_handle, "The header")
  read_lists(reader, message)
end

cel05.types = {
  [0] = {
    name = "RDMA2_MSG",
    min_payload = 8,
    read = function(reader, message)
      read_cel05_lists(reader, message)
      message.is_whole = true
    end,
  },
  [1] = {
    name = "RDMA2_NOMSG",
    read = function(reader, message)
      read_cel05_lists(reader, message)
      local has_chunk = message.is_reply and message.reply_chunk > 0 or has_position_zero(message.reads)
      if not has_chunk then
        fail("no chunk has the RPC message")
      end
    end,
  },
  [4] = { name = "RDMA2_ERROR", read = function(reader, message) read_error(reader, cel05, message) end },
  [5] = {
    name = "RDMA2_OPTIONAL",
    min_payload = 0,
    read = function(reader, message)
      read_direction(reader, message)
      reader:u32(f.opttype, "The option")
      local length = reader:u32(f.property_length, "The option")
      reader:octets(f.optinfo, length, "The option")
    end,
  },
  [6] = {
    name = "RDMA2_CONNPROP",
    read = function(reader)
      read_propset(reader, cel05, "Properties")
      read_propsubset(reader, "Unchanging properties")
    end,
  },
  [7] = { name = "RDMA2_REQPROP", read = function(reader) read_propset(reader, cel05, "Wanted properties") end },
  [8] = {
    name = "RDMA2_RESPROP",
    read = function(reader)
      read_propsubset(reader, "Done")
      read_propsubset(reader, "Rejected")
      read_propset(reader, cel05, "Other properties")
    end,
  },
  [9] = { name = "RDMA2_UPDPROP", read = function(reader) read_propset(reader, cel05, "Properties now") end },
}

-- wg07.

local wg07 = { name = "draft-ietf-nfsv4-rpcrdma-version-two-07", error_vers = { [1] = true, [11] = true } }

wg07.errors = {
  [1] = { "RDMA2_ERR_VERS", "versions" },
  [2] = { "RDMA2_ERR_BAD_XDR", "none" },
  [3] = { "RDMA2_ERR_BAD_PROPVAL", "none" },
  [4] = { "RDMA2_ERR_INVAL_HTYPE", "none" },
  [5] = { "RDMA2_ERR_INVAL_CONT", "none" },
  [6] = { "RDMA2_ERR_READ_CHUNKS", "chunks" },
  [7] = { "RDMA2_ERR_WRITE_CHUNKS", "chunks" },
  [8] = { "RDMA2_ERR_SEGMENTS", "segments" },
  [9] = { "RDMA2_ERR_WRITE_RESOURCE", "write_resource" },
  [10] = { "RDMA2_ERR_REPLY_RESOURCE", "length" },
  [11] = { "RDMA2_ERR_VERS_MISMATCH", "none" },
  [100] = { "RDMA2_ERR_SYSTEM", "none" },
}

wg07.properties = {
  [1] = { name = "RDMA2_PROPID_SBSIZ" },
  [2] = { name = "RDMA2_PROPID_RBSIZ" },
  [3] = { name = "RDMA2_PROPID_RSSIZ" },
  [4] = { name = "RDMA2_PROPID_RCSIZ" },
  [5] = {
    name = "RDMA2_PROPID_BRS",
    levels = { [0] = "RDMA2_RVRSDIR_NONE", "RDMA2_RVRSDIR_SIMPLE", "RDMA2_RVRSDIR_CONT", "RDMA2_RVRSDIR_GENL" },
  },
  [6] = { name = "RDMA2_PROPID_HOSTAUTH", is_opaque = true },
}

local function read_wg07_properties(reader)
  read_propset(reader, wg07, "Properties")
end

local function read_call_lists(reader, message)
  read_lists(reader, message)
  local last = 1
  for _, segment in ipairs(message.reads) do
    if segment.position < last then
      fail("Positions are 0 or do not rise")
    end
    last = segment.position
  end
end

local function read_middle(is_reply)
  return function(reader, message)
    message.is_reply = is_reply
    message.is_part = true
    reader:u32(f.remaining, "The header")
  end
end

wg07.types = {
  [4] = { name = "RDMA2_ERROR", read = function(reader, message) read_error(reader, wg07, message) end },
  [5] = { name = "RDMA2_GRANT", read = function() end },
  [6] = { name = "RDMA2_CONNPROP_MIDDLE", read = read_wg07_properties },
  [7] = { name = "RDMA2_CONNPROP_FINAL", read = read_wg07_properties },
  [8] = {
    name = "RDMA2_CALL_EXTERNAL",
    read = function(reader, message)
      reader:u32(f.inv_handle, "The header")
      if not has_position_zero(read_read_list(reader, "Call chunk")) then
        fail("the Call chunk is empty")
      end
      read_call_lists(reader, message)
    end,
  },
  [9] = { name = "RDMA2_CALL_MIDDLE", min_payload = 4, read = read_middle(false) },
  [10] = {
    name = "RDMA2_CALL_INLINE",
    min_payload = 4,
    read = function(reader, message)
      reader:u32(f.inv_handle, "The header")
      read_call_lists(reader, message)
      message.is_whole = true
    end,
  },
  [11] = {
    name = "RDMA2_REPLY_EXTERNAL",
    read = function(reader, message)
      message.is_reply = true
      read_write_list(reader)
      if read_reply_chunk(reader) == 0 then
        fail("the Reply chunk is empty")
      end
    end,
  },
  [12] = { name = "RDMA2_REPLY_MIDDLE", min_payload = 4, read = read_middle(true) },
  [13] = {
    name = "RDMA2_REPLY_INLINE",
    min_payload = 4,
    read = function(reader, message)
      message.is_reply = true
      message.written = read_write_list(reader)
      message.is_whole = true
    end,
  },
}

-- parse reads a message as one draft has it. The result has the reader with its nodes; `trouble`, a text, where it is
-- malformed; `payload`, the offset of the Payload, where it has one.

local function check_payload(tvb, message, min_payload)
  local reader = message.reader
  if not min_payload then
    if reader:left() > 0 then
      fail("bytes behind the header")
    end
    return
  end
  if reader:left() < min_payload then
    fail("no Payload")
  end
  if message.draft == cel05 and message.is_whole then
    if tvb(reader.at, 4):uint() ~= message.xid then
      fail("the RPC message has another XID")
    end
    if tvb(reader.at + 4, 4):uint() ~= (message.is_reply and 1 or 0) then
      fail("the RPC message has another direction")
    end
  end
  message.payload = reader:left() > 0 and reader.at or nil
end

local function read_message(tvb, message)
  local reader, draft = message.reader, message.draft
  message.xid = reader:u32(f.xid, "The header")
  local version = reader:u32(f.version, "The header")
  reader:u32(f.credit, "The header")
  message.type = reader:u32(f.type, "The header")
  local known = draft.types[message.type]
  if not known then
    fail("the draft has no type " .. message.type)
  end
  message.name = known.name
  reader:named(f.type_name, known.name)
  known.read(reader, message)
  if version ~= 2 and not draft.error_vers[message.error] then
    fail("version " .. version)
  end
  check_payload(tvb, message, known.min_payload)
end

local function parse(tvb, draft)
  local message = { draft = draft, reader = Reader.new(tvb), reads = {}, written = 0, error = 0 }
  local ok, trouble = pcall(read_message, tvb, message)
  if not ok then
    message.trouble = type(trouble) == "table" and trouble.text or "these octets cannot be read"
  end
  return message
end

-- State of the connections. Frames are read in their order once; the findings are kept for later readings.

local connections, kept, num_kept = {}, {}, 0
local opened, num_opened = {}, 0 -- by frame and sender: the Send of several segments that goes on in it
local requests = {} -- the frames with an MPA Request, by the ends of their connection

function proto.init()
  connections, kept, num_kept, requests = {}, {}, 0, {}
  opened, num_opened = {}, 0
end

local function ends_of(pinfo)
  local a = tostring(pinfo.src) .. " " .. pinfo.src_port
  local b = tostring(pinfo.dst) .. " " .. pinfo.dst_port
  return a < b and a .. " " .. b or b .. " " .. a, a
end

-- A pair of ends can have several connections, one after the other. The field tcp.stream would tell them apart, but
-- Wireshark's first pass has no fields, and there the messages are learned. Each MPA Request begins a connection.
local function connection_of(pinfo)
  local key, sender = ends_of(pinfo)
  local number = 0
  for i, frame in ipairs(requests[key] or {}) do
    number = frame < pinfo.number and i or number
  end
  key = key .. " " .. number
  connections[key] = connections[key] or { parts = {}, calls = {}, num_calls = 0, open = {} }
  return connections[key], sender
end

local REQUEST_KEY, REQUEST_LEN, MAX_PRIVATE_DATA, MAX_FCS = "MPA ID Req Frame", 20, 512, 4

-- find_request looks for an MPA Request that ends with the packet.
local function find_request(tvb, pinfo)
  if pinfo.visited then
    return
  end
  local first = math.max(0, tvb:len() - REQUEST_LEN - MAX_PRIVATE_DATA - MAX_FCS)
  local octets = tvb:raw(first)
  local at = octets:find(REQUEST_KEY, 1, true)
  if not at or #octets - at + 1 < REQUEST_LEN then
    return
  end
  local high, low = octets:byte(at + 18, at + 19)
  local behind = #octets - (at - 1 + REQUEST_LEN + high * 256 + low)
  if behind >= 0 and behind <= MAX_FCS then
    local key = ends_of(pinfo)
    requests[key] = requests[key] or {}
    table.insert(requests[key], pinfo.number)
  end
end

-- Whether the octets are rdma_remaining of a RDMA2_CALL_MIDDLE and the beginning of an RPC Call.
local function begins_call(tvb)
  return tvb:len() >= 28 and tvb(20, 4):uint() == tvb(0, 4):uint() and tvb(24, 4):uint() == 0
end

local function drafts_to_try(tvb, connection)
  local type_number = tvb(12, 4):uint()
  if not wg07.types[type_number] then
    return { cel05 }
  elseif not cel05.types[type_number] then
    return { wg07 }
  elseif connection.draft and type_number == 7 then
    return { connection.draft } -- both have a list of properties here: bad values in one are no sign of the other
  elseif connection.draft then
    return { connection.draft, connection.draft == wg07 and cel05 or wg07 }
  elseif type_number == 9 and not begins_call(tvb) then
    return { cel05, wg07 }
  end
  return { wg07, cel05 }
end

local function read_as_best(tvb, connection)
  local first
  for _, draft in ipairs(drafts_to_try(tvb, connection)) do
    local message = parse(tvb, draft)
    if not message.trouble then
      return message
    end
    first = first or message
  end
  return first
end

local function is_send_opcode(opcode)
  return opcode >= 3 and opcode <= 6
end

-- looks_like_version_2 leaves all to other dissectors that is not plainly version 2. Where the opcode is not known, as
-- in Wireshark's first pass, a message has to be free of faults.
local function looks_like_version_2(tvb, connection, message)
  local opcodes = { rdma_opcode() } -- of the FPDUs so far
  local opcode = opcodes[#opcodes]
  local is_send = opcode and is_send_opcode(opcode.value)
  if opcode and not is_send then
    return false
  end
  if tvb(4, 4):uint() ~= 2 then
    return not message.trouble and message.error == 1
  end
  return not message.trouble or connection.draft ~= nil or is_send
end

-- The RPC message: parts of a continued message together, and zeros in the place of data that went by chunks.

local function zeros(length)
  return string.rep("\0", length + (4 - length % 4) % 4)
end

local function total_length(reads)
  local total = 0
  for _, segment in ipairs(reads) do
    total = total + segment.length
  end
  return total
end

-- fill_call returns the Call with zeros for its Read chunks, or nil where a Position is none.
local function fill_call(octets, reads)
  local lengths, positions = {}, {}
  for _, segment in ipairs(reads) do
    if not lengths[segment.position] then
      table.insert(positions, segment.position)
    end
    lengths[segment.position] = (lengths[segment.position] or 0) + segment.length
  end
  table.sort(positions)
  local pieces, filled, taken = {}, 0, 0
  for _, position in ipairs(positions) do
    local inline = position - filled
    if inline < 0 or taken + inline > #octets then
      return nil
    end
    table.insert(pieces, octets:sub(taken + 1, taken + inline))
    table.insert(pieces, zeros(lengths[position]))
    taken = taken + inline
    filled = filled + inline + #pieces[#pieces]
  end
  table.insert(pieces, octets:sub(taken + 1))
  return table.concat(pieces)
end

local function u32_of(octets, offset)
  local a, b, c, d = octets:byte(offset + 1, offset + 4)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

local function remember_call(connection, octets)
  if #octets < 20 or u32_of(octets, 4) ~= 0 then
    return
  end
  if connection.num_calls >= MAX_CALLS then
    connection.calls, connection.num_calls = {}, 0
  end
  connection.num_calls = connection.num_calls + 1
  connection.calls[u32_of(octets, 0)] = { program = u32_of(octets, 12), version = u32_of(octets, 16) }
end

-- In NFS versions 2 and 3 the data item that a Write chunk may take is the last of the Reply.
local function ends_with_data(connection, octets)
  local call = #octets >= 4 and connection.calls[u32_of(octets, 0)]
  return call and call.program == 100003 and call.version <= 3
end

-- fill returns the RPC message with zeros for data that went by chunks, and a note; or nil and a note where that cannot
-- be done.
local function fill(message, found, octets)
  local length = message.is_reply and message.written or total_length(message.reads)
  if length == 0 then
    return octets, found.note
  elseif length > MAX_FILL then
    return nil, "data went by chunks: too much of it to decode the rest"
  elseif message.is_reply and not found.ends_with_data then
    return nil, "data went by Write chunks: its place in the RPC message is not known"
  end
  local filled = message.is_reply and octets .. zeros(length) or fill_call(octets, message.reads)
  if not filled then
    return nil, "a Read chunk has no place in the RPC message"
  end
  return filled, "zeros stand for the data that went by chunks"
end

local function payload_of(tvb, message)
  return tvb(message.payload, tvb:len() - message.payload):raw()
end

-- add_part puts octets behind a part. Beyond the limits it drops all of the message: a message without its middle would
-- be another message.
local function add_part(part, octets)
  if not part.is_too_long and #part.octets + #octets <= MAX_ASSEMBLED and num_kept + #octets <= MAX_KEPT then
    num_kept = num_kept + #octets
    part.octets = part.octets .. octets
  else
    num_kept = num_kept - #part.octets
    part.octets, part.is_too_long = "", true
  end
  part.count = part.count + 1
end

local function keep_part(connection, sender, message, octets)
  local key = sender .. " " .. message.xid
  connection.parts[key] = connection.parts[key] or { octets = "", count = 0 }
  add_part(connection.parts[key], octets)
end

-- take_parts returns the whole RPC message, and the findings to keep. The message is nil if it is too long.
local function take_parts(connection, sender, message, octets)
  local key = sender .. " " .. message.xid
  local part = connection.parts[key]
  connection.parts[key] = nil
  if not part then
    return octets, { draft = message.draft }
  end
  add_part(part, octets)
  if part.is_too_long then
    local note = "the end of " .. part.count .. " messages that are too long to be put together"
    return nil, { draft = message.draft, is_too_long = true, note = note }
  end
  local note = "put together from " .. part.count .. " messages"
  return part.octets, { draft = message.draft, assembled = part.octets, note = note }
end

-- learn reads a message for the first time.
local function learn(connection, sender, message, tvb)
  if message.error == 0 then
    connection.draft = message.draft
  end
  if message.payload and message.is_part then
    keep_part(connection, sender, message, payload_of(tvb, message))
  elseif message.payload and message.is_whole then
    local octets, found = take_parts(connection, sender, message, payload_of(tvb, message))
    if octets and message.is_reply then
      found.ends_with_data = ends_with_data(connection, octets)
    elseif octets then
      remember_call(connection, octets)
    end
    return found
  end
  return { draft = message.draft }
end

-- The tree and the columns.

local function add_nodes(tree, tvb, nodes, at_end)
  for _, node in ipairs(nodes) do
    local length = node.length or at_end - node.first
    local range = length > 0 and tvb(node.first, length) or nil
    if node.children then
      local subtree = range and tree:add(range, node.text) or tree:add(proto, node.text)
      add_nodes(subtree, tvb, node.children, at_end)
    elseif node.generated then
      tree:add(node.field, range, node.value):set_generated()
    else
      tree:add(node.field, range)
    end
  end
end

local function add_message(tree, tvb, message)
  local length = message.payload or tvb:len()
  local item = tree:add(proto, tvb(0, length))
  item:add(f.draft, message.draft.name):set_generated()
  add_nodes(item, tvb, message.reader.root.children, message.reader.at)
  if message.trouble then
    item:add_proto_expert_info(malformed, "Malformed: " .. message.trouble)
  end
  return item
end

local function set_columns(pinfo, message)
  pinfo.cols.protocol = "RPCoRDMA"
  local text = (message.name or "RPC-over-RDMA version 2")
  if message.error_name then
    text = text .. " " .. message.error_name
  end
  if message.xid then
    text = text .. string.format(" XID 0x%08x", message.xid)
  end
  pinfo.cols.info = message.trouble and text .. " [malformed]" or text
end

-- The rpc dissector reads the Payload where it is, unless the RPC message has other octets.
local function add_rpc(item, root, pinfo, tvb, message, found)
  local payload = tvb(message.payload, tvb:len() - message.payload)
  local octets, note
  if found.is_too_long then
    note = found.note
  elseif message.is_whole then
    octets, note = fill(message, found, found.assembled or payload_of(tvb, message))
  end
  if note then
    item:add(f.note, note):set_generated()
  end
  if not octets then
    item:add(f.payload, payload)
    return
  end
  local rpc = note and ByteArray.new(octets, true):tvb("RPC message") or payload:tvb()
  if not pcall(rpc_dissector.call, rpc_dissector, rpc, pinfo, root) then
    item:add_proto_expert_info(malformed, "Malformed: the RPC message")
  end
end

local function dissect(tvb, pinfo, root)
  if tvb:len() < 16 then
    return false
  end
  local connection, sender = connection_of(pinfo)
  local key = pinfo.number .. " " .. sender .. " " .. tvb(0, math.min(tvb:len(), 20)):raw()
  local found = kept[key]
  local message = found and parse(tvb, found.draft) or read_as_best(tvb, connection)
  if not looks_like_version_2(tvb, connection, message) then
    return false
  end
  if not found then
    found = message.trouble and { draft = message.draft } or learn(connection, sender, message, tvb)
    kept[key] = found
  end
  set_columns(pinfo, message)
  local item = add_message(root, tvb, message)
  if message.payload and not message.trouble then
    add_rpc(item, root, pinfo, tvb, message, found)
  end
  return true
end

local function dissect_safely(tvb, pinfo, root)
  local ok, is_mine = pcall(dissect, tvb, pinfo, root)
  if not ok then
    root:add(proto, tvb()):add_proto_expert_info(malformed, "Malformed: these octets cannot be read")
    return true
  end
  return is_mine
end

-- Wireshark's rpcordma takes messages of the types 1, 3 and 4 whatever their version, and shows nothing of version 2.
-- Where it is asked first, the heuristic dissector never sees them. Nor does it see each Send of a TCP segment with
-- several. These messages are read behind all other dissectors.

local function is_shown(source, offset)
  for _, xid in ipairs({ shown_xid() }) do
    if xid.offset == offset and xid.source:len() == source:len() then
      return true
    end
  end
  return false
end

-- Of a Send of several segments, Wireshark puts together the first one of a packet alone. Sends puts the others together:
-- the segments of one follow each other, here or in the next packets of their sender.
local Sends = {}
Sends.__index = Sends

function Sends.new(open)
  return setmetatable({ open = open }, Sends)
end

-- add takes a segment, and returns the octets of the Send that it completes. A Send is a list of its segments, the last
-- one first: a list never changes, so that it can be kept.
function Sends:add(msn, offset, is_last, octets)
  local before = offset > 0 and self.open or { msn = msn, length = 0, octets = "" }
  self.open = nil
  if before.msn ~= msn or before.length ~= offset or offset + #octets > MAX_ASSEMBLED then
    return nil
  end
  local open = { msn = msn, length = offset + #octets, octets = octets, before = before }
  if not is_last then
    self.open = open
    return nil
  end
  local pieces = {}
  while open do
    table.insert(pieces, open.octets)
    open = open.before
  end
  for i = 1, math.floor(#pieces / 2) do
    pieces[i], pieces[#pieces + 1 - i] = pieces[#pieces + 1 - i], pieces[i]
  end
  return table.concat(pieces)
end

local function is_shown_send(octets)
  for _, xid in ipairs({ shown_xid() }) do
    local source = xid.source
    if xid.offset == 0 and source:len() == #octets and source(0, #octets):raw() == octets then
      return true
    end
  end
  return false
end

local function dissect_segment(header, length, is_last, sends, pinfo, root)
  local first = header.offset + UNTAGGED_HEADER_LEN
  if length < 0 or first + length > header.source:len() or header.source(first - 12, 4):uint() ~= 0 then
    return
  end
  local message_offset = header.source(first - 4, 4):uint()
  if is_last and message_offset == 0 then
    if length >= 16 and not is_shown(header.source, first) then
      dissect_safely(header.source(first, length):tvb(), pinfo, root)
    end
    return
  end
  local octets = length > 0 and header.source(first, length):raw() or ""
  local whole = sends:add(header.source(first - 8, 4):uint(), message_offset, is_last, octets)
  if whole and #whole >= 16 and not is_shown_send(whole) then
    dissect_safely(ByteArray.new(whole, true):tvb("RDMA Send"), pinfo, root)
  end
end

-- A packet can be read again, and in any order: what it began with is kept, as long as there is room.
local function sends_before(pinfo, connection, sender)
  local open = connection.open[sender]
  local key = pinfo.number .. " " .. sender
  if opened[key] == nil then
    local length = open and open.length or 0
    local has_room = num_opened + length <= MAX_KEPT
    num_opened = has_room and num_opened + length or num_opened
    opened[key] = has_room and open or false
  end
  return Sends.new(opened[key] or nil)
end

local function dissect_rest(pinfo, root)
  local headers, opcodes = { ddp_header() }, { rdma_opcode() }
  local lasts, lengths = { ddp_last() }, { mpa_ulpdu_length() }
  if #headers == 0 or #headers ~= #opcodes or #headers ~= #lasts or #headers ~= #lengths then
    return
  end
  local connection, sender = connection_of(pinfo)
  local sends = sends_before(pinfo, connection, sender)
  for i, header in ipairs(headers) do
    if is_send_opcode(opcodes[i].value) and header.len == UNTAGGED_HEADER_LEN then
      dissect_segment(header, lengths[i].value - UNTAGGED_HEADER_LEN, lasts[i].value, sends, pinfo, root)
    end
  end
  connection.open[sender] = sends.open
end

function proto.dissector(tvb, pinfo, root)
  if not pcall(find_request, tvb, pinfo) or not pcall(dissect_rest, pinfo, root) then
    root:add(proto):add_proto_expert_info(malformed, "Malformed: these octets cannot be read")
  end
end

proto:register_heuristic("iwarp_ddp_rdmap", dissect_safely)
register_postdissector(proto)
