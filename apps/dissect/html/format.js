// ---- Elements and words.

// element makes an element. Text becomes text nodes alone, so text of a peer is never markup.
function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name === 'data') Object.assign(made.dataset, value);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

function hex32(value) {
  return '0x' + value.toString(16).padStart(8, '0');
}

function countText(count) {
  return count.toLocaleString('en');
}

function plural(count, noun) {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`;
}

// scaled gives a value with three digits in the largest unit that fits.
function scaled(value, units, step) {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= step) {
    value /= step;
    ++unit;
  }
  const digits = unit === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

function durationText(ns) {
  return scaled(ns, ['ns', 'µs', 'ms', 's'], 1000);
}

function octetsText(octets) {
  return scaled(octets, ['B', 'KiB', 'MiB', 'GiB'], 1024);
}

function rateText(octetsPerSecond) {
  return scaled(octetsPerSecond, ['B/s', 'kB/s', 'MB/s', 'GB/s'], 1000);
}

// secondsText: the time since the first message.
function secondsText(ns) {
  return (ns / 1e9).toFixed(6);
}
