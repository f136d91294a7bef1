// The newest messages and the wrong answers: what was predicted of them, and what came out. And the failed requests.
"use strict";

const [FEW_WRONG, MOST_WRONG] = [10, 200]; // that are shown, at first and when more are asked for

for (const id of ["newest", "wrong"]) byId(id).before(byId("messages-head-template").content.cloneNode(true));

const showNewest = (messages) => showMessages("newest", messages);

/** Show messages in the table of a name. */
function showMessages(id, messages) {
  update(byId(id), messages, ({ number, time, text }) => [number, time, text], "message-template", showMessage);
  showEither(`${id}-table`, `no-${id}`, messages.length > 0);
  for (const column of ["probability", "second"]) {
    byId(`${id}-table`).classList.toggle(`no-${column}`, !messages.some((message) => known(message[column])));
  }
}

function showMessage(row, message) {
  const { text, probability, second } = message;
  const cell = (selector) => row.querySelector(selector);
  write(cell(".number"), count(message.number));
  writeTime(cell("time"), message.time);
  write(cell(".outcome .value"), known(message.label_probability) ? message.label_probability.toFixed(3) : "");
  showCorrection(cell(".outcome"), message);
  write(cell(".text bdi"), text.trim() ? text : "(empty)");
  if (kind === LABELS) return showLabels(cell, message);
  const { label, predicted } = message;
  const byLimit = message.withheld ? "by limit" : "";
  writeLabels(cell(".predicted"), [[known(predicted) ? name(predicted) : "–", byLimit], ...others(message)]);
  write(cell(".probability"), score(probability, 3));
  write(cell(".second bdi"), known(second) ? name(second) : "–");
  write(cell(".second span"), known(second) ? message.second_probability.toFixed(3) : "");
  if (!known(label)) setOutcome(cell, "", "no label", []);
  else if (!known(predicted)) setOutcome(cell, "", "label", [label]);
  else if (message.right) setOutcome(cell, "right", "✓ right", []);
  else setOutcome(cell, "wrong", "✗ is", [label]);
}

/** The labels in the set of a message that are not predicted. */
function others({ predicted, set = [] }) {
  return set.filter((each) => ![predicted].flat().includes(each)).map((each) => [name(each), "perhaps"]);
}

/** A message that has any number of labels. */
function showLabels(cell, message) {
  const { label, predicted, probability, right, withheld = [] } = message;
  const chances = predicted.map((each, i) => [name(each), known(probability[i]) ? probability[i].toFixed(2) : ""]);
  chances.push(...withheld.map((each) => [name(each), "withheld by limit"]));
  chances.push(...others(message));
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

/** A button that says that the prediction was right, and the label wrong. */
function showCorrection(outcome, { number, predicted, can_be_corrected: isKept }) {
  outcome.querySelector("button")?.remove();
  if (!isKept || !known(predicted) || ofFile) return;
  outcome.append(byId("correction-template").content.cloneNode(true));
  const button = outcome.querySelector("button");
  write(button.querySelector("bdi"), Array.isArray(predicted) ? predicted.map(name).join(", ") || "none" : name(predicted));
  button.onclick = () => correct(number, predicted);
}

// Wrong answers -------------------------------------------------------------------------------------------------------

let wrongAsked = ""; // what they were asked for with, and when
let wrongTurn = 0; // only the newest question may be answered
let shownWrong = FEW_WRONG;

let firstWrong = "newest";

const wrongQuery = (rest) =>
  `wrong?${new URLSearchParams({ search: byId("wrong-search").value, first: firstWrong, ...rest })}`;

/** Learn a wrong answer with the label that is right. */
async function correct(number, label) {
  const { failure } = await send("correct", { number, label });
  write(byId("wrong-error"), failure);
  wrongAsked = "";
  await refreshWrong(curve.n);
}

for (const button of document.querySelectorAll("#wrong-orders button")) {
  button.addEventListener("click", () => {
    firstWrong = button.dataset.first;
    for (const other of document.querySelectorAll("#wrong-orders button")) {
      other.setAttribute("aria-pressed", other === button);
    }
    refreshWrong(curve.n);
  });
}

/** Show the wrong answers that the search finds, after so many messages. */
async function refreshWrong(n) {
  const asked = JSON.stringify([n, byId("wrong-search").value, shownWrong, firstWrong]);
  if (asked === wrongAsked) return;
  wrongAsked = asked;
  const mine = ++wrongTurn;
  const found = await askQuietly(wrongQuery({ limit: shownWrong }));
  if (mine !== wrongTurn) return;
  if (!found) wrongAsked = "";
  else showWrong(found);
}

function showWrong({ n, messages }) {
  const isSearched = byId("wrong-search").value !== "";
  showMessages("wrong", messages);
  byId("wrong-form").hidden = !n && !isSearched;
  byId("wrong-orders").hidden = byId("wrong-form").hidden;
  write(byId("no-wrong"), isSearched ? "No wrong answer has that in its text or labels." : "None yet.");
  const first = messages.length < n ? ` ${messages.length} are shown; the export has all.` : "";
  write(byId("wrong-line"), n ? `${plural(n, "wrong answer")} ${isSearched ? "found" : "kept"}.${first}` : "");
  const isShort = shownWrong === FEW_WRONG;
  byId("more-wrong").hidden = n <= FEW_WRONG;
  byId("more-wrong").setAttribute("aria-expanded", !isShort);
  write(byId("more-wrong"), isShort ? `Show ${Math.min(n, MOST_WRONG)}` : "Show fewer");
}

byId("wrong-search").addEventListener("input", () => refreshWrong(curve.n));
byId("more-wrong").addEventListener("click", () => {
  shownWrong = shownWrong === FEW_WRONG ? MOST_WRONG : FEW_WRONG;
  refreshWrong(curve.n);
});
byId("wrong-form").addEventListener("submit", (event) => event.preventDefault());
byId("wrong-export").addEventListener("click", async () => {
  let failure = "The service cannot be reached.";
  try {
    const response = await ask(wrongQuery({ format: "csv" }));
    failure = response.ok ? "" : await reason(response);
    if (response.ok) saveFile(await response.blob(), "wrong.csv");
  } catch {
    // as it says
  }
  write(byId("wrong-error"), failure);
});

function saveFile(blob, called) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = called;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), TIMEOUT);
}

// Failed requests -----------------------------------------------------------------------------------------------------

function showFailures(failures) {
  byId("failures").hidden = !failures.length;
  byId("n_failed").toggleAttribute("href", failures.length > 0);
  if (failures.length) byId("n_failed").href = "#failures";
  const keyOf = ({ request, status, reason }) => [request, status, reason];
  update(byId("reasons"), failures, keyOf, "failure-template", (row, { request, status, reason, n, time }) => {
    writeTime(row.querySelector("time"), time);
    [, request, status, , count(n)].forEach((text, i) => write(row.cells[i], text));
    write(row.querySelector("bdi"), reason || "no reason was told");
  });
}
