"use strict";
// The review page. What is decided is posted at once; what is not yet is kept in this tab, so that a reload loses nothing.

const NEAR_NS = 1e9; // a witness within a second of what stands saw the same thing
const NAMES = { success: "moved", lost: "lost", safety_stop: "safety stop", neutral: "put back, or handled again", unknown: "cannot tell" };

let queue = { episodes: [], pairs: [], left: 0 };
let operations = []; // [{at_ns, result, cause}] as they stand now
let rows = []; // candidates: what stands, and what a witness saw that does not stand
let chosen = 0;

// -- an episode

const drafted = (trial) => `draft ${trial}`;

function draft() {
  const same = JSON.stringify(operations) === JSON.stringify(episode.operations);
  if (same) kept.removeItem(drafted(episode.trial));
  else kept.setItem(drafted(episode.trial), JSON.stringify(operations));
}

async function load(trial) {
  queue = await ask("queue");
  $("title").textContent = `review · ${queue.campaign}`;
  $("left").textContent = `${queue.left} of ${queue.episodes.length} episodes in dispute and not reviewed${unsaid()}`;
  $("finish").hidden = queue.left > 0 || waiting().length > 0 || !queue.episodes.length;
  const there = queue.episodes.find((one) => one.trial === trial) || queue.episodes[0];
  if (!there) { $("line").textContent = "nothing to review"; return; }
  if (episode && episode.trial === there.trial) return;
  await take(there.trial);
}

async function take(trial, { keep = false } = {}) {
  const told = await waited(() => ask(`episode/${encodeURIComponent(trial)}`));
  const another = !episode || episode.trial !== told.trial;
  episode = told;
  history.replaceState(null, "", `#${encodeURIComponent(trial)}`);
  const saved = kept.getItem(drafted(trial));
  operations = saved ? JSON.parse(saved) : episode.operations.map((op) => ({ ...op }));
  takeSaid();
  $("look").parentElement.classList.toggle("measured", task() !== null);
  $("line").textContent = `${episode.episode} · ${episode.condition}`;
  $("missing").hidden = !episode.missing;
  $("missing").textContent = episode.missing;
  facts();
  if (another && !keep) { show(); chosen = 0; }
  await draw();
  if (another && !keep) { seek(0); jump(0); }
  ahead();
}

function facts() {
  const mine = pair();
  const lines = [
    ...(task() ? [`the task: ${task().instruction}`] : []),
    `outcome: ${episode.outcome}`,
    ...(task() && episode.notes ? [`note: ${episode.notes}`] : []),
    `ended: ${episode.ended} after ${episode.length_s.toFixed(1)} s`,
    ...(task() ? [] : [`the operator counted ${episode.counted === null ? "no item while it ran" : episode.counted}`]),
    ...episode.models.map((text) => `a model, ${text}`),
    `reviewed ${episode.progress}`,
    ...(mine ? [`compared with ${mine.first === episode.episode ? mine.second : mine.first} (C shows it): ${mine.preferred ? inWords(mine) : "P says which was better"}`] : []),
  ];
  $("facts").replaceChildren(...lines.map((text) => made("li", text)));
}

function ahead() { // the next episode is made ready while this one is looked at
  const next = beside(1);
  if (!next || next.trial === episode.trial) return;
  ask(`episode/${encodeURIComponent(next.trial)}`).then((told) => {
    for (const reel of told.reels) {
      fetch(`video/${encodeURIComponent(told.episode)}/${encodeURIComponent(reel.camera)}`, { headers: { Range: "bytes=0-1" } }).catch(() => {});
    }
  }).catch(() => {});
}

function beside(by) {
  const here = queue.episodes.findIndex((one) => one.trial === episode.trial);
  const n = queue.episodes.length;
  return n ? queue.episodes[(Math.max(here, 0) + by + n) % n] : null;
}

// -- candidates

function candidates() {
  const found = operations.map((op) => ({ ...op, op, by: [] }));
  for (const [who, seen] of Object.entries(episode.witnesses)) {
    for (const one of seen) {
      const result = one.result || "success";
      const same = found.filter((row) => row.op && Math.abs(row.at_ns - one.at_ns) < NEAR_NS && !row.by.some(([by]) => by === who));
      same.sort((a, b) => Math.abs(a.at_ns - one.at_ns) - Math.abs(b.at_ns - one.at_ns));
      if (same.length) same[0].by.push([who, one.at_ns - same[0].at_ns, one.seen || (result === same[0].result ? "" : NAMES[result])]);
      else found.push({ at_ns: one.at_ns, result, cause: one.cause || "", op: null, by: [[who, 0, one.seen || ""]] });
    }
  }
  return found.sort((a, b) => a.at_ns - b.at_ns);
}

