// ---- The page: it joins the parts above with the keyboard and the filters.

class Page {
  constructor(capture) {
    this.capture = capture;
    this.filter = new Filter();
    this.ladder = new Ladder(capture, (message) => this.onSelect(message));
    byId('loading').remove();
    for (const id of ['top', 'plots', 'filters', 'main']) byId(id).hidden = false;
    this.tellTotals();
    this.fillFilters();
    this.fillKinds();
    this.listen();
    this.ladder.rows = this.filter.apply(capture);
    this.ladder.fitScale();
    this.refresh();
    this.drawPlots();
    this.onSelect(-1);
    this.ladder.box.focus();
  }

  tellTotals() {
    const {capture} = this;
    document.title = `${capture.about.file} - weft dissect`;
    byId('file').textContent = capture.about.file;
    byId('totals').textContent =
      `${plural(capture.numMessages, 'message')}, ${plural(capture.connections.size, 'connection')}, ` +
      `${plural(capture.rpcs.length, 'RPC')}, ${plural(capture.findings.size, 'message')} with violations`;
    const remarks = [];
    const {end} = capture;
    if (!end) remarks.push('This page is cut: its writer did not come to the end.');
    if (end?.messages_left_out > 0) {
      remarks.push(`${plural(end.messages_left_out, 'message')} of the capture are left out: the page is full.`);
    }
    if (end?.connections_left_out > 0) {
      remarks.push(`${plural(end.connections_left_out, 'connection')} of the capture are left out.`);
    }
    if (end?.remark) remarks.push(end.remark);
    byId('remarks').textContent = remarks.join(' ');
    byId('remarks').hidden = remarks.length === 0;
  }

  fillFilters() {
    const {capture} = this;
    const connections = [element('option', {value: '0'}, `all (${capture.connections.size})`)];
    for (const {id, client, server, messages} of capture.connections.values()) {
      connections.push(element('option', {value: String(id)}, `${id}: ${client} to ${server} (${countText(messages)})`));
    }
    byId('connection').replaceChildren(...connections);
    byId('layer').replaceChildren(
      element('option', {value: ''}, 'all'),
      ...LAYERS.map(({letter, name}) => element('option', {value: letter}, name)));
    byId('violations').disabled = capture.findings.size === 0;
    byId('violations-label').textContent = `Violations only (${countText(capture.findings.size)})`;
  }

  // A button for each kind of message that there is; it hides the kind, or shows it again.
  fillKinds() {
    const counts = new Array(KINDS.length).fill(0);
    for (const kind of this.capture.kind) ++counts[kind];
    byId('kinds').replaceChildren(...KINDS.flatMap(({name, title}, number) => {
      if (counts[number] === 0) return [];
      const button = element('button', {type: 'button', className: `kind ${name}`, data: {kind: number}},
                             `${title} `, element('span', {className: 'count'}, countText(counts[number])));
      button.addEventListener('click', () => {
        const hidden = this.filter.hiddenKinds;
        if (!hidden.delete(number)) hidden.add(number);
        this.refresh();
      });
      return [button];
    }));
  }

