// Labelling: the messages that wait for a label, the labels that are given, and those that are taken back.
"use strict";

const MOST_ASKED = 8;
const GONE = 404; // others have labelled the message, or newer ones have pushed it out
const MOST_BUTTONS = 10;
const FEW_BUTTONS = 3; // of a message that is not chosen, where there are more labels

let asked = []; // the messages, as they stand on the page
let labels = []; // that can be given
let areFixed = false; // whether no other label can be
let ofFile = false; // whether the messages stand in a file, to which no others belong
let selected = null; // the number of a message
let first = null; // which messages come first, where it was chosen here
let turn = 0; // an answer from before the newest turn is out of date
let hasFocused = false;
const mine = []; // the numbers of the messages that were labelled here
const chosen = new Map(); // of messages that may have several labels: those chosen so far, as JSON

const placeOf = (number) => asked.findIndex((message) => message.number === number);
const place = () => placeOf(selected);
const chosenOf = (number) => [...(chosen.get(number) ?? [])].map((json) => JSON.parse(json));
const focusList = () => byId("asked").focus({ preventScroll: true });

/** Choose the message at a place, or the last one where there are fewer. */
function selectAt(at) {
  selected = asked[Math.min(Math.max(at, 0), asked.length - 1)]?.number ?? null;
}

// Asking and telling --------------------------------------------------------------------------------------------------

async function refreshAsked() {
  const at = turn;
  const reading = selected;
  const query = new URLSearchParams({ limit: MOST_ASKED });
  if (first) query.set("first", first);
  if (reading !== null) query.set("also", reading);
  const data = await askQuietly(`asked?${query}`);
  if (data && at === turn) showAsked(data, reading);
}

/** Tell the service; the status of its answer, 0 where there is none, and what it says. */
async function tell(body) {
  turn += 1;
  closeQuestion("label-question");
  const { status, answer, failure } = await send("teach", body);
  turn += 1;
  write(byId("labelling-error"), failure);
  return { status, answer };
}

/** Give a message its label, or pass it over with null. A new label that may be a slip is asked about. */
async function give(number, label, newLabel = "ask") {
  const at = placeOf(number);
  if (at < 0) return;
  const [message] = asked.splice(at, 1);
  if (selected === number) selectAt(at);
  showList();
  focusList();
  const { status, answer } = await tell({ number, label, new_label: newLabel });
  const isAsked = known(answer?.alike);
  if (status === 200 && label !== null && !isAsked) mine.push(number);
  if ((status === 200 && !isAsked) || status === GONE) {
    chosen.delete(number);
  } else {
    asked.splice(at, 0, message);
    selected = number;
  }
  await refreshAsked();
  if (!isAsked) return;
  askMeant("label-question", answer, {
    take: () => {
      const meant = replaceLabel(label, answer);
      if (kind === LABELS) chosen.set(number, new Set(meant.map((each) => JSON.stringify(each))));
      give(number, meant);
    },
    keep: () => give(number, label, "confirmed"),
    cancel: focusList,
  });
}

async function takeBack(number) {
  const { status } = await tell({ number, take_back: true });
  if ((status === 200 || status === GONE) && mine.includes(number)) mine.splice(mine.indexOf(number), 1);
  await refreshAsked();
  if (status === 200 && placeOf(number) >= 0) select(number);
}

// Showing -------------------------------------------------------------------------------------------------------------

/** Show what is asked; `reading` is the message that was chosen when the service was asked. */
function showAsked(data, reading) {
  labels = data.labels;
  areFixed = data.are_fixed;
  ofFile = data.of_file;
  labels.forEach((label, i) => countLearned(label, data.counts[i]));
  offerLabels();
  // The message that someone is reading stays where it is, however the others are ordered by now, while it waits.
  // One with a label that is typed or chosen stays until it is given, lest that goes to another message.
  const at = place();
  const hasLabel = byId("new-label").value.trim() || chosen.get(selected)?.size;
  const kept = at < 0 || (selected === reading && !hasLabel) ? null : asked[at];
  asked = data.messages.filter(({ number }) => number !== selected);
  const fresh = data.messages.find(({ number }) => number === selected) ?? kept;
  if (fresh) asked.splice(Math.min(at, asked.length), 0, fresh);
  asked.length = Math.min(asked.length, MOST_ASKED);
  if (place() < 0) selectAt(at);

  const held = `each for ${short.format(data.seconds)} s; then they are learned. `;
  write(
    byId("labelling-line"),
    `${plural(data.n_waiting, "message")} ${data.n_waiting === 1 ? "waits" : "wait"} for a label, ` +
      `${plural(data.n_given, "label")} given here; ${plural(curve.n, "message")} learned in all.`,
  );
  write(
    byId("labelling-about"),
    (data.seconds ? `The newest 5 labels can be taken back, ${held}` : "Labels are learned at once. ") +
      "Beside a label stand its probability and how many messages of it were learned here. " +
      "Accuracy over messages that the model is unsure of is lower than over all messages.",
  );
  if (data.of_file) {
    byId("nothing").hidden = true;
    if (byId("main").firstElementChild !== byId("labelling")) byId("main").prepend(byId("labelling"));
  }
  for (const button of document.querySelectorAll("#labelling .orders button")) {
    button.setAttribute("aria-pressed", button.dataset.first === data.first);
  }
  byId("label-form").hidden = areFixed || !asked.length;
  write(byId("new-label-name"), labels.length ? "Another label" : "Type the first label");
  byId("keys").hidden = !asked.length;
  byId("nothing-asked").hidden = asked.length > 0;
  const empty = "No message waits for a label. Messages that are sent to POST /predict appear here.";
  write(byId("nothing-asked"), data.of_file ? "All messages that were read have a label." : empty);
  write(byId("give-label"), kind === LABELS ? "Choose" : "Give");
  const several = kind === LABELS ? "Enter gives the chosen ones, or none. " : "";
  write(
    byId("keys"),
    `Keys: digits for labels, ${several}${areFixed ? "" : "N for another, "}` +
      "J and K or the arrows to move, S to skip, U to take back.",
  );
  showList();
  showGiven(data.given);
  if (data.of_file && !hasFocused && asked.length) focusList();
  hasFocused = true;
}

