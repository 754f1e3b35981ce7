"use strict";
// The review page. What is decided is posted at once; what is not yet is kept in this tab, so that a reload loses nothing.

const $ = (id) => document.getElementById(id);
const SPEEDS = [1, 2, 4, 0.25, 0.5];
const NEAR_NS = 1e9; // a witness within a second of what stands saw the same thing
const NAMES = { success: "moved", lost: "lost", safety_stop: "safety stop", neutral: "put back, or handled again", unknown: "cannot tell" };
const kept = sessionStorage;

let queue = { episodes: [], left: 0 };
let episode = null; // as the server tells it
let operations = []; // [{at_ns, result, cause}] as they stand now
let rows = []; // candidates: what stands, and what a witness saw that does not stand
let chosen = 0;
let at = 0; // seconds since go
let playing = false;
let speed = 0;
let films = []; // [{video, reel}]

async function ask(path, body) {
  const given = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  const answer = await fetch(path, { ...given, credentials: "same-origin" });
  const text = await answer.text();
  let told;
  try { told = JSON.parse(text); } catch { throw new Error(text.trim() || `labctl answered ${answer.status}`); }
  if (!answer.ok) throw new Error(told.error || `labctl answered ${answer.status}`);
  return told;
}

function say(text, wrong = false) {
  $("said").textContent = text;
  $("said").classList.toggle("wrong", wrong);
}

async function tried(act) {
  try { return await act(); } catch (error) {
    say(error instanceof TypeError ? "labctl does not answer; is `labctl review --page` still running?" : error.message, true);
    return undefined;
  }
}

function made(tag, text, name) {
  const one = document.createElement(tag);
  if (text !== undefined) one.textContent = text;
  if (name) one.className = name;
  return one;
}

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
  $("left").textContent = `${queue.left} of ${queue.episodes.length} episodes in dispute and not reviewed`;
  $("finish").hidden = queue.left > 0 || !queue.episodes.length;
  const there = queue.episodes.find((one) => one.trial === trial) || queue.episodes[0];
  if (!there) { $("line").textContent = "nothing to review"; return; }
  if (episode && episode.trial === there.trial) return;
  await take(there.trial);
}

async function take(trial, { keep = false } = {}) {
  const told = await ask(`episode/${encodeURIComponent(trial)}`);
  const another = !episode || episode.trial !== told.trial;
  episode = told;
  history.replaceState(null, "", `#${encodeURIComponent(trial)}`);
  const saved = kept.getItem(drafted(trial));
  operations = saved ? JSON.parse(saved) : episode.operations.map((op) => ({ ...op }));
  $("line").textContent = `${episode.episode} · ${episode.condition}`;
  $("missing").hidden = !episode.missing;
  $("missing").textContent = episode.missing;
  facts();
  if (another && !keep) { show(); chosen = 0; }
  await draw();
  if (another && !keep) jump(0);
  ahead();
}

function facts() {
  const lines = [
    `outcome: moved ${episode.moved}, lost ${episode.lost}, of ${episode.staged} staged`,
    `ended: ${episode.ended} after ${episode.length_s.toFixed(1)} s`,
    `the operator counted ${episode.counted === null ? "nothing" : episode.counted}`,
    `reviewed ${episode.reviewed ? "already" : "not yet"}`,
  ];
  $("facts").replaceChildren(...lines.map((text) => made("li", text)));
}

function show() {
  halt();
  for (const { video } of films) { video.removeAttribute("src"); video.load(); }
  films = episode.reels.map((reel) => {
    const video = made("video");
    Object.assign(video, { muted: true, playsInline: true, preload: "auto" });
    video.src = `video/${encodeURIComponent(episode.episode)}/${encodeURIComponent(reel.camera)}`;
    video.addEventListener("loadedmetadata", () => seek(at));
    video.addEventListener("error", () => say(`the video of ${reel.camera} cannot be played here`, true));
    return { video, reel };
  });
  $("films").replaceChildren(...films.map(({ video, reel }) => {
    const figure = made("figure");
    figure.append(video, made("figcaption", reel.camera));
    return figure;
  }));
  $("scrub").min = Math.min(0, ...episode.reels.map((reel) => reel.frames_s[0]));
  $("scrub").max = Math.max(episode.length_s, ...episode.reels.map((reel) => reel.frames_s[reel.frames_s.length - 1]));
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
  const { differences } = (await tried(() => ask("differences", posted()))) || { differences: [] };
  $("differences").replaceChildren(...(differences.length ? differences.map((text) => made("li", `✖ ${text}`)) : [made("li", "✔ all witnesses agree", "agree")]));
}

