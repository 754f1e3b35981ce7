"use strict";
// A table to sort and filter; its videos are loaded when they come on the screen, stand at their go, and all run at one
// speed.
const $ = (id) => document.getElementById(id);
const body = $("episodes").tBodies[0];
const rows = [...body.rows];
const videos = [...document.querySelectorAll("video")];
const rate = () => Number($("rate").value);
let onScreen = new Set();

// -- one speed

function pace() {
  const text = $("rate").selectedOptions[0].text;
  $("speed").textContent = `Every video at ${text} real time, from go`;
  for (const video of videos) video.playbackRate = rate();
}

function clock(video) {
  const since = video.currentTime - Number(video.dataset.go);
  video.closest("figure").querySelector("output").textContent = `${since.toFixed(1)} s · ${$("rate").selectedOptions[0].text}`;
}

function ready(video) {
  if (video.src) return;
  video.src = video.dataset.src;
  video.preload = "auto";
  video.load();
}

for (const video of videos) {
  video.addEventListener("loadedmetadata", () => { video.currentTime = Number(video.dataset.go) + 0.0005; video.playbackRate = rate(); });
  video.addEventListener("ratechange", () => { if (video.playbackRate !== rate()) video.playbackRate = rate(); });
  for (const kind of ["timeupdate", "seeked"]) video.addEventListener(kind, () => clock(video));
  video.addEventListener("error", () => { video.closest("figure").querySelector("output").textContent = "cannot be played here"; });
}

const watch = new IntersectionObserver((seen) => {
  for (const one of seen) {
    if (one.isIntersecting) { ready(one.target); onScreen.add(one.target); } else { one.target.pause(); onScreen.delete(one.target); }
  }
  told();
}, { rootMargin: "100px" });
for (const video of videos) watch.observe(video);

const going = () => [...onScreen].some((video) => !video.paused && !video.ended);
const told = () => { $("play").textContent = going() ? "pause" : "play those on the screen"; };
for (const kind of ["play", "pause", "ended"]) document.addEventListener(kind, told, true);

$("play").addEventListener("click", () => {
  if (going()) { for (const video of onScreen) video.pause(); return; }
  for (const video of onScreen) { // together, each from its own go
    video.currentTime = Number(video.dataset.go) + 0.0005;
    video.playbackRate = rate();
    video.play().catch(() => {});
  }
});
$("rate").addEventListener("change", () => { pace(); onScreen.forEach(clock); });

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
