// Trying a text: what is predicted of it, and why.
"use strict";

const FIRST_CONTRIBUTIONS = 12;
const MOST_CHANCES = 5;

let trial = 0; // only the newest question may be answered
let tried = ""; // the text that the answer is about
let fields = []; // of a message; none where it is a text

byId("try-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (byId("try-text").value !== tried) hideTeach();
  tried = byId("try-text").value;
  explain(message(tried));
});

/** What is sent of a text: the text or, where a message has fields, these, each on lines behind its name. */
function message(text) {
  if (!fields.length) return { text };
  const sent = {};
  let field = fields[0];
  for (const line of text.split("\n")) {
    const begun = fields.find((each) => line.startsWith(`${each}:`));
    if (begun) field = begun;
    const rest = begun ? line.slice(begun.length + 1).trim() : line;
    sent[field] = field in sent ? `${sent[field]}\n${rest}` : rest;
  }
  return sent;
}

async function explain(question) {
  const mine = ++trial;
  byId("try-form").setAttribute("aria-busy", "true");
  const { answer, failure } = await send("explain", question);
  if (mine !== trial) return;
  byId("try-form").removeAttribute("aria-busy");
  write(byId("try-error"), failure);
  if (!answer) return;
  showAnswer(answer);
  showTeach(answer);
}

byId("try-text").addEventListener("keydown", (event) => {
  // Enter that ends the composition of a character is not meant for the form.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("try-form").requestSubmit();
});

byId("more").addEventListener("click", () => expand(byId("more").getAttribute("aria-expanded") === "false"));

function expand(all) {
  const n = byId("contributions").children.length;
  byId("more").setAttribute("aria-expanded", all);
  byId("more").hidden = n <= FIRST_CONTRIBUTIONS;
  write(byId("more"), all ? "Show fewer" : `Show all ${n}`);
  [...byId("contributions").children].forEach((item, i) => {
    item.hidden = !all && i >= FIRST_CONTRIBUTIONS;
  });
}

function showAnswer(answer) {
  const { contributions, words, n_others, others } = answer;
  showVerdict(answer);
  showChances(answer);
  showMarked(answer);
  const largest = Math.max(...contributions.map(([, size]) => Math.abs(size)));
  update(byId("contributions"), contributions, ([ngram]) => ngram, "contribution-template", (item, [ngram, size]) => {
    setClass(item, size < 0 ? "against" : "for");
    const shares = words[contributions.findIndex(([other]) => other === ngram)];
    item.title = shares.length > 1 ? shares.map(([each, share]) => `${each} ${signed(share)}`).join(", ") : "";
    write(item.children[0], word(ngram));
    setShare(item, Math.abs(size) / largest);
    write(item.children[2], signed(size));
  });
  expand(false);
  byId("why").hidden = !contributions.length;
  write(byId("others"), n_others ? `${plural(n_others, "smaller contribution")}, together ${signed(others)}.` : "");
}

/** The text itself, its words coloured by what they add. */
function showMarked({ pieces, explained, against }) {
  const largest = Math.max(...pieces.flatMap(([, found]) => found.map(([, size]) => Math.abs(size))));
  const sides = [known(explained) ? `for ${name(explained)}` : "higher", "lower"];
  if (known(explained)) sides[1] = known(against) ? `for ${name(against)}` : `against ${name(explained)}`;
  const shown = pieces.flatMap(([field, found], i) => {
    const parts = found.map(([text, size]) => {
      if (!size) return text;
      const mark = make("mark", text, size < 0 ? "against" : "for");
      mark.title = `${signed(size)} ${sides[Number(size < 0)]}`;
      setShare(mark, Math.abs(size) / largest);
      return mark;
    });
    return [field ? `${i ? "\n" : ""}${field}: ` : "", ...parts];
  });
  byId("marked").replaceChildren(...shown);
}

function showVerdict({ label, probability, contributions, withheld = [], set = [] }) {
  const said = listed(label);
  const names = make("span", "");
  writeLabels(names, said.map(name));
  let rest = "No label: nothing, or not enough, is learned yet.";
  if (kind === LABELS) rest = said.length ? plural(said.length, "label") : "No label holds.";
  else if (said.length) rest = `probability ${probability.toFixed(4)}`;
  if (withheld.length) rest += `. The limit of false positives withholds ${withheld.map(name).join(", ")}.`;
  if (set.length > 1 || kind === LABELS) rest += set.length ? `. It may be ${set.map(name).join(", ")}` : "";
  else if (set.length) rest += ". It is sure enough for the coverage asked for";
  if (said.length && !contributions.length) rest += ". Nothing in this text is known to the model.";
  byId("verdict").replaceChildren(...(said.length ? [names, " "] : []), make("span", rest, "muted"));
}

/** The labels that come first, each a button that asks what speaks for it; and what the bars below are about. */
function showChances({ label: said, probabilities, explained, against }) {
  let chances = probabilities.slice(0, MOST_CHANCES);
  if (kind === ORDERED) chances = [...probabilities].sort(([a], [b]) => a - b);
  update(byId("chances"), chances, ([label]) => label, "chance-template", (item, [label, chance]) => {
    const button = item.firstElementChild;
    const holds = kind === LABELS && said.some((other) => sameLabel(other, label));
    write(button.children[0], name(label));
    button.title = `What speaks for ${name(label)}`;
    write(button.children[1], `${holds ? "✓ " : ""}${chance.toFixed(3)}`);
    setShare(item, chance);
    button.disabled = kind === ORDERED;
    const meant = [kind === ORDERED ? said : explained, against].filter(known);
    button.setAttribute("aria-pressed", meant.some((other) => sameLabel(other, label)));
    button.onclick = () => explain({ ...message(tried), label });
  });
  if (kind === ORDERED) {
    writeSides(["lower", ""], ["higher", ""]);
  } else if (known(against)) {
    writeSides(["", name(against)], ["", name(explained)]);
  } else {
    writeSides(["against ", name(explained)], ["for ", name(explained)]);
  }
}

function writeSides(left, right) {
  for (const [side, [what, label]] of Object.entries({ left, right })) {
    write(byId(`${side}-side`), what);
    write(byId(`${side}-label`), label);
  }
}