async function draw() {
  if (task()) { drawMeasured(); return; }
  headings("verdict", "seen by");
  rows = candidates();
  chosen = Math.max(0, Math.min(chosen, rows.length - 1));
  const body = $("candidates").tBodies[0];
  body.replaceChildren(...rows.map((row, number) => {
    const tr = made("tr", undefined, `${row.op ? row.result : "not"}${number === chosen ? " chosen" : ""}`);
    const verdict = made("td", row.op ? NAMES[row.result] : `not counted (${NAMES[row.result]})`, "verdict");
    if (row.op && row.cause) verdict.append(made("small", ` ${row.cause}`));
    const by = row.by.map(([who, off, saw]) => {
      const when = Math.abs(off) < 5e6 ? "" : ` ${off < 0 ? "−" : "+"}${(Math.abs(off) / 1e9).toFixed(2)}`;
      return `${who}${when}${saw ? ` (${saw})` : ""}`;
    });
    tr.append(made("td", (row.at_ns / 1e9).toFixed(2)), verdict, made("td", by.join(", ") || "you"));
    tr.addEventListener("click", () => jump(number));
    return tr;
  }));
  timelines();
  const asked = episode, answer = await tried(() => ask("differences", posted()));
  if (episode !== asked) return; // a late answer is of an episode that is not shown any more
  const differences = answer ? answer.differences : ["not known whether the witnesses agree: the review did not answer"];
  $("differences").replaceChildren(...(differences.length ? differences.map((text) => made("li", `✖ ${text}`)) : [made("li", "✔ all witnesses agree", "agree")]));
}

function headings(what, words) {
  const [, second, third] = $("candidates").tHead.rows[0].cells;
  [second.textContent, third.textContent] = [what, words];
}

function drawMeasured() {
  rows = [];
  headings("what", "in words");
  const body = $("candidates").tBodies[0], listed = tableRows();
  chosen = Math.max(0, Math.min(chosen, listed.length - 1));
  body.replaceChildren(...listed.map(([when, what, words, name], number) => {
    const tr = made("tr", undefined, `${name}${number === chosen ? " chosen" : ""}`);
    tr.append(made("td", when), made("td", what, "verdict"), made("td", words));
    tr.addEventListener("click", () => jump(number));
    return tr;
  }));
  timelines();
  const apart = episode.differences.map((text) => made("li", `✖ ${text}`));
  if (altered()) apart.push(made("li", "what you say differs from the outcome: W corrects it, Z takes it back"));
  $("differences").replaceChildren(...(apart.length ? apart : [made("li", "✔ all witnesses agree", "agree")]));
}

const posted = () => ({ trial: episode.trial, seen: episode.seen, operations: operations.map(({ at_ns, result }) => ({ at_ns, result })) });

function timelines() {
  const from = Number($("scrub").min), to = Number($("scrub").max);
  const place = (at_ns) => `${(100 * (at_ns / 1e9 - from)) / (to - from)}%`;
  const reached = ((said && said.reached_s) || []).flatMap((one) => (one === null ? [] : [{ at_ns: one * 1e9, result: "success" }]));
  const shown = task() ? { "reached": reached } : { "stands": operations, ...episode.witnesses };
  $("timelines").replaceChildren(...Object.entries(shown).filter(([who, seen]) => who === "stands" || who === "reached" || seen.length).map(([who, seen]) => {
    const timeline = made("div", undefined, "timeline"), track = made("div", undefined, "track");
    for (const one of seen) {
      const mark = made("span", undefined, `mark ${one.result || ""}${who === "stands" && rows[chosen] && rows[chosen].op === one ? " chosen" : ""}`);
      mark.style.left = place(one.at_ns);
      mark.title = `${(one.at_ns / 1e9).toFixed(2)} s`;
      mark.addEventListener("click", () => seek(one.at_ns / 1e9));
      track.append(mark);
    }
    const head = made("span", undefined, "head");
    head.style.left = place(at * 1e9);
    track.append(head);
    timeline.append(made("span", who), track);
    return timeline;
  }));
}

