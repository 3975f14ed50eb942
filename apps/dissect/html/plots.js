// ---- Plots over time: throughput, outstanding operations, credits.

const BINS = 400;
const PLOT_HEIGHT = 84;  // px

// plotsOf computes the lines of each plot, for one connection or for all (0). A line has a value for each bin.
function plotsOf(capture, connection) {
  const messages = [];
  for (let i = 0; i < capture.numMessages; ++i) {
    if (connection === 0 || capture.connection[i] === connection) messages.push(i);
  }
  if (messages.length === 0) return null;
  let first = Infinity, last = -Infinity;
  for (const message of messages) {
    first = Math.min(first, capture.time[message]);
    last = Math.max(last, capture.time[message]);
  }
  const span = Math.max(1, last - first);
  const binOf = (message) => Math.min(BINS - 1, Math.floor((capture.time[message] - first) / span * BINS));
  return {
    first, span,
    plots: [throughput(capture, messages, binOf, span), outstanding(capture, messages, binOf),
            credits(capture, messages, binOf)],
  };
}

function throughput(capture, messages, binOf, span) {
  const lines = [new Float64Array(BINS), new Float64Array(BINS)];
  const seconds = span / BINS / 1e9;
  for (const message of messages) {
    lines[capture.isFromServer(message) ? 1 : 0][binOf(message)] += capture.wireOctets[message] / seconds;
  }
  return {title: 'Throughput', text: rateText, lines: [
    {name: 'from clients', values: lines[0]}, {name: 'from servers', values: lines[1]}]};
}

// The most in each bin. A bin without messages has what the one before it left.
function outstanding(capture, messages, binOf) {
  const names = ['Calls', 'RDMA Reads'];
  const now = [0, 0];
  const lines = names.map(() => new Float64Array(BINS).fill(-1));
  const ends = names.map(() => new Float64Array(BINS).fill(-1));
  const step = (line, by, bin) => {
    now[line] = Math.max(0, now[line] + by);
    lines[line][bin] = Math.max(lines[line][bin], now[line]);
    ends[line][bin] = now[line];
  };
  for (const message of messages) {
    const bin = binOf(message);
    const rpc = capture.rpcs[capture.rpcOf[message]];
    if (rpc && rpc.messages[0] === message) step(0, 1, bin);
    if (rpc && rpc.reply === message) step(0, -1, bin);
    if (capture.kind[message] === KIND['read-request']) step(1, 1, bin);
    if (capture.kind[message] === KIND['read-response']) step(1, -1, bin);
  }
  lines.forEach((values, line) => carry(values, ends[line]));
  return {title: 'Outstanding', text: countText, lines: names.map((name, i) => ({name, values: lines[i]}))};
}

// The last word of each side.
function credits(capture, messages, binOf) {
  const lines = [new Float64Array(BINS).fill(-1), new Float64Array(BINS).fill(-1)];
  for (const message of messages) {
    if (capture.credits[message] < 0) continue;
    lines[capture.isFromServer(message) ? 1 : 0][binOf(message)] = capture.credits[message];
  }
  for (const values of lines) carry(values, values);
  return {title: 'Credits', text: countText, lines: [
    {name: 'client asks', values: lines[0]}, {name: 'server grants', values: lines[1]}]};
}

function carry(values, ends) {
  let last = 0;
  for (let bin = 0; bin < BINS; ++bin) {
    if (values[bin] < 0) values[bin] = last; else last = ends[bin];
  }
}

// drawPlots draws all plots. A click goes to the time under the pointer.
function drawPlots(box, computed, goTo) {
  box.replaceChildren();
  if (!computed) return;
  for (const plot of computed.plots) box.append(drawPlot(plot, computed, goTo));
}

function drawPlot(plot, {first, span}, goTo) {
  const most = Math.max(1, ...plot.lines.map((line) => line.values.reduce((a, b) => Math.max(a, b), 0)));
  const drawing = svg('svg', {viewBox: `0 0 ${BINS} ${PLOT_HEIGHT}`, preserveAspectRatio: 'none', class: 'plot-area',
                              role: 'img', 'aria-label': `${plot.title}, at most ${plot.text(most)}`});
  plot.lines.forEach((line, number) => {
    drawing.append(svg('path', {d: pathOf(line.values, most), class: `line-${number}`}));
  });
  const cursor = svg('line', {y1: 0, y2: PLOT_HEIGHT, class: 'cursor', visibility: 'hidden'});
  drawing.append(cursor);
  const legend = element('span', {className: 'legend'});
  const tell = (bin) => legend.replaceChildren(...plot.lines.map((line, number) =>
    element('span', {className: `line-${number}`},
            bin === null ? line.name : `${line.name} ${plot.text(line.values[bin])}`)));
  tell(null);
  const when = element('span', {className: 'when'}, durationText(span));
  const binAt = (event) => {
    const {left, width} = drawing.getBoundingClientRect();
    return Math.min(BINS - 1, Math.max(0, Math.floor((event.clientX - left) / width * BINS)));
  };
  drawing.addEventListener('mousemove', (event) => {
    const bin = binAt(event);
    tell(bin);
    when.textContent = `at ${secondsText(first + span * bin / BINS)} s`;
    cursor.setAttribute('x1', bin + 0.5);
    cursor.setAttribute('x2', bin + 0.5);
    cursor.setAttribute('visibility', 'visible');
  });
  drawing.addEventListener('mouseleave', () => {
    tell(null);
    when.textContent = durationText(span);
    cursor.setAttribute('visibility', 'hidden');
  });
  drawing.addEventListener('click', (event) => goTo(first + span * binAt(event) / BINS));
  return element('figure', {className: 'plot'},
                 element('figcaption', {}, element('strong', {}, plot.title), legend,
                         element('span', {className: 'most'}, `max ${plot.text(most)}`)),
                 drawing, element('span', {className: 'axis'}, element('span', {}, '0'), when));
}

function pathOf(values, most) {
  const yOf = (value) => (PLOT_HEIGHT - 2 - value / most * (PLOT_HEIGHT - 6)).toFixed(1);
  let path = `M0 ${yOf(values[0])}`;
  for (let bin = 0; bin < BINS; ++bin) path += `V${yOf(values[bin])}H${bin + 1}`;
  return path;
}
