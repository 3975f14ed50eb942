// ---- The ladder: a row for each message. Only rows near the window are in the document.

const ROW = 24;              // px
const MAX_GAP = 120;         // px of idle time; a longer time is shortened, and its row says so
const MAX_GAPS = 4_000_000;  // px of all gaps: browsers have a largest height of an element
const IDLE_LABEL = 18;       // px of a gap that has room for words
const OVERSCAN = 12;         // rows above and below the window

class Ladder {
  constructor(capture, onSelect) {
    this.capture = capture;
    this.onSelect = onSelect;
    this.box = byId('ladder');
    this.canvas = byId('canvas');
    this.rows = [];          // messages that are shown
    this.tops = new Float64Array(0);
    this.height = 0;
    this.selected = -1;      // a message
    this.mode = 'scale';
    this.drawn = new Map();  // by place in rows: element
    this.box.addEventListener('scroll', () => this.draw(), {passive: true});
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  show(messages) {
    this.rows = messages;
    this.place();
    this.redraw();
  }

  setMode(mode) {
    this.mode = mode;
    this.place();
    this.redraw();
    this.reveal(this.selected);
  }

  // fitScale takes the scale in which most gaps are small and few are shortened.
  fitScale() {
    const gaps = [];
    for (let i = 1; i < this.rows.length; ++i) {
      const gap = this.gapBefore(i);
      if (gap > 0) gaps.push(gap);
    }
    gaps.sort((a, b) => a - b);
    const usual = gaps.length === 0 ? 1000 : gaps[Math.floor(gaps.length * 0.8)];
    this.nsPerPx = usual / 48;
  }

  zoom(factor) {
    this.nsPerPx = Math.min(1e12, Math.max(0.01, this.nsPerPx * factor));
    this.setMode(this.mode);
  }

  // gapBefore: ns between a row and the one above it. The clock of a capture may go backwards.
  gapBefore(place) {
    const {time} = this.capture;
    return Math.max(0, time[this.rows[place]] - time[this.rows[place - 1]]);
  }

  // place computes where each row stands.
  place() {
    this.maxGap = Math.min(MAX_GAP, Math.max(IDLE_LABEL, MAX_GAPS / Math.max(1, this.rows.length)));
    this.tops = new Float64Array(this.rows.length);
    let y = 0;
    for (let i = 0; i < this.rows.length; ++i) {
      if (i > 0) y += this.gapPx(this.gapBefore(i));
      this.tops[i] = y;
      y += ROW;
    }
    this.height = y;
    this.canvas.style.height = `${y}px`;
  }

  gapPx(gap) {
    if (this.mode === 'compact') return this.isShortened(gap) ? IDLE_LABEL : 0;
    return Math.min(this.maxGap, gap / this.nsPerPx);
  }

  isShortened(gap) {
    return gap / this.nsPerPx > this.maxGap;
  }

  scaleText() {
    if (this.mode === 'compact') {
      return `no space between rows; idle times above ${durationText(this.maxGap * this.nsPerPx)} are named`;
    }
    return `10 px between rows are ${durationText(10 * this.nsPerPx)}; ` +
           `idle times above ${durationText(this.maxGap * this.nsPerPx)} are shortened`;
  }

  redraw() {
    for (const drawn of this.drawn.values()) drawn.remove();
    this.drawn.clear();
    this.draw();
  }

  // firstAt: the place of the first row that ends below y.
  firstAt(y) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle] + ROW <= y) low = middle + 1; else high = middle;
    }
    return low;
  }

  draw() {
    const from = Math.max(0, this.firstAt(this.box.scrollTop) - OVERSCAN);
    const to = Math.min(this.rows.length, this.firstAt(this.box.scrollTop + this.box.clientHeight) + OVERSCAN);
    for (const [place, drawn] of this.drawn) {
      if (place >= from && place < to) continue;
      drawn.remove();
      this.drawn.delete(place);
    }
    for (let place = from; place < to; ++place) {
      if (this.drawn.has(place)) continue;
      const row = this.drawRow(place);
      this.drawn.set(place, row);
      this.canvas.append(row);
    }
  }

  drawRow(place) {
    const {capture} = this;
    const message = this.rows[place];
    const gap = place > 0 ? this.gapBefore(place) : 0;
    const gapPx = place > 0 ? this.gapPx(gap) : 0;
    const row = element('div', {
      className: `row ${KINDS[capture.kind[message]].name} ${capture.isFromServer(message) ? 'from-server' : 'from-client'}`,
      id: `message-${message}`,
      role: 'option',
      data: {message},
    });
    row.style.top = `${this.tops[place] - gapPx}px`;
    row.style.paddingTop = `${gapPx}px`;
    if (gapPx >= IDLE_LABEL) row.append(this.drawIdle(gap, gapPx));
    const findings = capture.findings.get(message) || [];
    const connection = capture.connections.size > 1 ? String(capture.connection[message]) : '';
    const words = element('span', {className: 'words', title: capture.headline(message)}, capture.headline(message));
    const shaft = element('span', {className: 'shaft'}, words);
    if (findings.length > 0) {
      row.classList.add('violation');
      shaft.prepend(element('span', {className: 'mark', title: findings.map((f) => f.what).join('\n')},
                            findings.map((f) => f.requirement).join(' ')));
    }
    row.append(
      element('span', {className: 'time'}, secondsText(capture.time[message])),
      element('span', {className: 'connection-number'}, connection),
      element('span', {className: 'lane'}, shaft),
      element('span', {className: 'octets'}, octetsText(capture.octets[message] || capture.wireOctets[message])));
    this.markRow(row, message);
    return row;
  }

  drawIdle(gap, gapPx) {
    const shortened = this.isShortened(gap);
    const idle = element('span', {className: shortened ? 'idle shortened' : 'idle'},
                         shortened ? `${durationText(gap)} idle, not to scale` : `+${durationText(gap)}`);
    idle.style.height = `${gapPx}px`;
    return idle;
  }

  // markRow shows what is selected, and the messages of the same RPC.
  markRow(row, message) {
    const rpc = this.selected >= 0 ? this.capture.rpcOf[this.selected] : -1;
    row.setAttribute('aria-selected', String(message === this.selected));
    row.classList.toggle('joined', rpc >= 0 && this.capture.rpcOf[message] === rpc);
  }

  select(message) {
    this.selected = message;
    for (const [place, row] of this.drawn) this.markRow(row, this.rows[place]);
    this.reveal(message);
    if (message >= 0) this.box.setAttribute('aria-activedescendant', `message-${message}`);
    this.onSelect(message);
  }

  // placeOf: the place of the message in rows, or of the next one that is shown.
  placeOf(message) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle] < message) low = middle + 1; else high = middle;
    }
    return low;
  }

  // reveal scrolls as far as it must.
  reveal(message) {
    const place = this.placeOf(message);
    if (message < 0 || place >= this.rows.length) return;
    const top = this.tops[place];
    const {scrollTop, clientHeight} = this.box;
    if (top < scrollTop) {
      this.box.scrollTop = Math.max(0, top - 2 * ROW);
    } else if (top + ROW > scrollTop + clientHeight) {
      this.box.scrollTop = top - Math.max(0, clientHeight - 3 * ROW);
    }
    this.draw();
  }

  // move selects the row so many places on.
  move(places) {
    this.selectPlace(this.selected < 0 ? 0 : this.placeOf(this.selected) + places);
  }

  // selectPlace selects the row at a place, or the nearest one.
  selectPlace(place) {
    if (this.rows.length === 0) return;
    this.select(this.rows[Math.min(this.rows.length - 1, Math.max(0, place))]);
  }

  rowsInWindow() {
    return Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
  }
}
