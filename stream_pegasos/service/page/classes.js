// The classes: how good each of them is, which are confused, and what words weigh most for one that is picked.
"use strict";

const FRESH_WORDS = 5_000; // ms between two questions for the same words
const MOST_CHOICES = 50;
const LEAST_PAIRS = 5;
// Whether a message may have several labels.
const PAIRS = {
  false: "Messages of one class that were taken for another, and their share of its messages.",
  true: "Labels that were missed and the ones put in their place, and the share of those missed.",
};
const tenth = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

const percent = (share) => (share < 0.001 ? "< 0.1 %" : `${tenth.format(100 * share)} %`);

// The classes and their confusion -------------------------------------------------------------------------------------

function showClasses({ n, model, classes, others, confused }) {
  for (const { label, n: learned } of classes) countLearned(label, learned);
  offerLabels();
  const [one, many] = kind === LABELS ? ["label", "labels"] : ["class", "classes"];
  write(byId("classes-title"), kind === LABELS ? "Labels" : "Classes");
  write(byId("counted"), kind === LABELS ? "labels of messages" : "messages");
  write(byId("pairs-line"), PAIRS[kind === LABELS]);
  const parts = [`${count(model.n_classes)} ${model.n_classes === 1 ? one : many}.`];
  if (others) {
    parts.push(`The ${classes.length} with most messages; the other ${count(others.n_classes)} share a row.`);
  }
  if (kind !== ORDERED && n) parts.push("Pick one to see its weightiest words.");
  write(byId("classes-line"), parts.join(" "));
  const rows = others ? [...classes, others] : classes;
  const most = Math.max(...classes.map(({ share }) => share));
  const keyOf = (row) => row.label ?? null;
  update(byId("classes"), rows, keyOf, "class-template", (row, item) => showClass(row, item, most));
  showEither("classes-table", "no-classes", n > 0);

  // About as tall as the classes beside them.
  const pairs = confused.slice(0, Math.max(LEAST_PAIRS, Math.round(0.6 * rows.length)));
  const largest = Math.max(...pairs.map((pair) => pair.n));
  update(byId("pairs"), pairs, ({ truth, predicted }) => [truth, predicted], "pair-template", (item, pair) => {
    const [truth, predicted] = item.querySelectorAll("bdi");
    write(truth, name(pair.truth));
    write(predicted, name(pair.predicted));
    item.title = `${name(pair.truth)} as ${name(pair.predicted)}`;
    write(item.lastElementChild, known(pair.share) ? `${count(pair.n)} · ${percent(pair.share)}` : count(pair.n));
    setShare(item, pair.n / largest);
  });
  byId("no-pairs").hidden = pairs.length > 0;

  byId("pick").hidden = kind === ORDERED || !model.has_weights;
  write(byId("no-words"), model.has_weights ? "None yet." : "This model has no weights.");
  if (!model.has_weights || !classes.length) return;
  if (!picked) pick(model.positive ?? classes[0].label, false);
  else if (Date.now() > picked.due) askForWords();
}

function showClass(row, item, most) {
  const [button, rest] = row.cells[0].children;
  const plain = item.label === undefined || kind === ORDERED;
  button.hidden = plain;
  rest.hidden = !plain;
  const text = item.label === undefined ? `${count(item.n_classes)} others` : name(item.label);
  write(plain ? rest : button.firstElementChild, text);
  (plain ? rest : button).title = text;
  setClass(rest, item.label === undefined ? "muted" : "");
  if (!plain) {
    button.onclick = () => pick(item.label, true);
    button.setAttribute("aria-pressed", picked !== null && sameLabel(picked.label, item.label));
  }
  const [, messages, ...measures] = row.cells;
  write(messages, count(item.n));
  setShare(messages, item.label === undefined ? 0 : item.share / most);
  messages.title = known(item.share) ? `${percent(item.share)} of all messages` : "";
  [item.precision, item.recall, item.f1].forEach((value, i) => {
    write(measures[i], score(value, 3));
    setShare(measures[i], value);
  });
}

// The label whose words are shown -------------------------------------------------------------------------------------

const sameLabel = (a, b) => JSON.stringify(a) === JSON.stringify(b);

