// Trying a text: what is predicted of it, and why.
"use strict";

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
