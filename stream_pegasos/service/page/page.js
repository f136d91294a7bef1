// Shows what GET /monitor answers, once a second, and updates the page in place.
// Messages, labels and words are strangers': they go in by textContent alone.
"use strict";

const POLL = 1_000;
const POLL_HIDDEN = 15_000;
const TIMEOUT = 10_000;
const FIRST_CONTRIBUTIONS = 12;
const TOKEN = "stream-pegasos token";

const byId = (id) => document.getElementById(id);
const known = (value) => value !== null && value !== undefined;

// Numbers and words ---------------------------------------------------------------------------------------------------

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const score = (value) => (known(value) ? value.toFixed(4) : "–");
const count = (value) => (known(value) ? whole.format(value) : "–");
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
const name = (label) => (!known(label) ? "?" : label === "" ? "(empty)" : String(label));
const word = (ngram) => (ngram.startsWith(" ") ? `${ngram.slice(1)}…` : ngram);

function duration(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (!hours) return `${minutes} min ${Math.floor(seconds) % 60} s`;
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// Updating in place ---------------------------------------------------------------------------------------------------

function write(element, text) {
  // Writing the same text again would lose what the reader has selected.
  if (element.textContent !== text) element.textContent = text;
}

function setClass(element, value) {
  if (element.className !== value) element.className = value;
}

function setAll(selector, text) {
  for (const element of document.querySelectorAll(selector)) write(element, text);
}

/** Make the children of `parent` those of `items`, each element kept for as long as its key is there. */
function update(parent, items, keyOf, templateId, fill) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const times = new Map();
  const after = items.map((item) => {
    const base = keyOf(item);
    times.set(base, (times.get(base) ?? 0) + 1);
    const key = JSON.stringify([base, times.get(base)]);
    const element = before.get(key) ?? byId(templateId).content.firstElementChild.cloneNode(true);
    before.delete(key);
    element.dataset.key = key;
    fill(element, item);
    return element;
  });
  for (const gone of before.values()) gone.remove();
  after.forEach((element, i) => {
    if (parent.children[i] !== element) parent.insertBefore(element, parent.children[i] ?? null);
  });
}

// Asking the service --------------------------------------------------------------------------------------------------

let wake = () => {};

function ask(path, options = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  return fetch(path, { ...options, headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
}

/** The reason that an answer gives for its status, in one line. */
async function reason(response) {
  const answer = await response.json().catch(() => null);
  return typeof answer?.detail === "string" ? answer.detail : `the service answered ${response.status}`;
}

function askForToken() {
  const form = byId("token-form");
  if (sessionStorage.getItem(TOKEN)) write(byId("token-error"), "That token was not accepted.");
  sessionStorage.removeItem(TOKEN);
  setState("locked", "Token needed");
  if (form.hidden) {
    form.hidden = false;
    byId("token").focus();
  }
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  if (!/^[\x21-\x7e]+$/.test(token)) {
    write(byId("token-error"), "A token consists of letters, digits and signs of ASCII, without spaces.");
    return;
  }
  sessionStorage.setItem(TOKEN, token);
  write(byId("token-error"), "");
  wake();
});

// Polling -------------------------------------------------------------------------------------------------------------

let seen = null; // when the figures came

function setState(state, text) {
  setClass(byId("state"), `state ${state}`);
  write(byId("state"), text);
}

function setNotice(id, text) {
  write(byId(id), text);
  byId(id).hidden = !text;
}

function lost(why) {
  const age = seen ? ` The figures below are those of ${seen.toLocaleTimeString("en-GB")}.` : "";
  setState("lost", "No connection");
  setNotice("notice", `${why}${age} Trying again…`);
}

async function refresh() {
  let data;
  try {
    const response = await ask("monitor");
    if (response.status === 401) return askForToken();
    if (!response.ok) return lost(`The service has no figures: ${await reason(response)}.`);
    data = await response.json();
  } catch {
    return lost("The service cannot be reached.");
  }
  seen = new Date();
  byId("token-form").hidden = true;
  setState("live", "Live");
  setNotice("notice", "");
  show(data);
}

async function poll() {
  for (;;) {
    await refresh().catch((error) => console.error(error));
    await new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, document.hidden ? POLL_HIDDEN : POLL);
    });
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) wake();
});

