"use strict";
// A table to sort and filter; its videos are loaded when they come on the screen, stand at their go, and all run at one
// speed. One whose pictures begin after go stands at its first and waits for its time.
const $ = (id) => document.getElementById(id);
const body = $("episodes").tBodies[0];
const rows = [...body.rows];
const videos = [...document.querySelectorAll("video")];
const rate = () => Number($("rate").value);
const go = (video) => Number(video.dataset.go); // below 0: so much before its first picture
const toGo = (video) => { video.currentTime = Math.max(0, go(video)) + 0.0005; video.playbackRate = rate(); };
const late = new Map(); // those that wait for their first picture
let onScreen = new Set();

// -- one speed

function pace() {
  const text = $("rate").selectedOptions[0].text;
  $("speed").textContent = `Every video at ${text} real time, from go`;
  for (const video of videos) video.playbackRate = rate();
}

function clock(video) {
  const since = video.currentTime - go(video);
  video.closest("figure").querySelector("output").textContent = `${since.toFixed(1)} s · ${$("rate").selectedOptions[0].text}`;
}

function ready(video) {
  if (video.src) return;
  video.src = video.dataset.src;
  video.preload = "auto";
  video.load();
}

for (const video of videos) {
  video.addEventListener("loadedmetadata", () => toGo(video));
  video.addEventListener("ratechange", () => { if (video.playbackRate !== rate()) video.playbackRate = rate(); });
  for (const kind of ["timeupdate", "seeked"]) video.addEventListener(kind, () => clock(video));
  video.addEventListener("error", () => { video.closest("figure").querySelector("output").textContent = "cannot be played here"; });
}

const watch = new IntersectionObserver((seen) => {
  for (const one of seen) {
    if (one.isIntersecting) { ready(one.target); onScreen.add(one.target); } else { one.target.pause(); forget(one.target); onScreen.delete(one.target); }
  }
  told();
}, { rootMargin: "100px" });
for (const video of videos) watch.observe(video);

function forget(video) {
  clearTimeout(late.get(video)?.timer);
  late.delete(video);
}

function start(video, wait_s) {
  forget(video);
  if (wait_s <= 0) { video.play().catch(() => {}); return; }
  const from = performance.now(), pace = rate();
  const timer = setTimeout(() => start(video, 0), 1000 * wait_s / pace);
  late.set(video, { timer, left: () => wait_s - pace * (performance.now() - from) / 1000 });
}

const going = () => late.size > 0 || [...onScreen].some((video) => !video.paused && !video.ended);
const told = () => { $("play").textContent = going() ? "pause" : "play those on the screen"; };
for (const kind of ["play", "pause", "ended"]) document.addEventListener(kind, told, true);

$("play").addEventListener("click", () => {
  if (going()) { for (const video of onScreen) { video.pause(); forget(video); } told(); return; }
  for (const video of onScreen) { toGo(video); start(video, -go(video)); } // together, each from its own go
});
$("rate").addEventListener("change", () => { pace(); onScreen.forEach(clock); for (const [video, one] of [...late]) start(video, one.left()); });

// -- sort and filter

function filter() {
  const wanted = [...document.querySelectorAll("[data-filter]")].filter((one) => one.value);
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  let left = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !(wanted.every((one) => row.dataset[one.dataset.filter] === one.value) && words.every((word) => text.includes(word)));
    row.style.display = row.hidden ? "none" : "";
    left += !row.hidden;
  }
  $("count").textContent = left === rows.length ? `${left} episodes` : `${left} of ${rows.length} episodes`;
}

function sort(heading) {
  const at = heading.cellIndex, number = heading.classList.contains("num");
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const one of heading.parentElement.cells) one.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = (row) => row.cells[at].dataset.value;
  const order = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === "" || y === "") return (x === "") - (y === ""); // what is empty comes last, either way
    const by = number ? Number(x) - Number(y) : x.localeCompare(y, "en", { numeric: true });
    return down ? -by : by;
  };
  body.append(...[...rows].sort(order));
}

for (const one of document.querySelectorAll("[data-filter]")) one.addEventListener("change", filter);
$("find").addEventListener("input", filter);
for (const button of document.querySelectorAll("[data-sort]")) button.addEventListener("click", () => sort(button.closest("th")));
pace();
