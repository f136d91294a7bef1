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

// The other scripts are there by then.
document.addEventListener("DOMContentLoaded", poll);