// The figures ---------------------------------------------------------------------------------------------------------

let curve = { n: 0, rows: [], drifts: [], window: 0 };

function show(data) {
  const { model, window: newest } = data;
  const [negative, positive] = model.classes;
  setAll("bdi.negative", known(negative) ? name(negative) : "negative");
  setAll("bdi.positive", known(positive) ? name(positive) : "positive");
  byId("nothing").hidden = data.n > 0;

  write(byId("model-line"), `${model.kind}, ${plural(data.n, "message")} learned`);
  write(byId("uptime"), `up ${duration(data.uptime_seconds)}`);
  for (const id of ["accuracy", "roc_auc", "log_loss", "expected_calibration_error"]) write(byId(id), score(data[id]));
  for (const id of ["accuracy", "roc_auc"]) {
    write(byId(`window_${id}`), known(newest[id]) ? `newest ${count(newest.n)}: ${score(newest[id])}` : "");
  }
  write(byId("n"), count(data.n));
  write(byId("n_predictions"), plural(data.n_predictions, "prediction"));
  const rate = data.docs_per_second;
  write(byId("docs_per_second"), known(rate) && rate < 100 ? short.format(rate) : count(rate));
  write(byId("n_failed"), data.n_failed ? `${plural(data.n_failed, "request")} failed` : "no request failed");

  const drifts = data.drifts;
  const last = drifts.length ? `, the last one at message ${count(drifts.at(-1))}` : "";
  write(byId("drifts"), drifts.length ? `${plural(drifts.length, "drift alarm")}${last}.` : "No drift alarm.");
  setClass(byId("drifts"), drifts.length ? "alarms" : "");
  curve = { n: data.n, rows: data.curve, drifts, window: newest.size };
  drawCharts();

  data.confusion_matrix.flat().forEach((cell, i) => write(byId(["tn", "fp", "fn", "tp"][i]), count(cell)));
  showReliability(data.reliability);
  showModel(model, data.checkpoint);
  showWords("negative-words", data.words.negative);
  showWords("positive-words", data.words.positive);
  byId("no-words").hidden = data.words.negative.length + data.words.positive.length > 0;
  update(byId("newest"), data.newest, (message) => [message.number, message.text], "message-template", showMessage);
  byId("newest-table").hidden = !data.newest.length;
  byId("no-newest").hidden = data.newest.length > 0;
}

function showModel(model, checkpoint) {
  const most = known(model.max_features) ? `, at most ${count(model.max_features)}` : "";
  write(byId("kind"), model.kind);
  write(byId("classifier"), model.classifier);
  write(byId("n_iterations"), count(model.n_iterations));
  write(byId("n_features"), count(model.n_features) + most);
  if (!checkpoint) {
    write(byId("checkpoint"), "none is kept");
    write(byId("saved"), "what is learned ends with the service");
  } else {
    const ago = checkpoint.seconds_ago;
    write(byId("checkpoint"), checkpoint.path);
    write(byId("saved"), known(ago) ? `${duration(ago)} ago` : "not yet");
  }
  const error = checkpoint?.error;
  const path = checkpoint?.path;
  setNotice("checkpoint-notice", error ? `The checkpoint ${path} cannot be written: ${error}. Learning goes on.` : "");
}

function showWords(id, words) {
  const largest = Math.max(...words.map(([, weight]) => Math.abs(weight)));
  update(byId(id), words, ([ngram]) => ngram, "word-template", (item, [ngram, weight]) => {
    write(item.children[0], word(ngram));
    write(item.children[1], signed(weight));
    item.style.setProperty("--share", Math.abs(weight) / largest || 0);
  });
}

function showMessage(row, message) {
  const { text, label, predicted, probability, margin } = message;
  const cell = (selector) => row.querySelector(selector);
  write(cell(".number"), count(message.number));
  write(cell(".text bdi"), text.trim() ? text : "(empty)");
  write(cell(".predicted bdi"), known(predicted) ? name(predicted) : "–");
  write(cell(".probability"), known(probability) ? probability.toFixed(3) : "–");
  write(cell(".margin"), known(margin) ? signed(margin) : "–");
  let [kind, verdict, truth] = ["", "", ""];
  if (!known(label)) verdict = "no label";
  else if (!known(predicted)) [verdict, truth] = ["label", name(label)];
  else if (predicted === label) [kind, verdict] = ["right", "✓ right"];
  else [kind, verdict, truth] = ["wrong", "✗ is", name(label)];
  setClass(cell(".outcome"), `outcome ${kind}`);
  write(cell(".outcome span"), verdict);
  write(cell(".outcome bdi"), truth);
}

