// ---- The messages of the page, from its data blocks.

// Bits of the column "flags".
const FROM_SERVER = 1, STARTUP = 2, TERMINATE = 4, CALL = 8, REPLY = 16, FAILED = 32, NO_LINE = 64;

const LAYERS = [
  {letter: 'p', name: 'RPC'},
  {letter: 'x', name: 'RPC-over-RDMA'},
  {letter: 'r', name: 'RDMAP'},
  {letter: 'd', name: 'DDP'},
  {letter: 'm', name: 'MPA'},
  {letter: 't', name: 'TCP'},
];

// Kinds of messages. A kind's number is its place here; page.css has a colour for each name.
const KINDS = [
  {name: 'call', title: 'Call'},
  {name: 'reply', title: 'Reply'},
  {name: 'read-request', title: 'RDMA Read Request'},
  {name: 'read-response', title: 'RDMA Read Response'},
  {name: 'write', title: 'RDMA Write'},
  {name: 'send', title: 'other'},
  {name: 'startup', title: 'MPA startup'},
  {name: 'terminate', title: 'Terminate'},
  {name: 'tcp', title: 'TCP'},
  {name: 'segment', title: 'segments'},
];
const KIND = Object.fromEntries(KINDS.map((kind, number) => [kind.name, number]));

function kindOf(flags, letters, operation) {
  if (flags & TERMINATE) return KIND.terminate;
  if (flags & STARTUP) return KIND.startup;
  if (letters.startsWith('t')) return KIND.tcp;
  if (flags & NO_LINE) return KIND.segment;
  if (operation === 'RDMA Write') return KIND.write;
  if (operation === 'RDMA Read Request') return KIND['read-request'];
  if (operation === 'RDMA Read Response') return KIND['read-response'];
  if (flags & CALL) return KIND.call;
  if (flags & REPLY) return KIND.reply;
  return KIND.send;
}

// Capture has a column for each property of a message; messages count from 0.
class Capture {
  constructor(scripts) {
    this.connections = new Map();  // by number: {id, client, server, sawStart, messages, tcp}
    this.findings = new Map();     // by message: [{requirement, place, what, effect, source, at, len}]
    this.stags = new Map();        // by message: [number]
    this.blocks = [];              // {first, script}, in their order
    this.time = [];                // ns since the first message
    this.packet = [];
    this.connection = [];
    this.flags = [];
    this.letters = [];             // of the layers
    this.lines = [];               // of the layers, with line feeds between them
    this.operation = [];
    this.procedure = [];
    this.wireOctets = [];
    this.octets = [];
    this.segments = [];
    this.xid = [];                 // -1: none; so with the two below
    this.credits = [];
    this.latency = [];
    this.kind = [];
    this.end = null;               // what the writer says at its end; null if it did not come so far
    this.read(scripts);
    this.numMessages = this.time.length;
    this.cache = new Map();
    joinRpcs(this);
  }

  read(scripts) {
    for (const script of scripts) {
      switch (script.dataset.block) {
        case 'capture':
          this.about = JSON.parse(script.textContent);
          break;
        case 'list':
          this.readList(JSON.parse(script.textContent));
          script.remove();
          break;
        case 'details':
          this.blocks.at(-1).script = script;
          break;
        case 'end':
          this.end = JSON.parse(script.textContent);
          break;
      }
    }
  }

  readList(list) {
    const first = this.time.length;
    this.blocks.push({first, script: null});
    for (const [id, client, server, sawStart] of list.connections) {
      this.connections.set(id, {id, client, server, sawStart, messages: 0});
    }
    for (const [id, ...tcp] of list.ends) {
      if (this.connections.has(id)) this.connections.get(id).tcp = tcp;
    }
    this.readTimes(list.time);
    const append = (column, values) => {
      for (const value of values) column.push(value);
    };
    append(this.packet, list.packet);
    append(this.connection, list.connection);
    append(this.flags, list.flags);
    append(this.lines, list.lines);
    append(this.wireOctets, list.wire_octets);
    append(this.octets, list.octets);
    append(this.segments, list.segments);
    append(this.xid, list.xid);
    append(this.credits, list.credits);
    append(this.latency, list.latency);
    for (let i = 0; i < list.time.length; ++i) {
      const letters = list.strings[list.layers[i]];
      const operation = list.strings[list.operation[i]];
      this.letters.push(letters);
      this.operation.push(operation);
      this.procedure.push(list.strings[list.procedure[i]]);
      this.kind.push(kindOf(list.flags[i], letters, operation));
      ++this.connections.get(list.connection[i]).messages;
    }
    for (const [at, stags] of list.stags) this.stags.set(first + at, stags);
    for (const [at, requirement, place, what, effect, source, offset, len] of list.findings) {
      const message = first + at;
      if (!this.findings.has(message)) this.findings.set(message, []);
      this.findings.get(message).push({requirement, place, what, effect, source, at: offset, len});
    }
  }

