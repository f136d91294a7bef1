// Shows what GET /monitor answers, once a second, and updates the page in place.
// Messages, labels and words are strangers': they go in by textContent alone.
"use strict";

const POLL = 1_000;
const POLL_HIDDEN = 15_000;
const TIMEOUT = 10_000;
const TOKEN = "stream-pegasos token";

const byId = (id) => document.getElementById(id);
const known = (value) => value !== null && value !== undefined;
const listed = (value) => (known(value) ? [value].flat() : []);

// Numbers and words ---------------------------------------------------------------------------------------------------

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const score = (value, decimals = 4) => (known(value) ? value.toFixed(decimals) : "–");
const count = (value) => (known(value) ? whole.format(value) : "–");
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
const name = (label) => (!known(label) ? "?" : label === "" ? "(empty)" : String(label));
const word = (ngram) =>
  (/^\S.* $/s.test(ngram) ? "…" : "") + ngram.replace(/^ | $/g, "") + (/^ .*\S$/s.test(ngram) ? "…" : "");

/** Show when something came, by the clock of the reader; ISO 8601 in full where a pointer rests. */
function writeTime(element, iso) {
  element.hidden = !iso;
  if (!iso) return;
  if (element.dateTime !== iso) element.dateTime = element.title = iso;
  const time = new Date(iso);
  const isToday = time.toDateString() === new Date().toDateString();
  const day = isToday ? "" : `${time.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, `;
  write(element, day + time.toLocaleTimeString("en-GB"));
}

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

/** Show how long the bar of an element is. */
function setShare(element, share) {
  element.style.setProperty("--share", share || 0);
}

/** Show one of two: what there is, or that there is none yet. */
function showEither(id, idOfNone, isThere) {
  byId(id).hidden = !isThere;
  byId(idOfNone).hidden = isThere;
}

function make(tag, text, className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

/** Make the children of `parent` those of `items`, each element kept for as long as its key is there. */
function update(parent, items, keyOf, templateId, fill) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const times = new Map();
  const after = items.map((item, i) => {
    const base = JSON.stringify(keyOf(item)); // as a text, since no two lists are the same
    times.set(base, (times.get(base) ?? 0) + 1);
    const key = `${base} ${times.get(base)}`;
    const element = before.get(key) ?? byId(templateId).content.firstElementChild.cloneNode(true);
    before.delete(key);
    element.dataset.key = key;
    fill(element, item, i);
    return element;
  });
  for (const gone of before.values()) gone.remove();
  after.forEach((element, i) => {
    if (parent.children[i] !== element) parent.insertBefore(element, parent.children[i] ?? null);
  });
}

/** Labels side by side, each perhaps with a figure. */
function writeLabels(parent, labels) {
  const key = JSON.stringify(labels);
  if (parent.dataset.labels === key) return;
  parent.dataset.labels = key;
  const parts = labels.map((label) => {
    const [text, figure] = [label].flat();
    const part = make("bdi", text);
    part.title = text;
    return figure ? [part, " ", make("small", figure)] : [part];
  });
  parent.replaceChildren(...parts.flatMap((part, i) => (i ? [", ", ...part] : part)));
}

// Asking the service --------------------------------------------------------------------------------------------------

let wake = () => {};
let needsToken = "needsToken" in document.body.dataset;

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

/** What is answered, or null: that the service is gone is told by the figures, which are asked for more often. */
async function askQuietly(path) {
  try {
    const response = await ask(path);
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
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
  needsToken = true;
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
    const isLocked = needsToken && !sessionStorage.getItem(TOKEN);
    if (isLocked) askForToken();
    else await refresh().catch((error) => console.error(error));
    await new Promise((resolve) => {
      wake = resolve;
      if (!isLocked) setTimeout(resolve, document.hidden ? POLL_HIDDEN : POLL);
    });
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) wake();
});

// The other scripts are there by then.
document.addEventListener("DOMContentLoaded", poll);
