// ---- Which messages are shown.

class Filter {
  constructor() {
    this.clear();
  }

  clear() {
    this.connection = 0;  // 0: all
    this.layer = '';      // a letter, or all
    this.xid = '';
    this.stag = '';
    this.text = '';
    this.violations = false;
    this.hiddenKinds = new Set([KIND.segment]);
  }

  apply(capture) {
    const xid = numberTest(this.xid);
    const stag = numberTest(this.stag);
    const text = this.text.trim().toLowerCase();
    const shown = [];
    for (let message = 0; message < capture.numMessages; ++message) {
      if (this.connection !== 0 && capture.connection[message] !== this.connection) continue;
      if (this.violations && !capture.findings.has(message)) continue;
      if (this.hiddenKinds.has(capture.kind[message]) && !capture.findings.has(message)) continue;
      if (xid && !xid(capture.xid[message])) continue;
      if (stag && !(capture.stags.get(message) || []).some(stag)) continue;
      if (this.layer !== '' && !speaks(capture, message, this.layer)) continue;
      if (text !== '' && !hasText(capture, message, text)) continue;
      shown.push(message);
    }
    return shown;
  }
}

// numberTest: what a user types for an XID or STag is a decimal number, or a part of the hexadecimal text.
function numberTest(typed) {
  const wanted = typed.trim().toLowerCase();
  if (wanted === '') return null;
  const hex = wanted.startsWith('0x') ? wanted : null;
  return (value) => {
    if (value < 0) return false;
    const text = hex32(value);
    if (hex) return hex.length === 10 ? text === hex : text.startsWith(hex);
    return String(value) === wanted || text.slice(2).includes(wanted);
  };
}

// speaks tells whether a layer has words about the message.
function speaks(capture, message, letter) {
  const at = capture.letters[message].indexOf(letter);
  if (at < 0) return false;
  return capture.letters[message].lastIndexOf(letter) !== at || capture.lines[message].split('\n')[at] !== '';
}

function hasText(capture, message, text) {
  if (capture.lines[message].toLowerCase().includes(text)) return true;
  return (capture.findings.get(message) || [])
    .some((finding) => `${finding.requirement} ${finding.what}`.toLowerCase().includes(text));
}
