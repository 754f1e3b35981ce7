"use strict";
// What the assessor's pages have in common: what is asked of labctl, and the videos of an episode at one time.

const $ = (id) => document.getElementById(id);
const SPEEDS = [1, 2, 4, 0.25, 0.5];
const inTab = (key) => `${location.pathname} ${key}`; // of this start alone: another assessor's may follow at this port
const kept = { // in this tab, for a reload
  getItem: (key) => sessionStorage.getItem(inTab(key)),
  setItem: (key, value) => sessionStorage.setItem(inTab(key), value),
  removeItem: (key) => sessionStorage.removeItem(inTab(key)),
};

let episode = null; // as the server tells it
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

// -- what a person meant, by the rule of the terminal (labctl/ui/console/presses.py)

const SEEN_MS = 300; // nobody reads a screen, or presses again on purpose, within less
const UNSEEN = "the screen has just changed: this did nothing; read it and press again";
let asking = 0; // what another screen follows
let changedAt = -Infinity; // since when the screen offers what it offers
let meantAt = -Infinity; // when it was last confirmed, by ENTER or a click

function shown() { changedAt = performance.now(); }

function offer(dialog) {
  dialog.showModal();
  shown();
}

async function waited(act) { // until it is answered no key does anything to the screen that it leaves
  asking += 1;
  try { return await act(); } finally { asking -= 1; shown(); }
}

// What writes: once, by a press that was meant for what is seen. `refused` is told why it does nothing.
async function once(event, refused, act) {
  const again = event.timeStamp - meantAt < SEEN_MS, unseen = event.timeStamp - changedAt < SEEN_MS;
  meantAt = event.timeStamp;
  if (asking) refused("labctl has not answered yet: this did nothing; wait for it");
  else if (again) refused(`pressed twice within ${SEEN_MS} ms: the second did nothing; press it again`);
  else if (unseen) refused(UNSEEN);
  else await waited(act);
}

// -- the videos

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

// -- keys

const TIME_KEYS = {
  " ": () => (playing ? halt() : play()),
  Home: () => { halt(); seek(0); }, End: () => { halt(); seek(episode.length_s); },
  s: () => { speed = (speed + 1) % SPEEDS.length; $("speed").textContent = `${SPEEDS[speed]}× real time`; for (const { video } of films) video.playbackRate = SPEEDS[speed]; },
};
const ONCE = ["Enter", "d", "i", "x", "+", "Backspace", "Delete"]; // not again and again while a key is held

// What each key and each button with data-key does, unless a dialog is open.
function keyed(keys) {
  const all = { ...TIME_KEYS, ...keys };
  const meant = (key) => all[key] || all[key.toLowerCase()];
  const pressed = (key, event) => {
    if (!episode) return;
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const by = key === "ArrowLeft" ? -1 : 1;
      if (event.shiftKey) { halt(); seek(at + by); } else step(by);
    } else if (asking && key !== "Enter" && !TIME_KEYS[key]) { // of the episode that is left
      if (!event.repeat) say(UNSEEN, true);
    } else meant(key)?.(event);
  };
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
    const known = ["ArrowLeft", "ArrowRight"].includes(event.key) || meant(event.key);
    if (!known || (event.repeat && ONCE.includes(event.key))) return;
    event.preventDefault();
    pressed(event.key, event);
  });
  for (const button of document.querySelectorAll("[data-key]:not(dialog)")) {
    button.addEventListener("click", (event) => { button.blur(); pressed(button.dataset.key, event); });
  }
  for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("close", shown);
  $("scrub").addEventListener("input", () => { halt(); seek(Number($("scrub").value)); });
}

// A form writes by `act`; why it does not stands in `wrong`.
function submits(dialog, wrong, act) {
  const refused = (why) => { $(wrong).textContent = why; };
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    once(event, refused, () => act().catch((error) => refused(error.message)));
  });
}

// A digit chooses in a form of choices, unless it is typed into a field of words.
function digits(dialog, choose) {
  dialog.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement && event.target.type !== "radio";
    if (!typing && /^[0-9]$/.test(event.key) && choose(Number(event.key))) event.preventDefault();
    if (event.key === "Enter" && event.target instanceof HTMLInputElement && event.target.type === "radio") {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  });
}