const posted = () => ({ trial: episode.trial, operations: operations.map(({ at_ns, result }) => ({ at_ns, result })) });

function timelines() {
  const from = Number($("scrub").min), to = Number($("scrub").max);
  const place = (at_ns) => `${(100 * (at_ns / 1e9 - from)) / (to - from)}%`;
  const shown = { "stands": operations, ...episode.witnesses };
  $("timelines").replaceChildren(...Object.entries(shown).filter(([who, seen]) => who === "stands" || seen.length).map(([who, seen]) => {
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
  if (!rows.length) { seek(0); return; }
  chosen = Math.max(0, Math.min(number, rows.length - 1));
  [...$("candidates").tBodies[0].rows].forEach((tr, n) => tr.classList.toggle("chosen", n === chosen));
  $("candidates").tBodies[0].rows[chosen].scrollIntoView({ block: "nearest" });
  timelines();
  halt();
  seek(rows[chosen].at_ns / 1e9);
}

function changed(there) { // `there`: the operation that stays chosen
  draft();
  rows = candidates();
  if (there) chosen = rows.findIndex((row) => row.op === there);
  draw();
}

// -- time

function seek(to) {
  at = Math.max(Number($("scrub").min), Math.min(to, Number($("scrub").max)));
  for (const { video, reel } of films) {
    const want = Math.max(0, at - reel.zero_s + 0.0005);
    if (video.readyState && Math.abs(video.currentTime - want) > 0.0002) video.currentTime = want;
  }
  told();
}

function told() {
  $("scrub").value = at;
  $("at").textContent = `${at.toFixed(2)} s`;
  const from = Number($("scrub").min), to = Number($("scrub").max);
  for (const head of document.querySelectorAll(".head")) head.style.left = `${(100 * (at - from)) / (to - from)}%`;
  kept.setItem("at", JSON.stringify([episode.trial, at]));
}

function halt() {
  playing = false;
  for (const { video } of films) video.pause();
  $("play").textContent = "play";
}

function play() {
  if (!films.length) return;
  if (at >= Number($("scrub").max) - 0.05) seek(0);
  playing = true;
  $("play").textContent = "pause";
  for (const { video } of films) { video.playbackRate = SPEEDS[speed]; video.play().catch(() => {}); }
  requestAnimationFrame(run);
}

function run() {
  if (!playing) return;
  const [first, ...others] = films;
  at = first.video.currentTime + first.reel.zero_s;
  for (const { video, reel } of others) { // two cameras, one time
    const want = at - reel.zero_s;
    if (Math.abs(video.currentTime - want) > 0.12 && !video.seeking) video.currentTime = Math.max(0, want);
    if (video.paused && !video.ended) video.play().catch(() => {});
  }
  told();
  if (first.video.ended) halt(); else requestAnimationFrame(run);
}

function step(by) {
  halt();
  const times = films.length ? films[0].reel.frames_s : [];
  if (!times.length) { seek(at + by * 0.1); return; }
  let here = 0; // the picture that is shown
  while (here + 1 < times.length && times[here + 1] <= at + 0.001) here += 1;
  seek(times[Math.max(0, Math.min(here + by, times.length - 1))]);
}

// -- what an assessor does

async function confirm() {
  const told = await tried(() => ask("review", posted()));
  if (!told) return;
  kept.removeItem(drafted(episode.trial));
  episode = null;
  await tried(() => load());
  say(queue.left ? told.said : `${told.said}; nothing else is in dispute: F finishes the review`);
}

function add() {
  const one = { at_ns: Math.round(at * 1e9), result: "success", cause: "" };
  operations.push(one);
  changed(one);
}

function turn() { // a success that was none, a loss that was one, or a candidate that stands now
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
  const row = rows[chosen];
  if (!row || !row.op) { say("this one does not stand; X lets it stand", true); return; }
  row.op.at_ns = Math.round(at * 1e9);
  changed(row.op);
}

function remove() {
  const row = rows[chosen];
  if (!row || !row.op) { say("this one does not stand", true); return; }
  operations = operations.filter((op) => op !== row.op);
  changed();
}

function again() {
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
  document.querySelector(".staged").textContent = `of ${episode.staged}`;
  $("moved").value = episode.moved;
  $("lost").value = episode.lost;
  $("why").value = "";
  $("unfit").textContent = "";
  remain();
  $("outcome").showModal();
  $("moved").select();
}

function remain() {
  const left = episode.staged - Number($("moved").value) - Number($("lost").value);
  $("remaining").textContent = left < 0 ? "more than were staged" : `so ${left} remain in the source tote`;
}

async function correct(event) {
  event.preventDefault();
  const body = { trial: episode.trial, moved: Number($("moved").value), lost: Number($("lost").value), why: $("why").value };
  try {
    const told = await ask("correct", body);
    $("outcome").close();
    queue = await ask("queue"); // sorted anew; this episode stays
    await take(episode.trial, { keep: true });
    say(told.said);
  } catch (error) { $("unfit").textContent = error.message; }
}

function finish() {
  if (queue.left) { say(`${queue.left} episodes in dispute are not reviewed yet; ENTER confirms one`, true); return; }
  halt();
  $("unfinished").textContent = "";
  $("finishing").showModal();
}

async function finished(event) {
  event.preventDefault();
  try {
    const told = await ask("finish", {});
    $("finishing").close();
    say(told.said);
  } catch (error) { $("unfinished").textContent = error.message; }
}

const KEYS = {
  Enter: confirm, " ": () => (playing ? halt() : play()), ArrowUp: () => jump(chosen - 1), ArrowDown: () => jump(chosen + 1),
  i: add, "+": add, x: turn, t: here, d: remove, Delete: remove, z: again, w: outcome, n: () => go(1), b: () => go(-1), f: finish,
  Home: () => { halt(); seek(0); }, End: () => { halt(); seek(episode.length_s); },
  s: () => { speed = (speed + 1) % SPEEDS.length; $("speed").textContent = `${SPEEDS[speed]}× real time`; for (const { video } of films) video.playbackRate = SPEEDS[speed]; },
};

function pressed(key, shift = false) {
  if (!episode) return;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const by = key === "ArrowLeft" ? -1 : 1;
    if (shift) { halt(); seek(at + by); } else step(by);
  } else (KEYS[key] || KEYS[key.toLowerCase()])?.();
}

document.addEventListener("keydown", (event) => {
  if ($("outcome").open || $("finishing").open || event.ctrlKey || event.metaKey || event.altKey) return;
  const known = event.key.startsWith("Arrow") || KEYS[event.key] || KEYS[event.key.toLowerCase()];
  if (!known || (event.repeat && ["Enter", "d", "i", "x", "+"].includes(event.key))) return;
  event.preventDefault();
  pressed(event.key, event.shiftKey);
});
for (const button of document.querySelectorAll("[data-key]")) {
  button.addEventListener("click", () => { button.blur(); pressed(button.dataset.key); });
}
$("scrub").addEventListener("input", () => { halt(); seek(Number($("scrub").value)); });
$("outcome").querySelector("form").addEventListener("submit", correct);
$("leave").addEventListener("click", () => $("outcome").close());
$("finishing").querySelector("form").addEventListener("submit", finished);
$("unready").addEventListener("click", () => $("finishing").close());
for (const id of ["moved", "lost"]) $(id).addEventListener("input", remain);

tried(async () => {
  const [trial, then] = JSON.parse(kept.getItem("at") || "[null, 0]");
  await load(decodeURIComponent(location.hash.slice(1)));
  if (episode && trial === episode.trial && performance.getEntriesByType("navigation")[0]?.type === "reload") seek(then);
});