function showList() {
  update(byId("asked"), asked, ({ number }) => number, "asked-template", showMessageAsked);
}

/** The labels that have a button, each with its key. */
function offered({ number, probabilities }) {
  let some = labels;
  if (!areFixed && some.length > MOST_BUTTONS) some = probabilities.slice(0, 9).map(([label]) => label);
  for (const each of chosenOf(number)) {
    if (!some.some((label) => sameLabel(label, each))) some = [...some, each];
  }
  const areDigits = some.every((label) => Number.isInteger(label) && label >= 0 && label <= 9);
  return some.map((label, i) => [label, areDigits ? String(label) : i < 10 ? String((i + 1) % 10) : ""]);
}

function showMessageAsked(item, message) {
  const { number, text, label, probability, probabilities } = message;
  const isSelected = number === selected;
  if (isSelected) item.setAttribute("aria-current", "true");
  else item.removeAttribute("aria-current");
  write(item.querySelector("bdi"), text);
  const chance = listed(probability);
  const parts = listed(label).map((each, i) => `${name(each)} ${known(chance[i]) ? chance[i].toFixed(2) : ""}`);
  const none = kind === LABELS && probabilities.length ? "no label holds" : "nothing known yet";
  write(item.querySelector(".said"), parts.length ? `The model says ${parts.join(", ")}` : `The model says: ${none}`);
  item.querySelector(".said").hidden = probabilities.length > 0 && kind !== LABELS; // the buttons say it
  writeTime(item.querySelector("time"), message.time);
  const chances = chancesOf(probabilities);
  const all = offered(message);
  const n = chosen.get(number)?.size ?? 0;
  const isShort = !isSelected && labels.length > MOST_BUTTONS && !n;
  const best = [...chances.keys()].slice(0, FEW_BUTTONS);
  const buttons = isShort ? all.filter(([each]) => best.includes(JSON.stringify(each))) : all;
  update(item.querySelector(".labels"), buttons, ([each]) => each, "label-template", (button, [each, key]) => {
    showLabelButton(button, each, chances, chosen.get(number), isSelected ? key : "");
    button.onclick = () => chooseLabel(number, each);
  });
  const done = item.querySelector(".give-chosen");
  done.hidden = kind !== LABELS;
  write(done, n ? `Give ${plural(n, "label")}` : "None holds");
  done.onclick = () => give(number, chosenOf(number));
  item.querySelector(".skip-message").onclick = () => give(number, null);
  item.onclick = (event) => {
    if (!event.target.closest("button")) select(number);
  };
}

function showGiven(given) {
  byId("given-part").hidden = !given.length;
  update(byId("given"), given, ({ number }) => number, "given-template", (item, { number, text, label, seconds }) => {
    write(item.children[0], text);
    const several = [label].flat().map(name);
    writeLabels(item.children[1], several.length ? several : ["none"]);
    write(item.children[2], `learned in ${Math.ceil(seconds)} s`);
    item.children[3].onclick = () => takeBack(number);
  });
}

// Choosing ------------------------------------------------------------------------------------------------------------

function select(number) {
  selected = number;
  showList();
  byId("asked").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

function chooseLabel(number, label) {
  if (kind !== LABELS) return give(number, label);
  const json = JSON.stringify(label);
  const now = chosen.get(number) ?? new Set();
  if (!now.delete(json)) now.add(json);
  chosen.set(number, now);
  select(number);
}

function move(by) {
  const to = asked[Math.max(0, Math.min(asked.length - 1, place() + by))];
  if (to) select(to.number);
}

/** What a key does; whether it does anything. */
function press(key) {
  const message = asked[place()];
  const hit = message && offered(message).find(([, its]) => its === key);
  if (hit) chooseLabel(selected, hit[0]);
  else if (key === "j" || key === "ArrowDown") move(1);
  else if (key === "k" || key === "ArrowUp") move(-1);
  else if (key === "u" && mine.length) takeBack(mine.at(-1));
  else if (key === "s" && message) give(selected, null);
  else if (key === "n" && message && !areFixed) byId("new-label").focus();
  else if (key === "Enter" && message && kind === LABELS) give(selected, chosenOf(selected));
  else return false;
  return true;
}

byId("labelling").addEventListener("keydown", (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (target.closest(".question")) return;
  if (target.matches("input")) {
    if (key === "Escape") {
      byId("new-label").value = "";
      byId("asked").focus();
    }
    return;
  }
  if (key === "Enter" && target.matches("button")) return; // which it presses
  if (press(key.length === 1 ? key.toLowerCase() : key)) event.preventDefault();
});

byId("label-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("new-label").value.trim();
  if (!text || place() < 0) return;
  byId("new-label").value = "";
  chooseLabel(selected, text);
  focusList();
});

for (const button of document.querySelectorAll("#labelling .orders button")) {
  button.addEventListener("click", () => {
    first = button.dataset.first;
    selected = null;
    turn += 1;
    refreshAsked();
  });
}
