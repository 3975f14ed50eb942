// ---- One message: its RPC, its layers with their fields, and its octets.


function drawDetail(capture, message, select) {
  const box = byId('layers');
  box.replaceChildren();
  box.scrollTop = 0;
  byId('octets').replaceChildren();
  byId('octets').scrollTop = 0;
  if (message < 0) {
    box.append(element('p', {className: 'hint'}, 'Click a message to see its layers, fields and bytes.'));
    return;
  }
  const connection = capture.connections.get(capture.connection[message]);
  const fromServer = capture.isFromServer(message);
  box.append(
    element('h2', {}, capture.headline(message)),
    element('p', {className: 'where'},
            `message ${countText(message + 1)}, packet ${countText(capture.packet[message])}, ` +
            `${secondsText(capture.time[message])} s, connection ${connection.id}: ` +
            (fromServer ? `server ${connection.server} to client ${connection.client}`
                        : `client ${connection.client} to server ${connection.server}`)));
  const findings = (capture.findings.get(message) || []).map((finding) => ({...finding, row: drawFinding(finding)}));
  for (const {row} of findings) box.append(row);
  if (capture.rpcOf[message] >= 0) box.append(drawRpc(capture, message, select));
  const details = capture.details(message);
  if (!details) {
    box.append(element('p', {className: 'hint'}, 'The fields and bytes of this message are cut off this page.'));
    return;
  }
  const hex = new Hex(capture, details);
  capture.layersOf(message).toReversed().forEach(({letter, line}, fromTop) => {
    const fields = details.layers[details.layers.length - 1 - fromTop];
    box.append(drawLayer(letter, line, fields, hex));
  });
  for (const finding of findings) hex.join(finding.row, finding);
  byId('octets').append(...hex.draw());
}

function drawFinding({requirement, place, what, effect}) {
  return element('div', {className: 'finding'},
                 element('strong', {}, `${requirement} `), element('span', {}, place === '' ? '' : `(${place}) `),
                 element('p', {}, what), element('p', {}, effect));
}

// drawRpc: the Call, its RDMA operations and its Reply, with the bytes that moved and the time.
function drawRpc(capture, message, select) {
  const rpc = capture.rpcs[capture.rpcOf[message]];
  const moved = (kind) => rpc.messages.filter((of) => capture.kind[of] === kind)
                                      .reduce((sum, of) => sum + capture.octets[of], 0);
  const read = moved(KIND['read-response']), written = moved(KIND.write);
  const facts = [
    `XID ${hex32(rpc.xid)}`,
    rpc.latency >= 0 ? `answered after ${durationText(rpc.latency)}` : 'no Reply on this page',
  ];
  if (read > 0) facts.push(`${octetsText(read)} by RDMA Read`);
  if (written > 0) facts.push(`${octetsText(written)} by RDMA Write`);
  const list = element('ol', {className: 'rpc-messages'});
  const shown = rpc.messages.length > 40 ? [...rpc.messages.slice(0, 30), ...rpc.messages.slice(-10)] : rpc.messages;
  for (const of of shown) {
    const item = element('button', {type: 'button', data: {message: of}, className: `rpc-message ${KINDS[capture.kind[of]].name}`},
                         element('span', {className: 'after'}, `+${durationText(capture.time[of] - capture.time[rpc.messages[0]])}`),
                         element('span', {}, capture.isFromServer(of) ? '◀' : '▶'),
                         element('span', {className: 'words'}, capture.headline(of)));
    if (of === message) item.setAttribute('aria-current', 'true');
    item.addEventListener('click', () => select(of));
    list.append(element('li', {}, item));
  }
  const card = element('section', {className: 'rpc'},
                       element('h3', {}, rpc.procedure || 'RPC'),
                       element('p', {className: 'facts'}, facts.join(', ')), list);
  if (shown.length < rpc.messages.length) {
    card.append(element('p', {className: 'hint'},
                        `${plural(rpc.messages.length - shown.length, 'message')} between them are not listed here.`));
  }
  return card;
}

function drawLayer(letter, line, fields, hex) {
  const name = LAYERS.find((layer) => layer.letter === letter).name;
  const layer = element('section', {className: 'layer'}, element('h3', {}, name));
  if (line !== '') layer.append(element('p', {className: 'line'}, line));
  if (fields.length === 0) return layer;
  const table = element('table', {className: 'fields'});
  for (const field of fields) table.append(hex.addField(field));
  layer.append(table);
  return layer;
}