function jump(number) {
  const last = task() ? $("candidates").tBodies[0].rows.length - 1 : rows.length - 1;
  if (last < 0) { seek(0); return; }
  chosen = Math.max(0, Math.min(number, last));
  [...$("candidates").tBodies[0].rows].forEach((tr, n) => tr.classList.toggle("chosen", n === chosen));
  $("candidates").tBodies[0].rows[chosen].scrollIntoView({ block: "nearest" });
  timelines();
  halt();
  if (!task()) seek(rows[chosen].at_ns / 1e9);
  else if (staged() && (said.reached_s[chosen] ?? null) !== null) seek(said.reached_s[chosen]);
}

function changed(there) { // `there`: the operation that stays chosen
  draft();
  rows = candidates();
  if (there) chosen = rows.findIndex((row) => row.op === there);
  draw();
}

// -- what an assessor does

// Whether the task at hand has no operations, which is said.
function without() {
  if (task()) say(`this task is judged by ${task().measure}, not by operations; W corrects its outcome`, true);
  return task() !== null;
}

function confirm(event) {
  if (altered()) { say("what you say differs from the outcome: W corrects it with a why, Z takes it back", true); return; }
  once(event, (why) => say(why, true), async () => {
    const trial = episode.trial;
    const told = await tried(() => ask("review", posted()));
    if (!told) { await lookAgain(); return; }
    kept.removeItem(drafted(trial));
    episode = null;
    await tried(() => load());
    say(queue.left || waiting().length ? told.said : `${told.said}; nothing else is in dispute: F finishes the review`);
  });
}

// After a refusal: what is recorded may be another than was shown. What was typed stays, and so does the line.
async function lookAgain() {
  try { await take(episode.trial, { keep: true }); } catch { /* the line that is shown says why nothing was written */ }
}

function add() {
  if (without()) return;
  const one = { at_ns: Math.round(at * 1e9), result: "success", cause: "" };
  operations.push(one);
  changed(one);
}

function turn() { // a success that was none, a loss that was one, or a candidate that stands now
  if (without()) return;
  const row = rows[chosen];
  if (!row) return;
  if (!row.op) {
    const one = { at_ns: row.at_ns, result: row.result, cause: row.cause };
    operations.push(one);
    changed(one);
    return;
  }
  const lost = row.op.result === "success";
  Object.assign(row.op, { result: lost ? "lost" : "success", cause: lost ? "reviewed" : "" });
  changed(row.op);
}

function here() {
  if (without()) return;
  const row = rows[chosen];
  if (!row || !row.op) { say("this one does not stand; X lets it stand", true); return; }
  row.op.at_ns = Math.round(at * 1e9);
  changed(row.op);
}

function remove() {
  if (task()) { byStages(takeBack()); return; }
  const row = rows[chosen];
  if (!row || !row.op) { say("this one does not stand", true); return; }
  operations = operations.filter((op) => op !== row.op);
  changed();
}

function byStages(wrong) { // after a stage was said, or could not be
  say(wrong, Boolean(wrong));
  drawMeasured();
}

function reach(number) {
  if (!task()) { say(`${number} is for tasks in stages; this one is counted in items`, true); return; }
  if (staged()) chosen = number - 1;
  byStages(reachHere(number));
}

function undo() {
  if (task()) { again(); byStages(""); say("as it was"); return; }
  operations = episode.operations.map((op) => ({ ...op }));
  changed();
  say("as it was");
}

async function go(by) {
  const next = beside(by);
  if (next) { say(""); await tried(() => take(next.trial)); }
}

function outcome() {
  halt();
  askMeasure(true);
  document.querySelector(".staged").textContent = `of ${episode.staged}`;
  $("moved").value = episode.moved;
  $("lost").value = episode.lost;
  $("why").value = "";
  $("unfit").textContent = "";
  remain();
  offer($("outcome"));
  (task() ? $("score") || document.querySelector("#by-task input:checked") || document.querySelector("#by-task input") : $("moved")).focus();
}

function remain() {
  const left = episode.staged - Number($("moved").value) - Number($("lost").value);
  $("remaining").textContent = left < 0 ? "more than were staged" : `so ${left} remain in the source tote`;
}

