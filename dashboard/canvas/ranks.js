/* Ranks over time on one canvas. Every row is painted as pixels of an image no wider than the
   screen, so a thousand rows cost what their pixels cost and not what their intervals do.

   What Python gives: columns, lanes (pairs of length and code), rows (text, lane), kinds (title,
   colour, weight; a colour of null is that of the text), marks (address, text, from and to in
   columns, row), begin and end in ms, zone, height of a row in CSS pixels, zoomed.
   What it is told: `stretch`, two shares of the shown time, or nothing for the whole run. */

const GUTTER = 78, TOP = 12, BOTTOM = 22, NEAR = 5, LEAST = 4, MANY = 60;
const kept = new WeakMap();

export default function (component) {
  const root = component.parentElement;
  let view = kept.get(root);
  if (!view) {
    view = new View(root);
    kept.set(root, view);
  }
  view.show(component.data, component.setTriggerValue);
  return () => {
    view.close();
    kept.delete(root);
  };
}

class View {
  constructor(root) {
    const find = (name) => root.querySelector(name);
    this.canvas = find("canvas");
    this.tip = find(".tip");
    this.chosen = find(".chosen");
    this.told = find(".told");
    this.whole = find(".whole");
    this.hint = find(".hint");
    this.legend = find(".legend");
    this.at = -1;
    this.pressed = null;
    this.over = new AbortController();
    const on = (target, name, act) =>
      target.addEventListener(name, act, { signal: this.over.signal });
    const canvas = this.canvas;
    on(canvas, "pointermove", (event) => this.moved(event));
    on(canvas, "pointerleave", () => { this.tip.hidden = true; });
    on(canvas, "pointerdown", (event) => this.down(event));
    on(canvas, "pointerup", (event) => this.up(event));
    on(canvas, "pointercancel", () => { this.pressed = null; });
    on(canvas, "keydown", (event) => this.key(event));
    on(this.whole, "click", () => this.tell("stretch", []));
    // the page changes its colours a moment after the reader's system did
    on(matchMedia("(prefers-color-scheme: dark)"), "change",
      () => setTimeout(() => this.draw(), 300));
    this.sized = new ResizeObserver(() => this.draw());
    this.sized.observe(canvas.parentElement);
  }

  close() {
    this.sized.disconnect();
    this.over.abort();
  }

  show(data, tell) {
    this.data = data;
    this.tell = tell;
    this.at = Math.min(this.at, data.marks.length - 1);
    this.whole.hidden = !data.zoomed;
    this.hint.textContent = data.hint;
    this.canvas.setAttribute("aria-label", data.label);
    this.clock = new Intl.DateTimeFormat(data.locale || undefined, {
      timeZone: data.zone, month: "short", day: "numeric", hour: "2-digit", minute: "2-digit",
      second: "2-digit", hourCycle: "h23" });
    this.short = new Intl.DateTimeFormat(data.locale || undefined, {
      timeZone: data.zone, hour: "2-digit", minute: "2-digit", hourCycle: "h23",
      ...(data.end - data.begin > 36e5 * 20 ? { month: "short", day: "numeric" } : {}),
      ...(data.end - data.begin < 6e5 ? { second: "2-digit" } : {}) });
    this.draw();
  }

  draw() {
    const { data, canvas } = this;
    const wide = canvas.parentElement.clientWidth;
    if (!data || !wide) return;
    performance.mark("headway-ranks-begin");
    const dense = window.devicePixelRatio || 1;
    const style = getComputedStyle(canvas);
    this.ink = style.getPropertyValue("--st-text-color").trim() || style.color;
    const paper = style.getPropertyValue("--st-background-color").trim() || "#fff";
    this.gutter = Math.min(GUTTER, wide / 4);
    this.width = wide - this.gutter;
    this.height = data.rows.length * data.height;
    canvas.style.height = `${this.height + TOP + BOTTOM}px`;
    canvas.width = Math.round(wide * dense);
    canvas.height = Math.round((this.height + TOP + BOTTOM) * dense);
    const context = canvas.getContext("2d");
    context.scale(dense, dense);
    this.colours = data.kinds.map((kind) => kind.colour || this.ink);
    const image = this.image(Math.round(this.width * dense));
    context.imageSmoothingEnabled = false;
    context.drawImage(image, this.gutter, TOP, this.width, this.height);
    if (data.height >= 5) {
      context.fillStyle = paper;
      for (let row = 1; row < data.rows.length; row++)
        context.fillRect(this.gutter, TOP + row * data.height - 0.5, this.width, 1);
    }
    this.labels(context);
    this.axis(context);
    this.marks(context);
    this.key_();
    performance.measure("headway-ranks", "headway-ranks-begin");
  }

