// The newest messages: what was predicted of them, and what came out.
"use strict";

function showNewest(messages) {
  update(byId("newest"), messages, ({ number, text }) => [number, text], "message-template", showMessage);
  showEither("newest-table", "no-newest", messages.length > 0);
  for (const column of ["probability", "second"]) {
    byId("newest-table").classList.toggle(`no-${column}`, !messages.some((message) => known(message[column])));
  }
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
  write(cell(".probability"), score(probability, 3));
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