async function correct() {
  const what = { trial: episode.trial, seen: episode.seen, ...answered(), why: $("why").value };
  const told = await ask("correct", what).catch(async (error) => { await lookAgain(); throw error; });
  if (task()) kept.removeItem(saidKey());
  $("outcome").close();
  queue = await ask("queue"); // sorted anew; this episode stays
  await take(episode.trial, { keep: true });
  say(told.said);
}

function finish() {
  if (queue.left) { say(`${queue.left} episodes in dispute are not reviewed yet; ENTER confirms one`, true); return; }
  if (waiting().length) { say(`of ${waiting().length} pairs of episodes nobody has said which was better; P asks`, true); return; }
  halt();
  $("unfinished").textContent = "";
  $("seen").textContent = `${queue.episodes.filter((one) => one.reviewed).length} of ${queue.episodes.length} episodes`;
  offer($("finishing"));
}

async function finished() {
  const told = await ask("finish", {});
  $("finishing").close();
  say(told.said);
}

// -- which of two was better

const waiting = () => queue.pairs.filter((one) => !one.preferred);
const unsaid = () => (waiting().length ? ` · of ${waiting().length === 1 ? "1 pair" : `${waiting().length} pairs`} nobody has said which was better` : "");
const pair = () => queue.pairs.find((one) => one.first === episode.episode || one.second === episode.episode);
const inWords = (one) => `${{ first: "the earlier one was better", second: "the later one was better", neither: "neither was better" }[one.preferred]}, ${one.why}`;
let asked = null;

function better() {
  asked = pair() || waiting()[0] || null;
  if (!asked) { say("no pair of episodes waits for a word on which was better", true); return; }
  halt();
  $("question").textContent = `Block ${asked.block + 1}: ${asked.question}`;
  for (const [n, which] of ["first", "second"].entries()) {
    $(which).textContent = ` the ${n ? "later" : "earlier"} one: episode ${asked.places[n]} of the block, ${asked[which]}`;
  }
  for (const one of $("preference").querySelectorAll("input[type=radio]")) one.checked = one.value === asked.preferred;
  $("reason").value = asked.why || "";
  $("unsure").textContent = "";
  offer($("preference"));
  ($("preference").querySelector("input:checked") || $("preference").querySelector("input")).focus();
}

async function prefer() {
  const one = document.querySelector('#preference input[name="preferred"]:checked');
  if (!one) throw new Error("choose the earlier, the later or neither: its number");
  const what = { first: asked.first, second: asked.second, seen: asked.seen, preferred: one.value, why: $("reason").value };
  const told = await ask("prefer", what).catch(async (error) => {
    queue = await ask("queue").catch(() => queue);
    asked = queue.pairs.find((pair) => pair.second === asked.second) || asked;
    throw error;
  });
  $("preference").close();
  await load(episode.trial);
  facts();
  say(told.said);
}

async function other() { // the other episode of the pair
  const mine = pair();
  const there = mine && queue.episodes.find((one) => one.episode === (mine.first === episode.episode ? mine.second : mine.first));
  if (!there) { say("this episode is compared with no other", true); return; }
  await tried(() => take(there.trial));
}

keyed({
  Enter: confirm, ArrowUp: () => jump(chosen - 1), ArrowDown: () => jump(chosen + 1),
  i: add, "+": add, x: turn, t: here, d: remove, Delete: remove, Backspace: remove, z: undo, w: outcome, n: () => go(1), b: () => go(-1), f: finish,
  p: better, c: other,
  ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => [String(n), () => reach(n)])),
});
submits($("outcome"), "unfit", correct);
$("leave").addEventListener("click", () => $("outcome").close());
digits($("outcome"), (number) => (staged() ? chooseStage(number) : false));
submits($("finishing"), "unfinished", finished);
$("unready").addEventListener("click", () => $("finishing").close());
submits($("preference"), "unsure", prefer);
$("undecided").addEventListener("click", () => $("preference").close());
digits($("preference"), (number) => {
  const one = $("preference").querySelectorAll("input[type=radio]")[number - 1];
  if (one) { one.checked = true; one.focus(); }
  return Boolean(one);
});
for (const id of ["moved", "lost"]) $(id).addEventListener("input", remain);

tried(async () => {
  const [trial, then] = JSON.parse(kept.getItem("at") || "[null, 0]");
  await load(decodeURIComponent(location.hash.slice(1)));
  if (episode && trial === episode.trial && performance.getEntriesByType("navigation")[0]?.type === "reload") seek(then);
});
