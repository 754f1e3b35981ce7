"use strict";
// A second assessor's page: by the videos alone, nothing of what was said of an episode.

let left = [];

async function load(next = 0) {
  left = (await ask("queue")).episodes;
  $("left").textContent = `${left.length} ${left.length === 1 ? "episode" : "episodes"} left to judge`;
  if (!left.length) {
    episode = null;
    $("line").textContent = "nothing is left for you to judge";
    for (const id of ["films", "facts"]) $(id).replaceChildren();
    $("stages").tBodies[0].replaceChildren();
    return;
  }
  episode = await ask(`episode/${encodeURIComponent(left[next % left.length].trial)}`);
  $("line").textContent = `${episode.episode} · ${task() ? task().name : "items"}`;
  $("facts").replaceChildren(...(episode.instruction ? [made("li", `the task: ${episode.instruction}`)] : []), made("li", "by the videos alone"));
  $("missing").hidden = !episode.missing;
  $("missing").textContent = episode.missing;
  takeSaid();
  $("stages").hidden = !task();
  show();
  seek(0);
  draw();
}

function draw() {
  $("stages").tBodies[0].replaceChildren(...(task() ? tableRows() : []).map(([when, what, words, name]) => {
    const tr = made("tr", undefined, name);
    tr.append(made("td", when), made("td", what, "verdict"), made("td", words));
    return tr;
  }));
}

function reach(number) {
  const wrong = task() ? reachHere(number) : `ENTER asks how many were moved; ${number} is for tasks in stages`;
  say(wrong, Boolean(wrong));
  draw();
}

function back() {
  const wrong = task() ? takeBack() : "no stage is reached that could be taken back";
  say(wrong, Boolean(wrong));
  draw();
}

function form() {
  halt();
  askMeasure(Boolean(task()) && altered());
  document.querySelector(".staged").textContent = `of ${episode.staged}`;
  $("moved").value = $("lost").value = "";
  $("unfit").textContent = "";
  offer($("outcome"));
  (task() ? $("score") || document.querySelector("#by-task input:checked") || document.querySelector("#by-task input") : $("moved")).focus();
}

async function judge() {
  const told = await ask("judge", { trial: episode.trial, ...answered() });
  kept.removeItem(saidKey());
  $("outcome").close();
  await tried(() => load());
  say(told.said);
}

const here = () => left.findIndex((one) => one.trial === episode.trial);

function go(by) { tried(() => waited(() => load(here() + by + left.length))); }

keyed({
  Enter: (event) => once(event, (why) => say(why, true), form),
  n: () => go(1), b: () => go(-1), Backspace: back,
  ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => [String(n), () => reach(n)])),
});
submits($("outcome"), "unfit", judge);
$("leave").addEventListener("click", () => $("outcome").close());
digits($("outcome"), (number) => (task() && staged() ? chooseStage(number) : false));
tried(() => load());