// Charts --------------------------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";

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

/** Lines of accuracy or AUC over the whole stream and the window, with a place to read them at. */
class TimeChart {
  constructor(id, title, wholeColumn, windowColumn) {
    const figure = byId(id);
    figure.append(byId("chart-template").content.cloneNode(true));
    this.figure = figure;
    this.title = title;
    this.columns = [wholeColumn, windowColumn];
    this.plot = figure.querySelector(".plot");
    this.svg = figure.querySelector("svg");
    this.range = figure.querySelector("input");
    this.range.setAttribute("aria-label", `Read ${title} at a message`);
    this.range.addEventListener("input", () => readAt(curve.rows[this.range.value]));
    this.range.addEventListener("blur", () => readAt(null));
    this.plot.addEventListener("pointermove", (event) => this.#point(event));
    this.plot.addEventListener("pointerdown", (event) => this.#point(event));
    this.plot.addEventListener("pointerleave", () => readAt(null));
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  #point(event) {
    if (!curve.rows.length) return;
    const n = this.fromX(event.clientX - this.plot.getBoundingClientRect().left);
    readAt(curve.rows.reduce((a, b) => (Math.abs(b[0] - n) < Math.abs(a[0] - n) ? b : a)));
  }

  draw() {
    const { rows, drifts } = curve;
    const values = rows.flatMap((row) => this.columns.map((column) => row[column])).filter(known);
    const empty = !values.length;
    this.figure.classList.toggle("blank", empty);
    const [width, height] = [this.plot.clientWidth, this.plot.clientHeight];
    if (empty || !width) return;

    const [left, right, top, bottom] = [44, 12, 16, 24];
    const lowest = Math.max(0, Math.min(...values, Math.max(...values) - 0.004));
    const levels = ticks(lowest, Math.max(...values, lowest + 0.004), 4);
    const [low, high] = [Math.max(0, levels[0]), Math.min(1, levels.at(-1))];
    const end = Math.max(curve.n, rows.at(-1)[0]);
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
      if (known(row[column])) path += `${pen}${x(row[0]).toFixed(1)} ${y(row[column]).toFixed(1)}`;
      pen = known(row[column]) ? "L" : "M";
    }
    if (path) draw(this.svg, "path", { class: kind, d: path });
  }

  #drawReading(rows, drifts, x, y, bottom, top) {
    const chosen = rows.findIndex((row) => row[0] === reading);
    const at = chosen < 0 ? rows.length - 1 : chosen;
    const row = rows[at];
    if (chosen >= 0) draw(this.svg, "line", { class: "cursor", x1: x(row[0]), x2: x(row[0]), y1: top, y2: bottom });
    this.columns.forEach((column, i) => {
      const kind = ["dot-whole", "dot-window"][i];
      if (known(row[column])) draw(this.svg, "circle", { class: kind, cx: x(row[0]), cy: y(row[column]), r: 4 });
    });
    const [all, newest] = this.columns.map((column) => score(row[column]));
    const part = `newest ${count(curve.window)}`;
    write(this.figure.querySelector(".whole b"), all);
    write(this.figure.querySelector(".window span"), part);
    write(this.figure.querySelector(".window b"), newest);
    write(this.figure.querySelector(".at"), `at message ${count(row[0])}`);
    const alarms = drifts.length ? ` Drift alarms at messages ${drifts.map(count).join(", ")}.` : "";
    const latest = this.columns.map((column) => score(rows.at(-1)[column]));
    this.svg.setAttribute(
      "aria-label",
      `${this.title} over ${plural(curve.n, "message")}: ${latest[0]} of all, ${latest[1]} of the ${part}.${alarms}`,
    );
    this.range.max = rows.length - 1;
    this.range.value = at;
    this.range.setAttribute("aria-valuetext", `at message ${count(row[0])}: ${all} of all, ${newest} of the ${part}`);
  }
}

let reading = null; // the message that is read at; null: the newest

function readAt(row) {
  reading = row ? row[0] : null;
  drawCharts();
}