// Hex shows octets and joins them with fields, both ways.
class Hex {
  constructor(capture, {octets}) {
    const [wireLen, wire, ulpdu, message] = octets;
    this.limits = capture.about;
    this.panes = [];
    this.fields = [];  // {row, pane, at, len}
    this.pinned = null;
    const wirePane = this.addPane('Bytes of the FPDU or frame', wireLen, wire);
    // Where the octets of a source stand: a place in the frame, or a pane of their own.
    const placed = (title, source) => {
      if (typeof source === 'number') return {pane: wirePane, at: source};
      return {pane: this.addPane(title, ...source), at: 0};
    };
    this.places = [{pane: wirePane, at: 0}, placed('Bytes of the ULPDU, without Markers', ulpdu),
                   placed('Bytes of the message, put together', message)];
  }

  addPane(title, len, base64) {
    if (len === 0) return null;
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    const pane = {title, len, bytes, cells: []};
    this.panes.push(pane);
    return pane;
  }

  addField({name, value, source, at, len}) {
    const place = this.places[source];
    const row = element('tr', {}, element('th', {scope: 'row'}, name), element('td', {className: 'value'}, value),
                        element('td', {className: 'place'}, place.pane ? `${place.at + at}+${len}` : ''));
    return this.join(row, {source, at, len});
  }

  // join makes an element mark its octets, and the octets mark it.
  join(row, {source, at, len}) {
    const place = this.places[source];
    if (!place.pane || len === 0) return row;
    const field = {row, pane: place.pane, at: place.at + at, len};
    this.fields.push(field);
    row.tabIndex = 0;
    row.addEventListener('mouseenter', () => this.mark([field]));
    row.addEventListener('mouseleave', () => this.mark(this.pinned));
    row.addEventListener('focus', () => this.mark([field]));
    row.addEventListener('click', () => {
      this.pinned = [field];
      this.mark(this.pinned);
      field.pane.cells[field.at]?.hex.scrollIntoView({block: 'nearest'});
    });
    return row;
  }

  draw() {
    const columns = byId('octets').parentElement.clientWidth < 540 ? 8 : 16;
    return this.panes.map((pane) => {
      const box = element('section', {className: 'hex'}, element('h3', {}, pane.title));
      const lines = element('div', {className: 'hex-lines'});
      for (let at = 0; at < pane.bytes.length; at += columns) lines.append(this.drawLine(pane, at, columns));
      box.append(lines);
      if (pane.bytes.length < pane.len) {
        box.append(element('p', {className: 'hint'},
                           `${countText(pane.bytes.length)} of ${plural(pane.len, 'byte')}. A page keeps ` +
                           `${this.limits.tagged_octets} bytes of a tagged segment and ` +
                           `${this.limits.other_octets} of others; weft dissect --json has all.`));
      }
      return box;
    });
  }

  drawLine(pane, at, columns) {
    const hex = element('span', {className: 'hex-octets'});
    hex.style.width = `${columns * 3}ch`;
    const text = element('span', {className: 'hex-text'});
    for (let i = at; i < Math.min(at + columns, pane.bytes.length); ++i) {
      const byte = pane.bytes[i];
      const cell = {hex: element('span', {className: 'byte'}, byte.toString(16).padStart(2, '0')),
                    text: element('span', {className: 'byte'},
                                  byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')};
      for (const half of Object.values(cell)) {
        half.addEventListener('mouseenter', () => this.mark(this.fieldsAt(pane, i)));
        half.addEventListener('mouseleave', () => this.mark(this.pinned));
        half.addEventListener('click', () => this.pin(this.fieldsAt(pane, i)));
      }
      pane.cells.push(cell);
      hex.append(cell.hex);
      text.append(cell.text);
    }
    return element('div', {className: 'hex-line'},
                   element('span', {className: 'hex-at'}, at.toString(16).padStart(4, '0')), hex, text);
  }

  pin(fields) {
    this.pinned = fields;
    this.mark(fields);
    fields[0]?.row.scrollIntoView({block: 'nearest'});
  }

  // fieldsAt: the shortest fields with the octet. Several fields may be bits of one octet.
  fieldsAt(pane, octet) {
    const around = this.fields.filter((field) => field.pane === pane && octet >= field.at && octet < field.at + field.len);
    const shortest = Math.min(...around.map((field) => field.len));
    return around.filter((field) => field.len === shortest);
  }

  mark(fields) {
    for (const cell of this.marked || []) {
      cell.hex.classList.remove('marked');
      cell.text.classList.remove('marked');
    }
    this.marked = [];
    for (const field of this.fields) field.row.classList.toggle('marked', (fields || []).includes(field));
    for (const field of fields || []) {
      for (const cell of field.pane.cells.slice(field.at, field.at + field.len)) {
        cell.hex.classList.add('marked');
        cell.text.classList.add('marked');
        this.marked.push(cell);
      }
    }
  }
}