  // Each block begins with a time in ns since 1970, as text; differences follow.
  readTimes(times) {
    if (times.length === 0) return;
    this.start ??= BigInt(times[0]);
    let now = Number(BigInt(times[0]) - this.start);
    this.time.push(now);
    for (let i = 1; i < times.length; ++i) this.time.push(now += times[i]);
  }

  isFromServer(message) {
    return (this.flags[message] & FROM_SERVER) !== 0;
  }

  // layersOf: [{letter, line}] from the lowest to the highest.
  layersOf(message) {
    const lines = this.lines[message].split('\n');
    return [...this.letters[message]].map((letter, i) => ({letter, line: lines[i] || ''}));
  }

  // headline: the words of the highest layer that has any.
  headline(message) {
    const lines = this.lines[message].split('\n');
    for (let i = lines.length - 1; i >= 0; --i) {
      if (lines[i] !== '') return lines[i];
    }
    return this.wireOctets[message] === 0 ? '' : `segment of ${octetsText(this.wireOctets[message])}`;
  }

  // details: the fields and octets of a message. Few blocks are held at once.
  details(message) {
    let low = 0, high = this.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.blocks[middle].first <= message) low = middle; else high = middle - 1;
    }
    const block = this.blocks[low];
    if (!block.script) return null;  // the page is cut
    let parsed = this.cache.get(low);
    if (!parsed) {
      parsed = JSON.parse(block.script.textContent);
      parsed.shapes = parsed.shapes.map(parseShape);
      if (this.cache.size >= 4) this.cache.delete(this.cache.keys().next().value);
      this.cache.set(low, parsed);
    }
    const [octets, layers] = parsed.messages[message - block.first];
    return {
      octets,
      layers: layers.map(([shape, ...values]) =>
        parsed.shapes[shape].map((field, i) => ({...field, value: parsed.strings[values[i]]}))),
    };
  }
}

function parseShape(text) {
  return text.split('\n').slice(0, -1).map((line) => {
    const [name, source, at, len] = line.split('\t');
    return {name, source: Number(source), at: Number(at), len: Number(len)};
  });
}

// joinRpcs finds the messages of each RPC: its Call, the RDMA operations for its chunks, its Reply. The dissector has
// named the XID of each. An XID that is used again is another RPC.
function joinRpcs(capture) {
  capture.rpcs = [];
  capture.rpcOf = new Int32Array(capture.numMessages).fill(-1);
  const open = new Map();  // by connection and XID: the number of the RPC
  for (let message = 0; message < capture.numMessages; ++message) {
    const xid = capture.xid[message];
    if (xid < 0) continue;
    const key = `${capture.connection[message]} ${xid}`;
    let number = open.get(key);
    if (number === undefined || beginsAgain(capture, message, capture.rpcs[number])) {
      number = capture.rpcs.length;
      capture.rpcs.push({xid, connection: capture.connection[message], procedure: '', call: -1, reply: -1, latency: -1,
                         messages: []});
      open.set(key, number);
    }
    addToRpc(capture, message, capture.rpcs[number]);
    capture.rpcOf[message] = number;
  }
}

// Its credits may be unknown (-2).
function hasTransportHeader(capture, message) {
  return capture.credits[message] !== -1;
}

function beginsAgain(capture, message, rpc) {
  if (!hasTransportHeader(capture, message) || rpc.reply < 0) return false;
  return capture.isFromServer(message) === capture.isFromServer(rpc.messages[0]);
}

function addToRpc(capture, message, rpc) {
  rpc.messages.push(message);
  if (capture.procedure[message] !== '') rpc.procedure = capture.procedure[message];
  if (capture.flags[message] & CALL && rpc.call < 0) rpc.call = message;
  if (!hasTransportHeader(capture, message)) return;
  // The Send from the other side ends the RPC, whether it has the Reply in it or in a chunk.
  if (capture.flags[message] & REPLY || capture.isFromServer(message) !== capture.isFromServer(rpc.messages[0])) {
    rpc.reply = message;
    rpc.latency = capture.latency[message] >= 0 ? capture.latency[message]
                                                : capture.time[message] - capture.time[rpc.messages[0]];
  }
}
