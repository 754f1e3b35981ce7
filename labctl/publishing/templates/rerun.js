"use strict";
// One episode of this site in Rerun's viewer. What is shown is named by the address, ?of=CAMPAIGN/EPISODE, and lies on
// this site; nothing else is fetched.
const $ = (id) => document.getElementById(id);
const say = (text) => { $("said").textContent = text; };
const PLAIN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\/[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const small = window.matchMedia("(max-width: 760px)").matches;

async function whole(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: status ${answer.status}`);
  const size = Number(answer.headers.get("content-length")), pieces = [];
  let held = 0;
  for (const reader = answer.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    held += value.length;
    say(`The viewer is loaded: ${(held / 1e6).toFixed(1)}${size >= held ? ` of ${(size / 1e6).toFixed(1)}` : ""} MB`);
  }
  return new Blob(pieces);
}

// Some hosts unpack what ends in .gz on the way, others do not.
async function unpacked(blob) {
  const [first, second] = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  if (first !== 0x1f || second !== 0x8b) return blob.arrayBuffer();
  return new Response(blob.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function show(of) {
  const file = `@RECORDINGS@/${of}.rrd`;
  $("name").textContent = of.replace("/", " · ");
  document.title = `${of.replace("/", " · ")} in Rerun`;
  $("file").href = file;
  $("file").hidden = false;
  const there = await fetch(file, { method: "HEAD" });
  if (!there.ok) throw new Error(`there is no recording of ${of} here`);
  await wasm_bindgen({ module_or_path: await unpacked(await whole("@CODE@")) });
  const hidden = small ? { blueprint: "Hidden", selection: "Hidden", time: "Expanded" } : {};
  const handle = new wasm_bindgen.WebHandle({
    url: [new URL(file, document.baseURI).href],
    hide_welcome_screen: true,
    panel_state_overrides: { top: "Hidden", ...hidden },
    enable_history: false,
    notebook: false,
    persist: false,
  });
  await handle.start($("screen"));
  const film = "VideoDecoder" in window ? "" : " Its videos need an https address: elsewhere this browser decodes none.";
  say(`Space plays and pauses; drag turns the cell, the wheel or two fingers zoom.${film}`);
  (function watch() {
    if (handle.has_panicked()) say(`The viewer has stopped: ${handle.panic_message()}. Load the page again.`);
    else setTimeout(watch, 1000);
  })();
}

const of = new URLSearchParams(location.search).get("of") || "";
if (location.protocol === "file:") {
  say("A browser opens recordings from a file host, not from a disk. In the folder of this site: python -m http.server");
} else if (!PLAIN.test(of) || of.includes("..")) {
  say("Which episode? Choose one in the table of every episode.");
} else if (typeof wasm_bindgen !== "function") {
  say("The viewer's program is not here, or is not the one that this page was written for.");
} else {
  show(of).catch((error) => say(`It cannot be shown: ${error.message || error}`));
}
