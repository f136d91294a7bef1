// The figures, the curves they are drawn from, and what is said of the model.
"use strict";

const CLASSES = "classes";
const ORDERED = "ordered";
const LABELS = "several labels";

let kind = CLASSES;
let curve = { n: 0, rows: [], drifts: [], window: 0 };

function showFigures(data) {
  const figures = data.figures.filter((figure) => figure.is_tile && figure.name in data);
  const [first] = document.querySelectorAll(".figure");
  while (document.querySelectorAll(".figure").length < figures.length) first.parentNode.append(first.cloneNode(true));
  document.querySelectorAll(".figure").forEach((tile, i) => {
    tile.hidden = i >= figures.length;
    if (tile.hidden) return;
    const { name: figure, title, about } = figures[i];
    const recent = data.window[figure];
    write(tile.children[0], title);
    tile.children[1].id = figure;
    tile.children[2].id = `window_${figure}`;
    write(tile.children[1], score(data[figure]));
    write(tile.children[2], known(recent) ? `newest ${count(data.window.n)}: ${score(recent)}` : about);
  });
}

/** The figures over time, each with that of the newest messages where there is one. */
function showCurve({ n, figures, curve: columns, drifts, window: newest }) {
  const rows = columns.n.map((_, i) => Object.fromEntries(Object.keys(columns).map((key) => [key, columns[key][i]])));
  curve = { n, rows, drifts, window: newest.size };
  const drawn = figures.filter((figure) => figure.name in columns);
  while (charts.length < drawn.length) addChart();
  charts.forEach((chart, i) => chart.setFigure(drawn[i]));
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
  const failed = data.n_failed ? `${plural(data.n_failed, "request")} failed` : "no request failed";
  write(byId("n_failed"), data.n_refused ? `${failed}, ${count(data.n_refused)} refused` : failed);

  const drifts = data.drifts;
  const last = drifts.length ? `, the last one at message ${count(drifts.at(-1))}` : "";
  write(byId("drifts"), drifts.length ? `${plural(drifts.length, "drift alarm")}${last}.` : "No drift alarm.");
  setClass(byId("drifts"), drifts.length ? "alarms" : "");
  showCurve(data);
  showClasses(data);
  const meant = known(model.positive) ? name(model.positive) : "the predicted label";
  const said = kind === LABELS ? "a label held" : `${meant} was true`;
  write(byId("calibrated"), `How often ${said}, against the probability predicted for it.`);
  showReliability(data.reliability, data.fewest_in_tenth);
  showModel(model, data.checkpoint);
  showTeacher(data.teaching);
  showNewest(data.newest);
  refreshWrong(data.n);
  showFailures(data.failures);
}

function showModel(model, checkpoint) {
  const most = known(model.max_features) ? `, at most ${count(model.max_features)}` : "";
  write(byId("kind"), model.kind);
  write(byId("classifier"), model.classifier);
  write(byId("n_iterations"), count(model.n_iterations));
  write(byId("n_features"), count(model.n_features) + most);
  const positive = known(model.positive) ? ", the positive one " : "";
  const how = { [ORDERED]: ", in order", [LABELS]: ", any number at a time" }[kind] ?? positive;
  write(byId("n_classes"), count(model.n_classes) + how);
  write(byId("positive"), positive && name(model.positive));
  const { path = "none is kept", seconds_ago: ago, error } = checkpoint ?? {};
  const saved = known(ago) ? `${duration(ago)} ago` : "not yet";
  write(byId("checkpoint"), path);
  write(byId("saved"), checkpoint ? saved : "what is learned ends with the service");
  setNotice("checkpoint-notice", error ? `The checkpoint ${path} cannot be written: ${error}. Learning continues.` : "");
}

/** Who is asked for labels, if anybody is, and how good they are where people labelled the same messages. */
function showTeacher(teaching) {
  byId("teacher").hidden = !teaching;
  if (!teaching) return;
  const { per_day: most, n_of_day: today, n_tokens: tokens, agreement, faults } = teaching;
  const budget = known(most) ? `, ${count(today)} of ${count(most)} in 24 hours` : "";
  write(byId("teacher-url"), teaching.url);
  write(byId("teacher-asked"), `${plural(teaching.n_asked, "message")}, at most ${score(teaching.share)} of all${budget}`);
  const leftOut = teaching.n_left_out ? `, ${count(teaching.n_left_out)} answers left out, as it is often wrong` : "";
  write(byId("teacher-taught"), `${plural(teaching.n_taught, "message")}, for ${plural(tokens, "token")}${leftOut}`);
  const dropped = teaching.n_dropped ? `, ${count(teaching.n_dropped)} given up` : "";
  write(byId("teacher-waiting"), plural(teaching.n_waiting, "message") + dropped);
  const judged = agreement.filter((each) => each.n).sort((a, b) => b.n - a.n).slice(0, 20);
  const agrees = judged.map((each) => `${name(each.label)} ${score(each.share)} of ${count(each.n)}`);
  write(byId("teacher-agrees"), agrees.join(", ") || "nothing that both labelled yet");
  const failed = Object.entries(faults).map(([fault, n]) => `${fault} ${count(n)}`);
  write(byId("teacher-failed"), [...failed, ...(teaching.error ? [`now: ${teaching.error}`] : [])].join(", ") || "never");
}