let picked = null; // the label, and when its words are due again

function pick(label, byReader) {
  picked = { label, due: 0, byReader };
  picker.value = name(label);
  for (const button of document.querySelectorAll("#classes button")) {
    button.setAttribute("aria-pressed", button.textContent === name(label));
  }
  askForWords();
  if (byReader) byId("words-title").scrollIntoView({ block: "nearest" });
}

async function askForWords() {
  const mine = picked;
  mine.due = Date.now() + FRESH_WORDS;
  const view = await askQuietly(`monitor?label=${encodeURIComponent(JSON.stringify(mine.label))}`);
  if (view?.words && mine === picked) showWords(view.words);
}

/** The words for and against the label that is picked; of ordered ones for higher and lower labels. */
function showWords({ negative, positive }) {
  write(byId("negative-side"), kind === ORDERED ? "for lower labels" : "against it");
  write(byId("positive-side"), kind === ORDERED ? "for higher labels" : "for it");
  showBars("negative-words", negative);
  showBars("positive-words", positive);
  byId("no-words").hidden = negative.length + positive.length > 0;
}

function showBars(id, words) {
  const largest = Math.max(...words.map(([, weight]) => Math.abs(weight)));
  update(byId(id), words, ([ngram]) => ngram, "word-template", (item, [ngram, weight]) => {
    write(item.children[0], word(ngram));
    write(item.children[1], signed(weight));
    setShare(item, Math.abs(weight) / largest);
  });
}

// Picking it ----------------------------------------------------------------------------------------------------------

const picker = byId("picker");
const choices = byId("picker-list");
let search = 0; // only the newest one may be answered

async function offer(text) {
  const mine = ++search;
  const view = await askQuietly(`monitor?limit=${MOST_CHOICES}&search=${encodeURIComponent(text)}`);
  if (!view || mine !== search) return;
  const { found } = view;
  choices.scrollTop = 0;
  update(choices, found.classes, ({ label }) => label, "choice-template", (item, { label, n }, i) => {
    item.id = `choice-${i}`;
    write(item.children[0], name(label));
    write(item.children[1], count(n));
    item.choose = () => choose(label);
    item.onpointerdown = (event) => {
      event.preventDefault(); // so that the focus stays
      item.choose();
    };
  });
  const [shown, all] = [found.classes.length, found.n];
  const rest = shown < all ? `${shown} of ${count(all)}; type to find others.` : "";
  write(byId("picker-line"), all ? rest : "No label has that in it.");
  byId("picker-choices").hidden = false;
  byId("picker-choices").scrollIntoView({ block: "nearest" });
  picker.setAttribute("aria-expanded", "true");
  mark(text && all ? choices.firstElementChild : null);
}

function closeChoices() {
  search++;
  byId("picker-choices").hidden = true;
  picker.setAttribute("aria-expanded", "false");
  picker.removeAttribute("aria-activedescendant");
  picker.value = picked ? name(picked.label) : "";
}

function choose(label) {
  pick(label, false);
  closeChoices();
}

function mark(item) {
  for (const each of choices.children) each.setAttribute("aria-selected", each === item);
  if (!item) return picker.removeAttribute("aria-activedescendant");
  picker.setAttribute("aria-activedescendant", item.id);
  item.scrollIntoView({ block: "nearest" });
}

const isOpen = () => picker.getAttribute("aria-expanded") === "true";

picker.addEventListener("focus", () => picker.select());
picker.addEventListener("click", () => isOpen() || offer(""));
picker.addEventListener("input", () => offer(picker.value));
picker.addEventListener("blur", closeChoices);
picker.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  const marked = choices.querySelector("[aria-selected=true]");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    if (!isOpen()) return offer("");
    const [first, last] = [choices.firstElementChild, choices.lastElementChild];
    const next = step > 0 ? marked?.nextElementSibling ?? first : marked?.previousElementSibling ?? last;
    if (next) mark(next);
  } else if (event.key === "Enter" && isOpen()) {
    event.preventDefault();
    marked?.choose();
  } else if (event.key === "Escape" && isOpen()) {
    event.preventDefault();
    closeChoices();
    picker.select();
  }
});
