// Labels as buttons, the question what a mistyped label means, and the label of a text that is tried.
"use strict";

const MOST_TAUGHT = 9; // labels that have a button

// Labels --------------------------------------------------------------------------------------------------------------

const learnedOf = new Map(); // how many messages of a label were learned here, by its JSON

const chancesOf = (probabilities) => new Map(probabilities.map(([label, chance]) => [JSON.stringify(label), chance]));
const countLearned = (label, n) => learnedOf.set(JSON.stringify(label), n);

/** Offer the labels that are known where another one is typed. */
function offerLabels() {
  const some = [...learnedOf.keys()].map((json) => JSON.parse(json));
  update(byId("labels"), some, (label) => label, "option-template", (option, label) => {
    if (option.value !== name(label)) option.value = name(label);
  });
}

/** Show a label, its key if it has one, how probable it is, and how many messages of it were learned. */
function showLabelButton(button, label, chances, pressed, key = "") {
  const json = JSON.stringify(label);
  const [chance, n] = [chances.get(json), learnedOf.get(json)];
  write(button.children[0], key);
  button.children[0].hidden = !key;
  write(button.children[1], name(label));
  const figures = [known(chance) ? chance.toFixed(2) : "", known(n) ? count(n) : ""];
  write(button.children[2], figures.filter(Boolean).join(" · "));
  const parts = [known(chance) ? `probability ${figures[0]}` : "", known(n) ? `${plural(n, "message")} learned here` : ""];
  button.title = parts.filter(Boolean).join(", ");
  if (kind === LABELS) button.setAttribute("aria-pressed", pressed?.has(json) ?? false);
}

// What a mistyped label means -----------------------------------------------------------------------------------------

/** A label with the characters that nobody sees. */
const visible = (label) =>
  name(label).replace(/[\p{Cc}\p{Cf}]|(?! )\p{Z}/gu, (c) => `‹U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);

/** A label, or the one of several that was asked about, as the known one that looks like it. */
function replaceLabel(label, { label: typed, alike }) {
  if (!Array.isArray(label)) return alike;
  const meant = label.map((each) => (sameLabel(each, typed) ? alike : each));
  return [...new Set(meant.map((each) => JSON.stringify(each)))].map((json) => JSON.parse(json));
}

/** Ask whether a known label is meant by a new one: `take` it, `keep` the new one, or `cancel`. */
function askMeant(id, { label, alike }, answers) {
  const box = byId(id);
  box.replaceChildren(byId("question-template").content.cloneNode(true));
  const [meant, fresh, again] = box.querySelectorAll("bdi");
  for (const element of [meant, again]) write(element, visible(alike));
  write(fresh, visible(label));
  [answers.take, answers.keep, answers.cancel].forEach((answer, i) => {
    box.querySelectorAll("button")[i].addEventListener("click", () => {
      closeQuestion(id);
      answer();
    });
  });
  box.onkeydown = (event) => {
    if (event.key === "Escape") box.querySelector(".plain").click();
  };
  box.querySelector("button").focus();
}

const closeQuestion = (id) => byId(id).replaceChildren();

// The label of a text that is tried -----------------------------------------------------------------------------------

let newestAnswer = null; // the answer to the text that is tried
let toTeach = new Set(); // where a message may have several: those chosen so far, as JSON
let numberToTakeBack = null; // by which the newest label can be taken back
let untilLearned = null;

const chosenToTeach = () => [...toTeach].map((json) => JSON.parse(json));

/** Offer to teach the text that was tried, whose answer this is. */
function showTeach(answer) {
  newestAnswer = answer;
  byId("teach").hidden = ofFile;
  if (ofFile) return;
  const best = answer.probabilities.slice(0, MOST_TAUGHT).map(([label]) => label);
  const some = kind === ORDERED ? best.sort((a, b) => a - b) : best;
  for (const label of areFixed ? labels : chosenToTeach()) {
    if (!some.some((other) => sameLabel(other, label))) some.push(label);
  }
  const chances = chancesOf(answer.probabilities);
  update(byId("teach-labels"), some, (label) => label, "label-template", (button, label) => {
    showLabelButton(button, label, chances, toTeach);
    button.onclick = () => chooseTaught(label);
  });
  byId("teach-form").hidden = areFixed;
  write(byId("teach-button"), kind === LABELS ? "Choose" : "Teach");
  byId("teach-chosen").hidden = kind !== LABELS;
  write(byId("teach-chosen"), toTeach.size ? `Teach ${plural(toTeach.size, "label")}` : "Teach that none holds");
}

/** The text is another one, or will be. */
function hideTeach() {
  byId("teach").hidden = true;
  toTeach = new Set();
  closeQuestion("teach-question");
  write(byId("teach-error"), "");
}

function chooseTaught(label) {
  if (kind !== LABELS) return teach(label);
  const json = JSON.stringify(label);
  if (!toTeach.delete(json)) toTeach.add(json);
  showTeach(newestAnswer);
}

async function teach(label, newLabel = "ask") {
  const text = tried;
  closeQuestion("teach-question");
  const { answer, failure } = await send("teach", { message: message(text), label, new_label: newLabel });
  if (text !== tried) return;
  write(byId("teach-error"), failure);
  if (!answer) return;
  if (known(answer.alike)) {
    askMeant("teach-question", answer, {
      take: () => teach(replaceLabel(label, answer)),
      keep: () => teach(label, "confirmed"),
      cancel: () => byId("teach-label").focus(),
    });
    return;
  }
  hideTeach();
  byId("teach-label").value = "";
  showTaught(label, answer);
  byId("try-text").focus();
  wake();
}

/** Say what was taught, and offer to take it back as long as that can be. */
function showTaught(label, { number, seconds }) {
  const said = listed(label).map(name).join(", ") || "none";
  clearTimeout(untilLearned);
  numberToTakeBack = number;
  byId("teach-back").hidden = !seconds;
  write(byId("taught"), seconds ? `Taught: ${said}. It is learned in ${short.format(seconds)} s.` : `Learned: ${said}.`);
  untilLearned = setTimeout(() => endTaught(`Learned: ${said}.`), 1_000 * seconds);
}

function endTaught(text) {
  const hadFocus = document.activeElement === byId("teach-back");
  byId("teach-back").hidden = true;
  write(byId("taught"), text);
  if (hadFocus) byId("try-text").focus();
}

byId("teach-back").addEventListener("click", async () => {
  clearTimeout(untilLearned);
  const { failure } = await send("teach", { number: numberToTakeBack, take_back: true });
  endTaught(failure || "Taken back: nothing of it is learned.");
  if (!failure && newestAnswer && byId("try-text").value === tried) showTeach(newestAnswer);
});

byId("teach-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("teach-label").value.trim();
  if (!text) return;
  if (kind === LABELS) byId("teach-label").value = "";
  chooseTaught(text);
});

byId("teach-chosen").addEventListener("click", () => teach(chosenToTeach()));
byId("try-text").addEventListener("input", hideTeach);
