// The curves over time and the calibration.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const [SMALLEST_DOT, LARGEST_DOT] = [3.5, 9]; // their radii in the diagram of calibration

function draw(parent, tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
}

/** Round numbers that divide [low, high] into about `parts`: 1, 2 or 5 times a power of ten. */
function ticks(low, high, parts) {
  const rough = (high - low) / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/** Lines of a figure over the whole stream and the window, with a place to read them at. */
class TimeChart {
  constructor(figure) {
    figure.append(byId("chart-template").content.cloneNode(true));
    this.figure = figure;
    this.columns = []; // of the whole stream and the newest messages
    this.plot = figure.querySelector(".plot");
    this.svg = figure.querySelector("svg");
    this.range = figure.querySelector("input");
    this.range.addEventListener("input", () => readAt(curve.rows[this.range.value]));
    this.range.addEventListener("blur", () => readAt(null));
    this.plot.addEventListener("pointermove", (event) => this.#point(event));
    this.plot.addEventListener("pointerdown", (event) => this.#point(event));
    this.plot.addEventListener("pointerleave", () => readAt(null));
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  /** Follow a figure, unless there is none or nothing is known of it. */
  setFigure(figure) {
    const { rows } = curve;
    this.columns = figure ? [figure.name, `window_${figure.name}`] : [];
    this.figure.hidden = !figure || (rows.length > 0 && !rows.some((row) => known(row[figure.name])));
    if (!figure || this.title === figure.title) return;
    this.title = figure.title;
    write(this.figure.querySelector("h3"), this.title);
    this.range.setAttribute("aria-label", `Read ${this.title} at a message`);
  }

  #point(event) {
    if (!curve.rows.length) return;
    const n = this.fromX(event.clientX - this.plot.getBoundingClientRect().left);
    readAt(curve.rows.reduce((a, b) => (Math.abs(b.n - n) < Math.abs(a.n - n) ? b : a)));
  }

  draw() {
    const { rows, drifts } = curve;
    const values = rows.flatMap((row) => this.columns.map((column) => row[column])).filter(known);
    const empty = !values.length;
    this.figure.classList.toggle("blank", empty);
    const [width, height] = [this.plot.clientWidth, this.plot.clientHeight];
    if (empty || !width) return;

    const [left, right, top, bottom] = [44, 12, 16, 24];
    const least = Math.max(...values) > 0 ? 0.004 : 1; // how much the axis spans
    const lowest = Math.max(0, Math.min(...values, Math.max(...values) - least));
    const levels = ticks(lowest, Math.max(...values, lowest + least), 4);
    const [low, high] = [Math.max(0, levels[0]), Math.max(...values) > 1 ? levels.at(-1) : Math.min(1, levels.at(-1))];
    const end = Math.max(curve.n, rows.at(-1).n);
    const x = (n) => left + (n / end) * (width - left - right);
    const y = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
    this.fromX = (px) => ((px - left) / (width - left - right)) * end;

    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const decimals = Math.max(1, Math.ceil(-Math.log10(levels[1] - levels[0]) - 1e-9));
    for (const level of levels.filter((value) => value >= low - 1e-9 && value <= high + 1e-9)) {
      draw(this.svg, "line", { class: "grid", x1: left, x2: width - right, y1: y(level), y2: y(level) });
      draw(this.svg, "text", { x: left - 8, y: y(level) + 4, "text-anchor": "end" }, level.toFixed(decimals));
    }
    for (const n of ticks(0, end, Math.max(2, width / 120)).filter((n) => n <= end && Number.isInteger(n))) {
      const atEnd = x(n) > width - 30;
      const place = { x: atEnd ? width - right : x(n), y: height - 6, "text-anchor": atEnd ? "end" : "middle" };
      draw(this.svg, "text", place, compact.format(n));
    }
    for (const n of drifts) {
      draw(this.svg, "line", { class: "drift", x1: x(n), x2: x(n), y1: top - 4, y2: height - bottom });
      draw(this.svg, "path", { class: "drift-mark", d: `M${x(n)} ${top}l5 -6l-5 -6l-5 6z` });
    }
    this.columns.forEach((column, i) => this.#drawLine(rows, column, x, y, ["line-whole", "line-window"][i]));
    this.#drawReading(rows, drifts, x, y, height - bottom, top);
  }

  #drawLine(rows, column, x, y, kind) {
    let path = "";
    let pen = "M"; // lifted where a figure is not known
    for (const row of rows) {
      if (known(row[column])) path += `${pen}${x(row.n).toFixed(1)} ${y(row[column]).toFixed(1)}`;
      pen = known(row[column]) ? "L" : "M";
    }
    if (path) draw(this.svg, "path", { class: kind, d: path });
  }

  #drawReading(rows, drifts, x, y, bottom, top) {
    const chosen = rows.findIndex((row) => row.n === reading);
    const at = chosen < 0 ? rows.length - 1 : chosen;
    const row = rows[at];
    if (chosen >= 0) draw(this.svg, "line", { class: "cursor", x1: x(row.n), x2: x(row.n), y1: top, y2: bottom });
    this.columns.forEach((column, i) => {
      const kind = ["dot-whole", "dot-window"][i];
      if (known(row[column])) draw(this.svg, "circle", { class: kind, cx: x(row.n), cy: y(row[column]), r: 4 });
    });
    const [all, newest] = this.columns.map((column) => score(row[column]));
    const part = `newest ${count(curve.window)}`;
    write(this.figure.querySelector(".whole b"), all);
    write(this.figure.querySelector(".window span"), part);
    write(this.figure.querySelector(".window b"), newest);
    this.figure.querySelector(".window").hidden = !rows.some((row) => known(row[this.columns[1]]));
    write(this.figure.querySelector(".at"), `at message ${count(row.n)}`);
    const alarms = drifts.length ? ` Drift alarms at messages ${drifts.map(count).join(", ")}.` : "";
    const latest = this.columns.map((column) => score(rows.at(-1)[column]));
    this.svg.setAttribute(
      "aria-label",
      `${this.title} over ${plural(curve.n, "message")}: ${latest[0]} of all, ${latest[1]} of the ${part}.${alarms}`,
    );
    this.range.max = rows.length - 1;
    this.range.value = at;
    this.range.setAttribute("aria-valuetext", `at message ${count(row.n)}: ${all} of all, ${newest} of the ${part}`);
  }
}

let reading = null; // the message that is read at; null: the newest

function readAt(row) {
  reading = row ? row.n : null;
  drawCharts();
}

function drawCharts() {
  for (const chart of charts) chart.draw();
}

const charts = [];

function addChart() {
  const figure = document.createElement("figure");
  figure.className = "panel chart";
  figure.id = `chart-${charts.length + 1}`;
  byId("charts").append(figure);
  charts.push(new TimeChart(figure));
}

/** The share that was right against the predicted probability, in tenths, over bars of their numbers. The share of few
 * is mostly chance, and has no dot; the area of a dot is as the number. */
class ReliabilityDiagram {
  constructor(plot) {
    this.plot = plot;
    this.tenths = [];
    this.fewest = 0;
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("role", "img");
    this.svg.setAttribute("aria-label", "Reliability diagram; the table below has its figures");
    plot.append(this.svg);
    new ResizeObserver(() => this.draw()).observe(plot);
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!width) return;
    const [left, right, top, bars, bottom] = [36, 14, 8, 56, 40];
    const side = Math.min(width - left - right, 300);
    const floor = top + side + 20 + bars;
    const x = (share) => left + share * (width - left - right);
    const y = (share) => top + (1 - share) * side;
    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${floor + bottom}`);
    for (const share of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
      draw(this.svg, "line", { class: "grid", x1: x(0), x2: x(1), y1: y(share), y2: y(share) });
      draw(this.svg, "text", { x: left - 8, y: y(share) + 4, "text-anchor": "end" }, share.toFixed(1));
      draw(this.svg, "text", { x: x(share), y: floor + 16, "text-anchor": "middle" }, share.toFixed(1));
    }
    draw(this.svg, "text", { x: x(0.5), y: floor + 34, "text-anchor": "middle" }, "predicted probability");
    draw(this.svg, "line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) });
    const most = Math.max(1, ...this.tenths.map(([n]) => n));
    this.tenths.forEach(([n], i) => {
      const tall = n ? Math.max(1.5, (n / most) * (bars - 16)) : 0;
      const wide = (x(1) - x(0)) / 10 - 4;
      draw(this.svg, "rect", { class: "count", x: x(i / 10) + 2, y: floor - tall, width: wide, height: tall });
      const label = { class: "small", x: x((i + 0.5) / 10), y: floor - tall - 4, "text-anchor": "middle" };
      if (n) draw(this.svg, "text", label, compact.format(n));
    });
    const isDrawn = (tenth) => tenth && tenth[0] >= this.fewest && tenth.every(known);
    const points = this.tenths.filter(isDrawn);
    let path = "";
    this.tenths.forEach(([, mean, share], i) => {
      const pen = isDrawn(this.tenths[i - 1]) ? "L" : "M"; // lifted over those that are not drawn
      if (isDrawn(this.tenths[i])) path += `${pen}${x(mean).toFixed(1)} ${y(share).toFixed(1)}`;
    });
    if (path) draw(this.svg, "path", { class: "line-window", d: path });
    for (const [n, mean, share] of points) {
      const r = Math.max(SMALLEST_DOT, LARGEST_DOT * Math.sqrt(n / most)).toFixed(1);
      draw(this.svg, "circle", { class: "dot-window", cx: x(mean), cy: y(share), r });
    }
  }
}

const diagram = new ReliabilityDiagram(byId("calibration-plot"));

function showReliability(tenths, fewest) {
  showEither("calibration", "no-calibration", tenths.some(([n]) => n));
  Object.assign(diagram, { tenths, fewest });
  byId("few").hidden = !tenths.some(([n]) => n && n < fewest);
  write(byId("few"), `Tenths of fewer than ${fewest} have no dot.`);
  diagram.draw();
  const body = byId("reliability");
  tenths.forEach(([n, mean, share], i) => {
    const row = body.rows[i] ?? body.insertRow();
    const cells = [`${i / 10} to ${(i + 1) / 10}`, count(n), score(mean), score(share)];
    cells.forEach((text, column) => write(row.cells[column] ?? row.insertCell(), text));
  });
}