  /* One pixel per row and column; where the screen is narrower, the heaviest of what shares one. */
  image(most) {
    const { lanes, rows, kinds, columns } = this.data;
    const width = Math.max(1, Math.min(most, columns));
    const paints = new Uint32Array(this.colours.map(pixel));
    const weights = Uint8Array.from(kinds, (kind) => kind.weight);
    const lows = Uint32Array.from({ length: width + 1 }, (_, x) => (x * columns) / width);
    const painted = lanes.map((lane) => {
      const line = new Uint32Array(width);
      if (width === columns) {
        for (let pair = 0, x = 0; pair < lane.length; pair += 2)
          line.fill(paints[lane[pair + 1]], x, x += lane[pair]);
        return line;
      }
      const codes = decoded(lane, columns);
      for (let x = 0; x < width; x++) {
        let best = codes[lows[x]];
        for (let from = lows[x] + 1; from < lows[x + 1]; from++)
          if (weights[codes[from]] > weights[best]) best = codes[from];
        line[x] = paints[best];
      }
      return line;
    });
    const image = document.createElement("canvas");
    image.width = width;
    image.height = Math.max(1, rows.length);
    const context = image.getContext("2d");
    const bytes = context.createImageData(image.width, image.height);
    const pixels = new Uint32Array(bytes.data.buffer);
    rows.forEach((row, number) => pixels.set(painted[row.lane], number * width));
    context.putImageData(bytes, 0, 0);
    return image;
  }

  labels(context) {
    const { rows, height } = this.data;
    context.fillStyle = this.ink;
    context.font = "11px sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    const every = [1, 2, 5, 10, 20, 50, 100, 200].find((each) => each * height >= 14) || 500;
    for (let row = 0; row < rows.length; row += every)
      context.fillText(rows[row].short, this.gutter - 6,
        TOP + (row + 0.5) * height, this.gutter - 10);
  }

  axis(context) {
    const { begin, end } = this.data;
    const ticks = Math.max(1, Math.min(8, Math.floor(this.width / 110)));
    context.textBaseline = "alphabetic";
    for (let tick = 0; tick <= ticks; tick++) {
      const x = this.gutter + (this.width * tick) / ticks;
      context.globalAlpha = 0.4;
      context.fillRect(Math.min(x, this.gutter + this.width - 1), TOP + this.height, 1, 5);
      context.globalAlpha = 1;
      context.textAlign = tick === 0 ? "left" : tick === ticks ? "right" : "center";
      context.fillText(this.short.format(begin + ((end - begin) * tick) / ticks), x,
        TOP + this.height + 17);
    }
  }

  marks(context) {
    const { marks, columns, height } = this.data;
    const many = marks.length > MANY, half = many ? 2 : 4;
    marks.forEach((mark, number) => {
      const x = this.gutter + (mark.from / columns) * this.width;
      const strong = number === this.at;
      context.fillStyle = this.ink;
      if (strong || !many) {
        context.globalAlpha = strong ? 1 : 0.55;
        context.fillRect(x - (strong ? 1 : 0.5), TOP - 4, strong ? 2 : 1, this.height + 4);
        context.globalAlpha = 1;
      }
      context.beginPath();
      context.moveTo(x - half, 2);
      context.lineTo(x + half, 2);
      context.lineTo(x, TOP - 2);
      context.fill();
      if (mark.row !== null && (strong || !many)) {
        const y = TOP + mark.row * height;
        context.strokeStyle = this.ink;
        context.lineWidth = 1.5;
        context.strokeRect(x - 3, y - Math.max(0, 6 - height) / 2, 6, Math.max(height, 6));
      }
    });
  }

  key_() {
    const { kinds, lanes } = this.data;
    const used = new Set();
    for (const lane of lanes) for (let code = 1; code < lane.length; code += 2) used.add(lane[code]);
    this.legend.replaceChildren(...kinds.flatMap((kind, code) => {
      if (!used.has(code)) return [];
      const one = document.createElement("span"), box = document.createElement("i");
      box.style.background = this.colours[code];
      one.title = kind.meaning;
      one.append(box, kind.title);
      return [one];
    }));
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left - this.gutter, y = event.clientY - box.top - TOP;
    return { x, y, share: Math.min(1, Math.max(0, x / this.width)),
      row: Math.floor(y / this.data.height) };
  }