  listen() {
    const inputs = {connection: (of) => Number(of.value), layer: (of) => of.value, xid: (of) => of.value,
                    stag: (of) => of.value, text: (of) => of.value, violations: (of) => of.checked};
    for (const [name, value] of Object.entries(inputs)) {
      byId(name).addEventListener('input', (event) => {
        this.filter[name] = value(event.target);
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.refresh(), 80);
        if (name === 'connection') this.drawPlots();
      });
    }
    byId('filters').addEventListener('submit', (event) => event.preventDefault());
    byId('clear').addEventListener('click', () => this.clear());
    byId('mode').addEventListener('input', (event) => {
      this.ladder.setMode(event.target.value);
      this.tellScale();
    });
    byId('zoom-in').addEventListener('click', () => this.zoom(0.5));
    byId('zoom-out').addEventListener('click', () => this.zoom(2));
    this.ladder.canvas.addEventListener('click', (event) => {
      const row = event.target.closest('.row');
      if (row) this.ladder.select(Number(row.dataset.message));
    });
    byId('help').addEventListener('click', () => showKeys());
    document.addEventListener('keydown', (event) => this.onKey(event));
  }

  clear() {
    this.filter.clear();
    byId('filters').reset();
    this.refresh();
    this.drawPlots();
  }

  zoom(factor) {
    this.ladder.zoom(factor);
    this.tellScale();
  }

  tellScale() {
    byId('scale').textContent = this.ladder.scaleText();
  }

  refresh() {
    clearTimeout(this.waiting);
    const {capture, filter, ladder} = this;
    ladder.show(filter.apply(capture));
    ladder.reveal(ladder.selected);
    byId('shown').textContent = ladder.rows.length === capture.numMessages
      ? '' : `${countText(ladder.rows.length)} of ${countText(capture.numMessages)} messages`;
    for (const button of byId('kinds').children) {
      button.setAttribute('aria-pressed', String(!filter.hiddenKinds.has(Number(button.dataset.kind))));
    }
    const only = capture.connections.size === 1 ? [...capture.connections.values()][0]
                                                : capture.connections.get(filter.connection);
    byId('client').textContent = only ? `client ${only.client}` : 'clients';
    byId('server').textContent = only ? `server ${only.server}` : 'servers';
    this.tellScale();
  }

  drawPlots() {
    drawPlots(byId('plots'), plotsOf(this.capture, this.filter.connection), (time) => this.goTo(time));
  }

  // goTo selects the first row at or after a time.
  goTo(time) {
    const message = this.ladder.rows.find((of) => this.capture.time[of] >= time);
    if (message !== undefined) this.ladder.select(message);
  }

  onSelect(message) {
    drawDetail(this.capture, message, (of) => this.ladder.select(of));
  }

  // nextViolation selects the next row with a violation, in either direction.
  nextViolation(step) {
    const {rows, selected} = this.ladder;
    let place = selected < 0 ? (step > 0 ? 0 : rows.length - 1) : this.ladder.placeOf(selected) + step;
    while (place >= 0 && place < rows.length && !this.capture.findings.has(rows[place])) place += step;
    if (place >= 0 && place < rows.length) this.ladder.select(rows[place]);
  }

  // alongRpc selects the next message of the same RPC.
  alongRpc(step) {
    const rpc = this.capture.rpcs[this.capture.rpcOf[this.ladder.selected]];
    const next = rpc?.messages[rpc.messages.indexOf(this.ladder.selected) + step];
    if (next !== undefined) this.ladder.select(next);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId('keys').open) return;
    const inField = event.target.closest('input, select');
    if (event.key === 'Escape') {
      if (inField) this.ladder.box.focus(); else this.clear();
    } else if (inField) {
      return;
    } else {
      const action = KEYS.find(({keys}) => keys.includes(event.key));
      if (!action || (event.key === 'Enter' && event.target.closest('button'))) return;
      action.run(this);
    }
    event.preventDefault();
  }
}

const KEYS = [
  {keys: ['ArrowDown', 'j'], shown: '↓ or j', does: 'the next message', run: (page) => page.ladder.move(1)},
  {keys: ['ArrowUp', 'k'], shown: '↑ or k', does: 'the message before', run: (page) => page.ladder.move(-1)},
  {keys: ['PageDown'], shown: 'Page Down', does: 'a window on', run: (page) => page.ladder.move(page.ladder.rowsInWindow())},
  {keys: ['PageUp'], shown: 'Page Up', does: 'a window back', run: (page) => page.ladder.move(-page.ladder.rowsInWindow())},
  {keys: ['Home'], shown: 'Home', does: 'the first message', run: (page) => page.ladder.selectPlace(0)},
  {keys: ['End'], shown: 'End', does: 'the last message', run: (page) => page.ladder.selectPlace(Infinity)},
  {keys: [']'], shown: ']', does: 'the next message of the same RPC', run: (page) => page.alongRpc(1)},
  {keys: ['['], shown: '[', does: 'the message before of the same RPC', run: (page) => page.alongRpc(-1)},
  {keys: ['v'], shown: 'v', does: 'the next violation', run: (page) => page.nextViolation(1)},
  {keys: ['V'], shown: 'V', does: 'the violation before', run: (page) => page.nextViolation(-1)},
  {keys: ['/'], shown: '/', does: 'search for text', run: () => byId('text').focus()},
  {keys: ['x'], shown: 'x', does: 'filter by XID', run: () => byId('xid').focus()},
  {keys: ['+'], shown: '+', does: 'more space for the same time', run: (page) => page.zoom(0.5)},
  {keys: ['-'], shown: '-', does: 'less space for the same time', run: (page) => page.zoom(2)},
  {keys: ['t'], shown: 't', does: 'light or dark', run: () => switchTheme()},
  {keys: ['?'], shown: '?', does: 'these keys', run: () => showKeys()},
];

function showKeys() {
  const table = element('table', {});
  for (const {shown, does} of [...KEYS, {shown: 'Esc', does: 'leave a field; clear the filters'}]) {
    table.append(element('tr', {}, element('th', {scope: 'row'}, element('kbd', {}, shown)), element('td', {}, does)));
  }
  const close = element('button', {type: 'button'}, 'Close');
  close.addEventListener('click', () => byId('keys').close());
  byId('keys').replaceChildren(element('h2', {}, 'Keys'), table, close);
  byId('keys').showModal();
}

// The theme is the system's until the user takes the other one.
function isDark() {
  return (document.documentElement.dataset.theme ||
          (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
}

function tellTheme() {
  byId('theme').textContent = isDark() ? 'Light' : 'Dark';
}

function switchTheme() {
  document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
  tellTheme();
}

document.addEventListener('DOMContentLoaded', () => {
  byId('theme').addEventListener('click', () => switchTheme());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => tellTheme());
  tellTheme();
  new Page(new Capture(document.querySelectorAll('script[data-block]')));
});
