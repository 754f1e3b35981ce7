"use strict";
// A task that is not counted in items: its stages or its rubric in the table, keys 1 to 9 at the moment a stage is
// reached, and the fields of the form that corrects an outcome or judges one.

let said = null; // {reached_s: [...]} or {score}, as it is said now; null of a task in items

const task = () => (episode ? episode.task : null);
const staged = () => task() && task().measure !== "score";
const saidKey = () => `said ${episode.trial}`;
const asTold = () => (!task() ? null : staged() ? { reached_s: [...task().reached_s] } : { score: task().score });
const seconds = (at_s) => (at_s === null ? "" : at_s.toFixed(2));

function takeSaid() {
  const saved = kept.getItem(saidKey());
  said = task() ? (saved ? JSON.parse(saved) : asTold()) : null;
}

function keepSaid() {
  if (altered()) kept.setItem(saidKey(), JSON.stringify(said));
  else kept.removeItem(saidKey());
}

function altered() {
  return task() !== null && JSON.stringify(said) !== JSON.stringify(asTold());
}

function again() {
  said = asTold();
  keepSaid();
}

// Number, seconds, what it is, and in words; a rubric's anchors.
function tableRows() {
  if (!staged()) return task().rubric.map((anchor) => ["", `score ${anchor.score}`, anchor.text, "not"]);
  return task().stages.map((stage, n) => {
    const reached = n < said.reached_s.length;
    const when = reached ? seconds(said.reached_s[n]) || "reached, nobody saw when" : "not reached";
    return [when, `${n + 1} ${stage.name} (${stage.points} ${stage.points === 1 ? "point" : "points"})`, stage.definition, reached ? "success" : "not"];
  });
}

// A stage is reached at the moment that is shown, or was reached then; says why where it cannot be.
function reachHere(number) {
  if (!staged()) return `this task is judged by a score; ${$("outcome").dataset.key} asks for it`;
  const times = said.reached_s, now = Math.round(at * 1000) / 1000;
  if (number > task().stages.length) return `there is no stage ${number}; the task has ${task().stages.length}`;
  if (number > times.length + 1) return `a stage counts only after those before it; the next is ${times.length + 1}`;
  if (now < 0) return "that is before go";
  if (times.slice(0, number - 1).some((one) => one !== null && one > now) || times.slice(number).some((one) => one !== null && one < now)) {
    return "a stage is not reached before the one before it; look for another moment";
  }
  times[number - 1] = now;
  keepSaid();
  return "";
}

function takeBack() {
  if (!staged()) return "this task is judged by a score, not by stages";
  if (!said.reached_s.length) return "no stage is reached that could be taken back";
  said.reached_s.pop();
  keepSaid();
  return "";
}

// The fields of the form; `taken` says whether what is said now is an answer already.
function askMeasure(taken) {
  $("by-items").disabled = $("by-items").hidden = task() !== null;
  $("by-task").disabled = $("by-task").hidden = task() === null;
  $("by-task").replaceChildren();
  if (!task()) return;
  $("by-task").append(made("p", `the task: ${task().instruction}`));
  if (!staged()) {
    task().rubric.forEach((anchor, place) => {
      $("by-task").append(made("p", `${anchor.score}: ${anchor.text}`, "anchor"));
      if (!anchor.pictured) return;
      const picture = made("img", undefined, "anchor");
      picture.src = `anchor/${encodeURIComponent(episode.trial)}/${place}`;
      picture.alt = `what ${anchor.score} looks like: ${anchor.text}`;
      $("by-task").append(picture);
    });
    const label = made("label", "score, from 0 to 1; between two of these where it lies between them");
    const input = made("input");
    Object.assign(input, { id: "score", type: "number", min: 0, max: 1, step: "any", required: true });
    if (taken && said.score !== null) input.value = said.score;
    label.append(input);
    $("by-task").append(label);
    return;
  }
  const yes = task().measure === "success";
  $("by-task").append(made("p", yes ? "was the task done?" : "furthest stage reached: each counts only after those before it"));
  const listed = task().stages.map((stage, n) => {
    const when = said.reached_s[n] ?? null;
    const words = yes ? "yes" : `${stage.name} (${stage.points}): ${stage.definition}`;
    return [n + 1, when === null ? words : `${words}, seen at ${seconds(when)} s`];
  });
  for (const [number, words] of [...listed, [0, yes ? "no" : "none of them"]]) {
    const label = made("label", undefined, "choice"), input = made("input");
    Object.assign(input, { type: "radio", name: "reached", value: number, required: true, checked: taken && number === said.reached_s.length });
    label.append(input, made("kbd", String(number)), made("span", ` ${words}`));
    $("by-task").append(label);
  }
}

function chooseStage(number) { // in the form, by its key
  const one = document.querySelector(`#by-task input[value="${number}"]`);
  if (one) { one.checked = true; one.focus(); }
  return Boolean(one);
}

function answered() { // what the form says; raises an Error that says what is missing
  if (!task()) return { moved: Number($("moved").value), lost: Number($("lost").value) };
  if (!staged()) {
    if ($("score").value === "") throw new Error("give the score, a number from 0 to 1");
    return { score: Number($("score").value) };
  }
  const one = document.querySelector('#by-task input[name="reached"]:checked');
  if (!one) throw new Error("nothing was seen: choose how far it got, by its number");
  const number = Number(one.value);
  return { reached_s: Array.from({ length: number }, (_, n) => said.reached_s[n] ?? null) };
}