function drawCharts() {
  for (const chart of charts) chart.draw();
}

const charts = [new TimeChart("accuracy-chart", "accuracy", 1, 3), new TimeChart("roc-auc-chart", "ROC AUC", 2, 4)];

/** The share of positives against the predicted probability, in tenths, over bars of their numbers. */
class ReliabilityDiagram {
  constructor(plot) {
    this.plot = plot;
    this.tenths = [];
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
    const points = this.tenths.filter(([n, mean, share]) => n && known(mean) && known(share));
    const path = points.map(([, mean, share]) => `${x(mean).toFixed(1)} ${y(share).toFixed(1)}`).join("L");
    if (path) draw(this.svg, "path", { class: "line-window", d: `M${path}` });
    for (const [, mean, share] of points) {
      draw(this.svg, "circle", { class: "dot-window", cx: x(mean), cy: y(share), r: 4 });
    }
  }
}

const diagram = new ReliabilityDiagram(byId("calibration-plot"));

function showReliability(tenths) {
  const empty = tenths.every(([n]) => !n);
  byId("calibration").hidden = empty;
  byId("no-calibration").hidden = !empty;
  diagram.tenths = tenths;
  diagram.draw();
  const body = byId("reliability");
  tenths.forEach(([n, mean, share], i) => {
    const row = body.rows[i] ?? body.insertRow();
    const cells = [`${i / 10} to ${(i + 1) / 10}`, count(n), score(mean), score(share)];
    cells.forEach((text, column) => write(row.cells[column] ?? row.insertCell(), text));
  });
}

// Trying a text -------------------------------------------------------------------------------------------------------

let trial = 0; // only the newest question may be answered

byId("try-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const mine = ++trial;
  byId("try-form").setAttribute("aria-busy", "true");
  let answer = null;
  let failure = "";
  try {
    const response = await ask("explain", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ text: byId("try-text").value }),
    });
    if (response.status === 401) askForToken();
    if (response.ok) answer = await response.json();
    else failure = await reason(response);
  } catch {
    failure = "The service cannot be reached.";
  }
  if (mine !== trial) return;
  byId("try-form").removeAttribute("aria-busy");
  write(byId("try-error"), failure);
  if (answer) showAnswer(answer);
});

byId("try-text").addEventListener("keydown", (event) => {
  // Enter that ends the composition of a character is not meant for the form.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("try-form").requestSubmit();
});

byId("more").addEventListener("click", () => expand(byId("more").getAttribute("aria-expanded") === "false"));

function expand(all) {
  const n = byId("contributions").children.length;
  byId("more").setAttribute("aria-expanded", String(all));
  byId("more").hidden = n <= FIRST_CONTRIBUTIONS;
  write(byId("more"), all ? "Show fewer" : `Show all ${n}`);
  [...byId("contributions").children].forEach((item, i) => {
    item.hidden = !all && i >= FIRST_CONTRIBUTIONS;
  });
}

function showAnswer({ label, probability, margin, contributions, n_others, others }) {
  const verdict = byId("verdict");
  const strong = document.createElement("bdi");
  strong.textContent = name(label);
  const figures = [];
  if (known(probability)) figures.push(`probability ${probability.toFixed(4)}`);
  if (known(margin)) figures.push(`margin ${signed(margin)}`);
  const rest = document.createElement("span");
  rest.className = "muted";
  rest.textContent = known(label) ? figures.join(", ") : "No label: nothing, or not enough, is learned yet.";
  verdict.replaceChildren(...(known(label) ? [strong, " "] : []), rest);

  const largest = Math.max(...contributions.map(([, size]) => Math.abs(size)));
  update(byId("contributions"), contributions, ([ngram]) => ngram, "contribution-template", (item, [ngram, size]) => {
    setClass(item, size < 0 ? "against" : "for");
    write(item.children[0], word(ngram));
    item.style.setProperty("--share", Math.abs(size) / largest || 0);
    write(item.children[2], signed(size));
  });
  expand(false);
  byId("why").hidden = !contributions.length;
  write(byId("others"), n_others ? `${plural(n_others, "smaller contribution")}, together ${signed(others)}.` : "");
  if (known(label) && !contributions.length) rest.textContent += ". Nothing in this text is known to the model.";
}

poll();
