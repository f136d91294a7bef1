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
const word = (ngram) =>
  (/^\S.* $/s.test(ngram) ? "…" : "") + ngram.replace(/^ | $/g, "") + (/^ .*\S$/s.test(ngram) ? "…" : "");

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

/** Make the children of `parent` those of `items`, each element kept for as long as its key is there. */
function update(parent, items, keyOf, templateId, fill) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const times = new Map();
  const after = items.map((item) => {
    const base = JSON.stringify(keyOf(item)); // as a text, since no two lists are the same
    times.set(base, (times.get(base) ?? 0) + 1);
    const key = `${base} ${times.get(base)}`;
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

/** Send JSON: the status of the answer, 0 where there is none; what it says; what went wrong, if anything. */
async function send(path, body) {
  try {
    const headers = { "Content-Type": "application/json" };
    const response = await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
    if (response.status === 401) askForToken();
    if (!response.ok) return { status: response.status, failure: await reason(response) };
    return { status: response.status, answer: await response.json(), failure: "" };
  } catch {
    return { status: 0, failure: "The service cannot be reached." };
  }
}

function askForToken() {
  const form = byId("token-form");
  if (sessionStorage.getItem(TOKEN)) write(byId("token-error"), "That token was not accepted.");
  sessionStorage.removeItem(TOKEN);
  setState("locked", "Token needed");
  byId("main").hidden = !seen; // until there are figures
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
  byId("main").hidden = false;
  setState("live", "Live");
  setNotice("notice", "");
  show(data);
  byId("labelling").hidden = !data.asks;
  fields = data.fields ?? [];
  byId("try-text").placeholder = fields.map((field) => `${field}: `).join("\n");
  if (data.asks) await refreshAsked();
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

const CLASSES = "classes";
const ORDERED = "ordered";
const LABELS = "several labels";

// By name in the answer: the title, and what is good where that is not plain.
const FIGURES = {
  accuracy: ["Accuracy", ""],
  roc_auc: ["ROC AUC", ""],
  log_loss: ["Log loss", "lower is better"],
  calibration_error: ["Calibration error", "lower is better"],
  macro_f1: ["Macro F1", "mean over the classes"],
  micro_f1: ["Micro F1", ""],
  mean_absolute_error: ["Mean absolute error", "lower is better"],
  quadratic_kappa: ["Quadratic kappa", "1 is best"],
  exact_matches: ["Exact matches", "all labels right"],
  hamming_loss: ["Hamming loss", "lower is better"],
};
// Those that are shown of each kind of model, if they are there.
const SHOWN = {
  [CLASSES]: ["accuracy", "macro_f1", "roc_auc", "log_loss", "calibration_error"],
  [ORDERED]: ["accuracy", "mean_absolute_error", "quadratic_kappa", "calibration_error"],
  [LABELS]: ["micro_f1", "macro_f1", "exact_matches", "hamming_loss"],
};
let kind = CLASSES;
let curve = { n: 0, rows: [], drifts: [], window: 0 };

function showFigures(data) {
  const figures = SHOWN[kind].filter((figure) => figure in data);
  document.querySelectorAll(".figure").forEach((tile, i) => {
    const figure = figures[i];
    tile.hidden = !figure;
    if (!figure) return;
    const [title, about] = FIGURES[figure];
    const recent = data.window[figure];
    write(tile.children[0], title);
    tile.children[1].id = figure;
    tile.children[2].id = `window_${figure}`;
    write(tile.children[1], score(data[figure]));
    write(tile.children[2], known(recent) ? `newest ${count(data.window.n)}: ${score(recent)}` : about);
  });
}

/** The figures over time, each with that of the newest messages where there is one. */
function showCurve({ n, curve: columns, drifts, window: newest }) {
  const rows = columns.n.map((_, i) => Object.fromEntries(Object.keys(columns).map((key) => [key, columns[key][i]])));
  curve = { n, rows, drifts, window: newest.size };
  const figures = Object.keys(columns).filter((key) => key in FIGURES);
  charts.forEach((chart, i) => chart.setFigure(figures[i]));
  drawCharts();
}

function show(data) {
  const { model } = data;
  kind = data.kind;
  document.body.dataset.kind = kind;
  byId("nothing").hidden = data.n > 0;

  write(byId("model-line"), `${model.kind}, ${plural(data.n, "message")} learned`);
  write(byId("uptime"), `up ${duration(data.uptime_seconds)}`);
  showFigures(data);
  write(byId("n"), count(data.n));
  write(byId("n_unanswered"), data.n_unanswered ? `${count(data.n_unanswered)} had no answer yet` : "");
  write(byId("n_predictions"), plural(data.n_predictions, "prediction"));
  const rate = data.docs_per_second;
  const isSlow = known(rate) && rate > 0 && rate < 1;
  const speed = isSlow ? 60 * rate : rate;
  write(byId("docs_per_second"), known(speed) && speed < 100 ? short.format(speed) : count(speed));
  write(byId("speed-unit"), isSlow ? "messages/min" : "messages/s");
  write(byId("n_failed"), data.n_failed ? `${plural(data.n_failed, "request")} failed` : "no request failed");

  const drifts = data.drifts;
  const last = drifts.length ? `, the last one at message ${count(drifts.at(-1))}` : "";
  write(byId("drifts"), drifts.length ? `${plural(drifts.length, "drift alarm")}${last}.` : "No drift alarm.");
  setClass(byId("drifts"), drifts.length ? "alarms" : "");
  showCurve(data);
  showClasses(data);
  const said = kind === LABELS ? "a label held" : `${known(model.positive) ? name(model.positive) : "the predicted label"} was true`;
  write(byId("calibrated"), `How often ${said}, against the probability predicted for it.`);
  showReliability(data.reliability);
  showModel(model, data.checkpoint);
  update(byId("newest"), data.newest, (message) => [message.number, message.text], "message-template", showMessage);
  byId("newest-table").hidden = !data.newest.length;
  for (const column of ["probability", "second"]) {
    byId("newest-table").classList.toggle(`no-${column}`, !data.newest.some((message) => known(message[column])));
  }
  byId("no-newest").hidden = data.newest.length > 0;
}

function showModel(model, checkpoint) {
  const most = known(model.max_features) ? `, at most ${count(model.max_features)}` : "";
  write(byId("kind"), model.kind);
  write(byId("classifier"), model.classifier);
  write(byId("n_iterations"), count(model.n_iterations));
  write(byId("n_features"), count(model.n_features) + most);
  const how = known(model.positive) ? ", the positive one " : "";
  write(byId("n_classes"), count(model.n_classes) + ({ [ORDERED]: ", in order", [LABELS]: ", any number at a time" }[kind] ?? how));
  write(byId("positive"), how && name(model.positive));
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

function showMessage(row, message) {
  const { text, probability, second } = message;
  const cell = (selector) => row.querySelector(selector);
  write(cell(".number"), count(message.number));
  write(cell(".text bdi"), text.trim() ? text : "(empty)");
  if (kind === LABELS) return showLabels(cell, message);
  const { label, predicted } = message;
  const byLimit = message.withheld ? "by limit" : "";
  writeLabels(cell(".predicted"), [[known(predicted) ? name(predicted) : "–", byLimit]]);
  write(cell(".probability"), known(probability) ? probability.toFixed(3) : "–");
  write(cell(".second bdi"), known(second) ? name(second) : "–");
  write(cell(".second span"), known(second) ? message.second_probability.toFixed(3) : "");
  if (!known(label)) setOutcome(cell, "", "no label", []);
  else if (!known(predicted)) setOutcome(cell, "", "label", [label]);
  else if (message.right) setOutcome(cell, "right", "✓ right", []);
  else setOutcome(cell, "wrong", "✗ is", [label]);
}

/** A message that has any number of labels. */
function showLabels(cell, { label, predicted, probability, right, withheld = [] }) {
  const chances = predicted.map((each, i) => [name(each), known(probability[i]) ? probability[i].toFixed(2) : ""]);
  chances.push(...withheld.map((each) => [name(each), "withheld by limit"]));
  writeLabels(cell(".predicted"), chances.length ? chances : ["none"]);
  if (!known(label)) setOutcome(cell, "", "no labels", []);
  else if (right) setOutcome(cell, "right", "✓ right", []);
  else setOutcome(cell, "wrong", "✗ is", label.length ? label : ["none"]);
}

function setOutcome(cell, state, verdict, labels) {
  setClass(cell(".outcome"), `outcome ${state}`);
  write(cell(".outcome span"), verdict);
  writeLabels(cell(".labels"), labels.map(name));
}

/** Labels side by side, each perhaps with a figure. */
function writeLabels(parent, labels) {
  const key = JSON.stringify(labels);
  if (parent.dataset.labels === key) return;
  parent.dataset.labels = key;
  const parts = labels.map((label) => {
    const [text, figure] = [label].flat();
    const part = document.createElement("bdi");
    part.textContent = part.title = text;
    if (!figure) return [part];
    const small = document.createElement("small");
    small.textContent = figure;
    return [part, " ", small];
  });
  parent.replaceChildren(...parts.flatMap((part, i) => (i ? [", ", ...part] : part)));
}

// The other scripts are there by then.
document.addEventListener("DOMContentLoaded", poll);
