// The script of report.html: it filters the matrix, and draws the timeline behind a cell. All text reaches the page as
// text nodes and attributes; nothing here ever parses markup.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const table = document.getElementById('results');
  const rows = [...table.querySelectorAll('tr[data-row]')].map((tr) => ({
    tr,
    number: Number(tr.dataset.row),
    cells: [...tr.querySelectorAll('td')],
    statement: tr.querySelector('.statement').textContent,
    id: tr.querySelector('code').textContent,
    level: tr.dataset.level,
    outcomes: new Set([...tr.querySelectorAll('td')].map((td) => td.className)),
  }));
  const UNSELECTED = ['filtered', 'absent'];
  for (const row of rows) row.selected = [...row.outcomes].some((outcome) => !UNSELECTED.includes(outcome));
  const selected = rows.filter((row) => row.selected).length;
  const shownRows = () => rows.filter((row) => !row.tr.hidden);

  // --- Elements ---

  const make = (element, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...children.filter((child) => child !== undefined && child !== ''));
    return element;
  };
  const html = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    make(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
  const icon = (outcome) => svg('svg', { class: 'icon', 'aria-hidden': 'true' }, svg('use', { href: '#' + outcome }));

  // --- Filter ---

  const form = document.querySelector('form.filter');
  const search = form.querySelector('input[type=search]');
  const chosen = (name) => new Set([...form.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.value));

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const outcomes = chosen('outcome');
    const levels = chosen('level');
    const differ = chosen('differ').size > 0;
    for (const row of rows) {
      const text = (row.statement + ' ' + row.id).toLowerCase();
      row.tr.hidden = !(
        words.every((word) => text.includes(word)) &&
        (levels.size === 0 || levels.has(row.level)) &&
        (outcomes.size === 0 ? row.selected : [...outcomes].some((outcome) => row.outcomes.has(outcome))) &&
        (!differ || row.outcomes.size > 1)
      );
    }
    for (const body of table.tBodies) body.hidden = !body.querySelector('tr[data-row]:not([hidden])');
    const shown = shownRows().length;
    const filtered = words.length + outcomes.size + levels.size > 0 || differ;
    form.querySelector('output').textContent = (filtered ? `${shown} of ${rows.length} behaviors` : `${shown} behaviors`) +
      (filtered || selected === rows.length ? '' : `, and ${rows.length - selected} that were not selected are hidden`);
    form.querySelector('.all').hidden = !filtered;
    document.querySelector('.nothing').hidden = shown > 0;
    if (!current || current.closest('tr').hidden) enter(shownRows()[0]?.cells[0]);
  };

  // --- The matrix as a grid: one tab stop, arrow keys within ---

  let current;
  const enter = (cell) => {
    if (current) current.tabIndex = -1;
    current = cell;
    if (current) current.tabIndex = 0;
  };
  const steps = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -Infinity], End: [0, Infinity],
  };
  const clamp = (value, below) => Math.max(0, Math.min(below - 1, value));

  // neighbor is the cell some shown rows and columns away, the nearest where there is none.
  const neighbor = (cell, [down, right]) => {
    const shown = shownRows();
    const from = shown.findIndex((row) => row.tr === cell.parentElement);
    const cells = shown[clamp(from + down, shown.length)].cells;
    return cells[clamp(shown[from].cells.indexOf(cell) + right, cells.length)];
  };
  const onGridKey = (event) => {
    const cell = event.target.closest('td');
    if (!cell || cell !== current) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      show(cell);
    } else if (steps[event.key] && !event.altKey && !event.metaKey) {
      event.preventDefault();
      const [down, right] = steps[event.key];
      enter(neighbor(cell, event.ctrlKey && right ? [right, right] : [down, right]));
      current.focus();
    }
  };

  // --- Details: unpacked on demand ---

  const unpacked = new Map();
  const unpack = async (number) => {
    const bytes = Uint8Array.from(atob(data.details[number]), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return JSON.parse(await new Response(stream).text());
  };
  const detailsOf = async (number, column) => {
    if (!unpacked.has(number)) unpacked.set(number, unpack(number));
    return (await unpacked.get(number))[column];
  };

  // --- Times ---

  const duration = (ms) => {
    if (ms < 1000) return `${Number(ms.toFixed(1))} ms`;
    if (ms < 60000) return `${Number((ms / 1000).toFixed(3))} s`;
    return `${Math.floor(ms / 60000)} min ${Number(((ms % 60000) / 1000).toFixed(1))} s`;
  };

  // stretched gives every gap between two times room by its logarithm: milliseconds stay readable beside seconds.
  const stretched = (times, width) => {
    const at = [0];
    for (let i = 1; i < times.length; i++) at.push(at[i - 1] + 0.4 + Math.log2(1 + (times[i] - times[i - 1]) / 3));
    const whole = at[at.length - 1] || 1;
    return (t) => {
      let i = times.findIndex((time) => time >= t);
      if (i < 0) i = times.length - 1;
      if (i === 0 || times[i] <= t) return (at[i] / whole) * width;
      const share = (t - times[i - 1]) / (times[i] - times[i - 1]);
      return ((at[i - 1] + share * (at[i] - at[i - 1])) / whole) * width;
    };
  };
  const even = (times, width) => {
    const last = times[times.length - 1] || 1;
    return (t) => (t / last) * width;
  };

  // --- The story of one object, from its events ---

  const spans = (events, end, has) => {
    const found = [];
    let from;
    for (const event of events) {
      const open = event.type !== 'DELETED' && has(event);
      if (open && from === undefined) from = event.t;
      if (!open && from !== undefined) {
        found.push([from, event.t]);
        from = undefined;
      }
    }
    if (from !== undefined) found.push([from, end]);
    return found;
  };
  const everyOf = (events, name) => [...new Set(events.flatMap((event) => event[name] || []))];
  const title = (object) => `${object.kind} ${object.name}`;

  // tested and canaries are the numbers of the objects that have a lane of their own, and of those that share one.
  const tested = (trace) => [...trace.objects.keys()].filter((number) => !trace.objects[number].canary);
  const canaries = (trace) => [...trace.objects.keys()].filter((number) => trace.objects[number].canary);

  const stateOf = (event) => {
    const state = [];
    if (event.deletion) state.push(`deletionTimestamp ${event.deletion.replace(/^.*T/, '')}`);
    if (event.grace !== undefined) state.push(`grace ${event.grace} s`);
    if (event.finalizers) state.push(`finalizers ${event.finalizers.join(', ')}`);
    for (const owner of event.owners || []) state.push(`owned by ${owner}`);
    if (event.phase) state.push(event.phase);
    if (event.writers) state.push(`written by ${event.writers.join(', ')}`);
    return state.concat(event.containers || []);
  };

  // --- Drawing ---

  const LABEL = 19, FLAG = 15, BAR = 18, STRIP = 16, GAP = 12, TOP = 30, CHARACTER = 7, EDGE = 14;
  const LANES = 16, STEPS = 300;

  // rowsFor puts labels that want [from, to] into as few rows as do without overlap; where more rows than allowed would
  // be needed, the label is dropped and its mark stays.
  const rowsFor = (labels, allowed) => {
    const ends = [];
    for (const label of labels) {
      const free = ends.findIndex((end) => end <= label.from);
      label.row = free >= 0 ? free : ends.length;
      if (label.row >= allowed) {
        label.row = allowed - 1;
        label.text = '';
      } else {
        ends[label.row] = label.to;
      }
    }
    return Math.max(1, ends.length);
  };

  class Drawing {
    constructor(trace, width, toScale, lanes) {
      this.trace = trace;
      this.width = Math.max(width, 520);
      this.times = [...new Set(
        [...trace.requests, ...trace.reviews].flatMap((r) => [r.t, r.t + r.took]).concat(trace.events.map((e) => e.t), 0),
      )].sort((a, b) => a - b);
      this.end = this.times[this.times.length - 1];
      const scale = (toScale ? even : stretched)(this.times, this.width - 2 * EDGE);
      this.x = (t) => Math.round((EDGE + scale(t)) * 10) / 10;
      this.lanes = lanes;
      this.y = TOP;
      this.parts = [];
    }

    draw() {
      const others = this.about((number) => number < 0);
      if (others.length > 0) this.others(others);
      for (const number of tested(this.trace).slice(0, this.lanes)) this.object(this.trace.objects[number], number);
      const shared = canaries(this.trace);
      if (shared.length > 0) this.canaries(shared);
      const height = this.y;
      return svg('svg', {
        class: 'timeline', viewBox: `0 0 ${this.width} ${height}`, width: this.width, height, role: 'img',
        'aria-label': `Timeline of ${this.trace.requests.length} requests, ${this.trace.reviews.length} reviews and ${this.trace.events.length} events on ` +
          `${this.trace.objects.length} objects in ${duration(this.end)}. The table of steps below says the same.`,
      }, this.axis(height), this.deletes(height), ...this.parts);
    }

    // about are the requests, and what a webhook was asked, about objects of some numbers.
    about(are) {
      return [...this.trace.requests, ...this.trace.reviews].filter((entry) => are(entry.object)).sort((a, b) => a.t - b.t);
    }

    add(tag, attributes, ...children) {
      this.parts.push(svg(tag, attributes, ...children));
    }

    axis(height) {
      const group = svg('g', { class: 'axis' });
      let free = -Infinity;
      for (const time of this.times) {
        const x = this.x(time);
        const text = time === 0 ? '0' : duration(time);
        const half = (text.length * CHARACTER) / 2;
        const middle = Math.min(Math.max(x, half), this.width - half);
        if (middle - half < free) continue;
        free = middle + half + 14;
        group.append(
          svg('line', { x1: x, x2: x, y1: TOP - 10, y2: height }),
          svg('text', { x: middle, y: TOP - 16 }, text),
        );
      }
      return group;
    }

    // deletes marks where something was asked to be deleted across all objects: what follows it is its doing. Nothing that
    // is tested is a canary's doing.
    deletes(height) {
      const marked = this.trace.requests.filter((request) => request.verb === 'DELETE' && !this.trace.objects[request.object]?.canary);
      return svg('g', { class: 'deletes' }, ...marked.map((request) => {
        const x = this.x(request.t);
        return svg('line', { x1: x, x2: x, y1: TOP - 10, y2: height });
      }));
    }

    label(name, fine) {
      this.add('line', { class: 'rule', x1: 0, x2: this.width, y1: this.y, y2: this.y });
      this.add('text', { class: 'name', x: EDGE, y: this.y + LABEL }, name, svg('tspan', { class: 'fine', dx: 8 }, fine));
      this.y += LABEL + 6;
    }

    object(object, number) {
      const events = this.trace.events.filter((event) => event.object === number);
      this.label(title(object), object.uid);
      this.flags(this.about((about) => about === number), 4);
      this.life(events);
      for (const name of ['finalizers', 'owners']) {
        for (const item of everyOf(events, name)) this.strip(name, item, spans(events, this.end, (event) => (event[name] || []).includes(item)));
      }
      this.y += GAP;
    }

    // canaries draws those of all barriers in one lane, since they are not what is tested.
    canaries(numbers) {
      this.label('Canaries', `${numbers.length} objects of barriers`);
      this.flags(this.about((about) => numbers.includes(about)), 2);
      const middle = this.y + BAR / 2;
      for (const number of numbers) {
        const events = this.trace.events.filter((event) => event.object === number);
        this.add('line', { class: 'life', x1: this.x(events[0].t), x2: this.x(events[events.length - 1].t), y1: middle, y2: middle });
        for (const event of events) this.event(event, middle);
      }
      this.y += BAR + GAP;
    }

    others(entries) {
      this.label('Other requests', 'about no object that was watched');
      this.flags(entries, 4);
      this.y += GAP;
    }

    flags(entries, allowed) {
      if (entries.length === 0) return;
      const labels = entries.map((entry) => {
        const text = entry.asked ? reviewed(entry) : requested(entry);
        const x = this.x(entry.t);
        const width = text.length * CHARACTER + 14;
        const left = x + width > this.width;
        return { entry, text, x, left, from: left ? x - width : x, to: left ? x : x + width };
      });
      const used = rowsFor(labels, allowed);
      const bottom = this.y + used * FLAG;
      for (const { entry, text, x, left, row } of labels) {
        const top = this.y + row * FLAG;
        this.add('g', { class: kindOf(entry), 'data-step': this.step(entry) },
          svg('title', {}, [...said(entry), `at ${duration(entry.t)}`].join('\n')),
          svg('line', { x1: x, x2: x, y1: top + 2, y2: bottom + 2 }),
          svg('path', { d: `M${x - 3.5} ${bottom}h7l-3.5 5z` }),
          svg('text', { x: left ? x - 5 : x + 5, y: top + 11, 'text-anchor': left ? 'end' : 'start' }, text));
      }
      this.y = bottom + 4;
    }

    life(events) {
      const middle = this.y + BAR / 2;
      const from = this.x(events[0].t);
      const gone = events.find((event) => event.type === 'DELETED');
      const to = this.x(gone ? gone.t : this.end);
      this.add('line', { class: 'life', x1: from, x2: to, y1: middle, y2: middle });
      for (const [start, end] of spans(events, this.end, (event) => event.deletion)) {
        const x = this.x(start);
        this.add('rect', { class: 'terminating', x, y: middle - 5, width: Math.max(1, this.x(end) - x), height: 10 },
          svg('title', {}, `Terminating for ${duration(end - start)}`));
      }
      if (!gone) this.add('text', { class: 'stays', x: this.width - 2, y: middle + 4, 'text-anchor': 'end' }, '›');
      for (const event of events) this.event(event, middle);
      this.y += BAR;
    }

    event(event, middle) {
      const x = this.x(event.t);
      const mark = {
        ADDED: () => svg('circle', { cx: x, cy: middle, r: 5 }),
        DELETED: () => svg('path', { d: `M${x - 4.5} ${middle - 4.5}l9 9m0 -9l-9 9` }),
      }[event.type] || (() => svg('path', { d: `M${x} ${middle - 5.5}l5.5 5.5l-5.5 5.5l-5.5 -5.5z` }));
      this.add('g', { class: 'event ' + (Object.hasOwn(EVENTS, event.type) ? event.type : 'MODIFIED'), 'data-step': this.step(event) },
        svg('title', {}, [`${event.type} at ${duration(event.t)}`, title(this.trace.objects[event.object]), ...stateOf(event)].join('\n')), mark());
    }

    // strip shows from when to when the object had a finalizer or an owner.
    strip(name, item, intervals) {
      const text = name === 'owners' ? 'owned by ' + item : item;
      for (const [start, end] of intervals) {
        const x = this.x(start);
        const width = Math.max(2, this.x(end) - x);
        const room = text.length * CHARACTER + 10;
        const inside = width >= room;
        const right = x + width + room <= this.width;
        this.add('rect', { class: name, x, y: this.y + 1, width, height: STRIP - 3, rx: 2 });
        this.add('text', {
          class: 'item', y: this.y + STRIP - 5.5, 'text-anchor': inside || right ? 'start' : 'end',
          x: inside ? x + 5 : right ? x + width + 5 : x - 5,
        }, text);
      }
      if (intervals.length > 0) this.y += STRIP;
    }

    step(entry) {
      return this.trace.steps.indexOf(entry);
    }
  }
  const requested = (request) => `${request.verb} ${request.status || 'no response'}`;
  // A user is told by the last part of the name, as in system:node:NAME; the whole of it is in the steps.
  const reviewed = (review) => `webhook: ${review.operation} by ${review.by.split(':').pop()} ${review.allowed ? 'allowed' : 'denied'}`;
  const kindOf = (entry) => {
    const refused = entry.asked ? !entry.allowed : entry.status === 0 || entry.status >= 400;
    return (entry.asked ? 'review' : 'request') + (refused ? ' refused' : '');
  };
  // said is what a flag stands for, in full.
  const said = (entry) => entry.asked
    ? [`The API server asks the webhook: ${entry.operation} by ${entry.by}`, ...entry.asked, answer(entry)]
    : [`${entry.verb} ${entry.path}`, `${entry.status || entry.error} after ${duration(entry.took)}`, entry.again].filter(Boolean);
  const answer = (review) => (review.allowed ? 'allowed' : 'denied') + (review.message ? ': ' + review.message : '');
  const EVENTS = { ADDED: 'appeared', MODIFIED: 'changed', DELETED: 'gone' };

  // --- The steps as a table: what the drawing shows, in words ---

  // setBy names who had set a finalizer that was removed.
  const setBy = (event, finalizer) => {
    const release = (event.released || []).find((one) => one.finalizer === finalizer);
    return release && release.setBy ? ` (it was set by ${release.setBy.join(', ')})` : '';
  };
  const changes = (event, before) => {
    if (['STOPPED', 'STARTED'].includes(event.type)) return [event.type.toLowerCase()];
    if (event.type === 'INJECTED') return event.changes || [];
    if (!before) return ['first seen'];
    const list = [];
    if (event.deletion && !before.deletion) list.push('+ deletionTimestamp');
    if (event.deletion && before.deletion && event.deletion !== before.deletion) list.push('deletionTimestamp moved');
    if (before.grace !== undefined && event.grace !== undefined && event.grace !== before.grace) list.push(`grace ${before.grace} s to ${event.grace} s`);
    for (const name of ['finalizers', 'owners']) {
      const was = before[name] || [], is = event[name] || [];
      const word = name === 'owners' ? 'owner' : 'finalizer';
      for (const item of is) if (!was.includes(item)) list.push(`+ ${word} ${item}`);
      for (const item of was) if (!is.includes(item)) list.push(`− ${word} ${item}${name === 'finalizers' ? setBy(event, item) : ''}`);
      if (name === 'finalizers' && event.type === 'DELETED') for (const item of is) list.push(`− ${word} ${item}${setBy(event, item)}`);
    }
    if (event.phase !== before.phase) list.push(`phase ${event.phase || 'gone'}`);
    return list.concat(event.changes || []);
  };

  const requestCells = (request) => {
    const notes = [request.again, request.refusal, request.error, ...(request.warnings || []).map((w) => 'warning: ' + w)].filter(Boolean);
    return [
      html('td', {}, html('span', { class: 'badge ' + kindOf(request) }, requested(request))),
      html('td', { colspan: 2 }, html('code', {}, request.path), html('span', { class: 'fine' }, ` ${duration(request.took)}`),
        ...notes.map((note) => html('p', { class: 'said' }, note)),
        request.body ? html('details', {}, html('summary', {}, 'what was sent'), html('pre', {}, request.body)) : ''),
    ];
  };
  const reviewCells = (review) => [
    html('td', {}, html('span', { class: 'badge ' + kindOf(review) }, review.allowed ? 'webhook: allowed' : 'webhook: denied')),
    html('td', { colspan: 2 }, 'The API server asks the webhook: ', html('code', {}, review.operation), ' by ', html('bdi', {}, html('code', {}, review.by)),
      review.asked.length > 0 ? `: ${review.asked.join(', ')}` : '', html('p', { class: review.allowed ? 'fine' : 'said' }, 'Answer: ' + answer(review))),
  ];
  const eventCells = (event, before) => [
    html('td', {}, html('span', { class: 'badge event' }, event.type)),
    html('td', {}, ...changes(event, before).map((change) => html('span', { class: 'change' }, change))),
    html('td', { class: 'state' }, ...stateOf(event).map((state) => html('span', {}, state))),
  ];

  const stepTable = (trace, limit) => {
    const last = new Map();
    const body = html('tbody', {});
    trace.steps.forEach((entry, number) => {
      const object = trace.objects[entry.object];
      const cells = entry.type ? eventCells(entry, last.get(entry.object)) : entry.asked ? reviewCells(entry) : requestCells(entry);
      if (entry.type) last.set(entry.object, entry);
      if (number >= limit) return;
      body.append(html('tr', { 'data-step': number, class: object?.canary && 'canary' }, html('td', { class: 'number' }, entry.t === 0 ? '0' : duration(entry.t)),
        html('td', {}, object ? title(object) : '', object ? html('span', { class: 'fine' }, ' ' + object.uid) : ''), ...cells));
    });
    return html('table', { class: 'steps' }, html('caption', {}, 'Every step'),
      html('thead', {}, html('tr', {}, html('th', { scope: 'col', class: 'number' }, 'Time'), ...['Object', 'Step', 'Changed', 'State'].map((head) => html('th', { scope: 'col' }, head)))), body);
  };

  // --- A timeline: controls, drawing, steps ---

  const timeline = (trace) => {
    trace.objects ||= [];
    trace.requests ||= [];
    trace.events ||= [];
    trace.reviews ||= [];
    for (const review of trace.reviews) review.asked ||= [];
    trace.steps = [...trace.requests, ...trace.reviews, ...trace.events].sort((a, b) => a.t - b.t);
    const figure = html('figure', { class: 'timeline' });
    const scroll = html('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Timeline' });
    const table = html('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Steps' });
    const shortened = html('input', { type: 'checkbox', checked: true });
    const everything = html('button', { type: 'button' }, `Show all ${trace.objects.length} objects and ${trace.steps.length} steps`);
    let lanes = LANES, limit = STEPS, width = 0;
    const draw = () => scroll.replaceChildren(new Drawing(trace, width, !shortened.checked, lanes).draw());
    const fill = () => table.replaceChildren(stepTable(trace, limit));
    shortened.addEventListener('change', draw);
    everything.hidden = tested(trace).length <= lanes && trace.steps.length <= limit;
    everything.addEventListener('click', () => {
      lanes = limit = Infinity;
      everything.hidden = true;
      draw();
      fill();
    });
    figure.append(
      html('div', { class: 'controls' }, legend(), html('label', { class: 'chip' }, shortened, 'long gaps shortened')),
      scroll, everything, table,
    );
    figure.addEventListener('pointerover', (event) => light(figure, event));
    figure.addEventListener('click', (event) => follow(figure, event));
    new ResizeObserver(() => {
      const now = Math.round(scroll.clientWidth);
      if (now === width || now === 0) return;
      width = now;
      draw();
    }).observe(scroll);
    width = 960;
    draw();
    fill();
    return figure;
  };

  const legend = () => html('ul', { class: 'legend' },
    ...[['request', 'request'], ['review', 'webhook asked'], ['ADDED', 'appeared'], ['MODIFIED', 'changed'], ['DELETED', 'gone'], ['terminating', 'terminating'], ['finalizers', 'finalizer'], ['owners', 'owner reference']]
      .map(([kind, text]) => html('li', {}, swatch(kind), text)));
  const swatch = (kind) => svg('svg', { class: 'timeline swatch', viewBox: '0 0 18 14', width: 18, height: 14, 'aria-hidden': 'true' }, {
    request: () => svg('g', { class: 'request' }, svg('line', { x1: 9, x2: 9, y1: 1, y2: 9 }), svg('path', { d: 'M5.5 8h7l-3.5 5z' })),
    review: () => svg('g', { class: 'review' }, svg('line', { x1: 9, x2: 9, y1: 1, y2: 9 }), svg('path', { d: 'M5.5 8h7l-3.5 5z' })),
    ADDED: () => svg('g', { class: 'event ADDED' }, svg('circle', { cx: 9, cy: 7, r: 5 })),
    MODIFIED: () => svg('g', { class: 'event MODIFIED' }, svg('path', { d: 'M9 1.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z' })),
    DELETED: () => svg('g', { class: 'event DELETED' }, svg('path', { d: 'M4.5 2.5l9 9m0 -9l-9 9' })),
    terminating: () => svg('rect', { class: 'terminating', x: 0, y: 2, width: 18, height: 10 }),
    finalizers: () => svg('rect', { class: 'finalizers', x: 0, y: 2, width: 18, height: 10, rx: 2 }),
    owners: () => svg('rect', { class: 'owners', x: 0.5, y: 2, width: 17, height: 10, rx: 2 }),
  }[kind]());

  const light = (figure, event) => {
    const step = event.target.closest('[data-step]')?.dataset.step;
    for (const part of figure.querySelectorAll('[data-step]')) part.classList.toggle('lit', part.dataset.step === step);
  };
  const follow = (figure, event) => {
    const mark = event.target.closest('g[data-step]');
    if (mark) figure.querySelector(`tr[data-step="${mark.dataset.step}"]`)?.scrollIntoView({ block: 'center' });
  };

  // story returns the details of a cell: the message, why objects remain, the timeline.
  const story = (details) => {
    const parts = [];
    if (!details) return [html('p', { class: 'note' }, 'This cluster has no result of this behavior.')];
    if (details.message) parts.push(html('pre', { class: 'message' }, details.message));
    if (details.source) {
      const source = html('code', {}, details.source);
      parts.push(html('p', { class: 'promise' }, details.promised ? 'Promised in ' : 'Observed in ',
        details.url ? html('a', { href: details.url, target: '_blank', rel: 'noopener noreferrer' }, source) : source,
        details.promise ? ': ' : '', details.promise ? html('q', {}, details.promise) : ''));
    }
    if (details.location) parts.push(html('p', { class: 'location' }, 'at ', html('code', {}, details.location)));
    if (details.explanation) {
      parts.push(html('h3', {}, 'Remaining objects'), html('ul', {}, ...details.explanation.map((line) => html('li', {}, line))));
    }
    return parts.concat(drawn(details));
  };
  const drawn = (details) => {
    if (details.trace) return [timeline(details.trace)];
    if (details.leftOut) return [html('p', { class: 'note' }, 'The timeline was left out to keep this page small; report.json has it.')];
    return [html('p', { class: 'note' }, 'No timeline: nothing was recorded.')];
  };
  const unreadable = (error) => html('p', { class: 'note' }, `This browser cannot unpack the timelines (${error.message}); report.json has them.`);

  // --- The dialog ---

  const dialog = document.querySelector('dialog');
  let shown;
  const show = (cell, focusOn) => {
    const row = rows.find((candidate) => candidate.tr === cell.parentElement);
    const column = row.cells.indexOf(cell);
    const outcome = cell.className;
    shown = cell;
    enter(cell);
    const pill = dialog.querySelector('.pill');
    pill.className = 'pill ' + outcome;
    pill.replaceChildren(icon(outcome), data.names[outcome] ?? outcome);
    dialog.querySelector('.cluster').replaceChildren('on ', html('bdi', {}, data.clusters[column]));
    dialog.querySelector('h2').replaceChildren(html('bdi', {}, row.statement));
    dialog.querySelector('.head .fine').textContent = [...row.tr.querySelector('.fine').children].map((part) => part.textContent).join(' · ');
    for (const button of dialog.querySelectorAll('[data-move]')) button.disabled = neighbor(cell, move(button)) === cell;
    fill(row.number, column);
    if (!dialog.open) {
      dialog.showModal();
      dialog.querySelector('h2').focus();
    } else if (focusOn?.disabled) {
      dialog.querySelector('h2').focus();
    }
    dialog.scrollTop = 0;
    history.replaceState(null, '', `#${encodeURIComponent(row.id)}@${encodeURIComponent(data.clusters[column])}`);
  };
  const move = (button) => button.dataset.move.split(',').map(Number);
  const fill = async (number, column) => {
    const content = dialog.querySelector('.content');
    const cell = shown;
    content.replaceChildren();
    try {
      const details = await detailsOf(number, column);
      if (cell !== shown) return;
      content.replaceChildren(...story(details));
      if (details?.took) dialog.querySelector('.head .fine').append(` · took ${details.took}`);
    } catch (error) {
      content.replaceChildren(unreadable(error));
    }
  };
  const onDialogClick = (event) => {
    const button = event.target.closest('button[data-move]');
    if (button) show(neighbor(shown, move(button)), button);
    else if (event.target === dialog || event.target.closest('.close')) dialog.close();
  };
  // The event comes after the dialog has closed. By then it may show another cell.
  const onDialogClose = () => {
    if (dialog.open) return;
    history.replaceState(null, '', '#');
    const cell = shown;
    shown = undefined;
    if (cell && !cell.parentElement.hidden) cell.focus({ preventScroll: true });
  };

  // cellOf is the cell that an address's fragment names: #behavior@cluster.
  const cellOf = (fragment) => {
    const [id, cluster] = fragment.replace(/^#/, '').split('@').map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
    return rows.find((row) => row.id === id)?.cells[data.clusters.indexOf(cluster)];
  };

  // --- What did not hold: the same timelines within the page ---

  const cellAt = (part) => rows.find((row) => row.number === Number(part.dataset.row)).cells[Number(part.dataset.column)];
  const drawProblem = async (problem) => {
    const place = problem.querySelector('.drawn');
    if (!place || place.dataset.done) return;
    place.dataset.done = 'yes';
    try {
      const details = await detailsOf(Number(place.dataset.row), Number(place.dataset.column));
      place.replaceChildren(...story({ ...details, message: undefined, location: undefined }));
    } catch (error) {
      place.replaceChildren(unreadable(error));
    }
  };
  const problems = [...document.querySelectorAll('details.problem')];
  const PRINTED = 12;
  const onIdle = (work) => (window.requestIdleCallback || setTimeout)(work, { timeout: 2000 });

  // --- Start ---

  form.hidden = false;
  table.setAttribute('role', 'grid');
  table.setAttribute('aria-label', 'Behaviors by cluster');
  for (const row of rows) for (const cell of row.cells) cell.tabIndex = -1;
  form.addEventListener('input', filter);
  form.addEventListener('submit', (event) => event.preventDefault());
  // reveal shows the row of a cell, whatever the filter hides.
  const reveal = (cell) => {
    if (!cell.parentElement.hidden) return;
    form.reset();
    for (const box of form.querySelectorAll('input[name=outcome]')) box.checked = box.value === cell.className;
    filter();
  };
  form.querySelector('.all').addEventListener('click', () => {
    form.reset();
    filter();
    search.focus();
  });
  table.addEventListener('keydown', onGridKey);
  table.addEventListener('click', (event) => {
    const cell = event.target.closest('tr[data-row] > td');
    if (cell) show(cell);
  });
  dialog.addEventListener('click', onDialogClick);
  dialog.addEventListener('close', onDialogClose);
  for (const problem of problems) {
    problem.addEventListener('toggle', () => problem.open && drawProblem(problem));
    for (const button of problem.querySelectorAll('button')) {
      button.disabled = false;
      button.addEventListener('click', () => {
        reveal(cellAt(button));
        show(cellAt(button));
      });
    }
  }
  // Printing opens what is folded; timelines of the first problems are drawn beforehand, since printing cannot wait.
  let folded = [];
  window.addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('.problem:not([open]), .reasons details:not([open])')];
    for (const part of folded) part.open = true;
  });
  window.addEventListener('afterprint', () => {
    for (const part of folded) part.open = false;
  });
  filter();
  const linked = cellOf(location.hash);
  if (linked) {
    reveal(linked);
    show(linked);
  }
  onIdle(() => problems.slice(0, PRINTED).forEach(drawProblem));
})();