  /* The incident at a place: its line within a few pixels, else the shortest stretch around it. */
  mark(place) {
    const { marks, columns } = this.data;
    const scale = this.width / columns;
    let found = -1, least = Infinity;
    marks.forEach((mark, number) => {
      const from = mark.from * scale, to = Math.max(mark.to * scale, from);
      if (place.x < from - NEAR || place.x > to + NEAR) return;
      const near = Math.abs(place.x - from) <= NEAR ? Math.abs(place.x - from) - 1e6 : to - from;
      if (near < least) [found, least] = [number, near];
    });
    return found;
  }

  moved(event) {
    const place = this.place(event);
    if (this.pressed) {
      const from = Math.min(this.pressed.x, place.x), to = Math.max(this.pressed.x, place.x);
      this.chosen.hidden = to - from < LEAST;
      this.chosen.style.left = `${this.gutter + Math.max(0, from)}px`;
      this.chosen.style.width = `${Math.min(to, this.width) - Math.max(0, from)}px`;
    }
    const { rows, lanes, kinds, columns, begin, end, marks } = this.data;
    const inside = place.row >= 0 && place.row < rows.length && place.x >= 0;
    const number = this.mark(place);
    this.canvas.style.cursor = number >= 0 ? "pointer" : "crosshair";
    if (!inside && number < 0) {
      this.tip.hidden = true;
      return;
    }
    const lines = [];
    if (inside) {
      const row = rows[place.row];
      const column = Math.min(columns - 1, Math.floor(place.share * columns));
      lines.push(row.text, kinds[decoded(lanes[row.lane], columns)[column]].title);
    }
    lines.push(this.clock.format(begin + (end - begin) * place.share));
    if (number >= 0) lines.push(`${marks[number].text} Click to open it.`);
    this.tip.textContent = lines.join("\n");
    this.tip.hidden = false;
    const x = place.x + this.gutter, left = x > this.canvas.clientWidth / 2;
    this.tip.style.left = left ? "" : `${x + 14}px`;
    this.tip.style.right = left ? `${this.canvas.clientWidth - x + 14}px` : "";
    this.tip.style.top = `${Math.max(0, place.y + TOP + 14)}px`;
  }

  down(event) {
    if (event.button !== 0) return;
    this.pressed = this.place(event);
    if (event.pointerType === "mouse") this.canvas.setPointerCapture(event.pointerId);
  }

  up(event) {
    const from = this.pressed, to = this.place(event);
    this.pressed = null;
    this.chosen.hidden = true;
    if (!from) return;
    if (Math.abs(to.x - from.x) >= LEAST && event.pointerType === "mouse") {
      this.tell("stretch", [Math.min(from.share, to.share), Math.max(from.share, to.share)]);
      return;
    }
    const number = this.mark(to);
    if (number >= 0) this.open(number, event.ctrlKey || event.metaKey);
  }

  open(number, aside) {
    const address = new URL(this.data.marks[number].address, document.baseURI);
    if (aside) window.open(address, "_blank", "noopener");
    else window.location.assign(address);
  }

  key(event) {
    const { marks } = this.data;
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (turn && marks.length) {
      this.at = this.at < 0 ? (turn > 0 ? 0 : marks.length - 1)
        : (this.at + turn + marks.length) % marks.length;
      this.told.textContent = `${marks[this.at].text} Press Enter to open it.`;
      this.draw();
    } else if (event.key === "Enter" && this.at >= 0) {
      this.open(this.at, event.ctrlKey || event.metaKey);
    } else if (event.key === "+" || event.key === "-") {
      const wider = event.key === "+" ? 0.25 : -0.5;
      this.tell("stretch", [wider, 1 - wider]);
    } else if (event.key === "Escape" && this.data.zoomed) {
      this.tell("stretch", []);
    } else return;
    event.preventDefault();
  }
}

/* The code of each column of a lane. */
function decoded(lane, columns) {
  const codes = new Uint16Array(columns);
  for (let pair = 0, x = 0; pair < lane.length; pair += 2)
    codes.fill(lane[pair + 1], x, x += lane[pair]);
  return codes;
}

/* A colour such as #009E73 as the pixel of an image, whose bytes are red, green, blue, alpha. */
function pixel(colour) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  const bytes = probe.getImageData(0, 0, 1, 1).data;
  return new Uint32Array(bytes.buffer)[0];
}
