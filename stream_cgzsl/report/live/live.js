// Listens to the stream and says how that goes. What is told is drawn by view.js.
import { draw, reading } from "./view.js";

const SILENCE = 35_000;  // several beats of the server
const BUS_SILENCE = 12_000;  // several looks at the bus
const AGAIN = 2_000;
const NEWS = 10_000;  // who listens to the page is told no more often than this

const state = document.getElementById("state");
const problem = document.getElementById("problem");
const news = document.getElementById("news");
const parts = {};
let source = null;
let heard = Date.now();
let looked = Date.now();  // when the bus last answered, as far as we were told
let lostSince = null;

function show() {
  const status = parts.status ?? { state: "connecting", problem: null };
  const lost = lostSince !== null;
  const silent = status.state === "following" && Date.now() - looked > BUS_SILENCE;
  const word = lost ? "lost" : silent ? "away" : status.state;
  const words = { lost: "no connection", away: "bus away", following: "following", connecting: "connecting" };
  if (state.textContent !== words[word]) say(words[word]);
  state.textContent = words[word];
  state.className = "state " + word;
  const since = lost ? new Date(lostSince).toLocaleTimeString() : "";
  problem.textContent = lost
    ? `The page lost its server at ${since} and goes on trying. What stands here is from before.`
    : silent
      ? `The bus has not answered since ${new Date(looked).toLocaleTimeString()}. What stands here is from before.`
      : status.problem ?? "";
  problem.hidden = !problem.textContent;
  document.body.classList.toggle("stale", lost || word === "away");
}

let spoken = 0;
let waiting = null;
function say(text) {
  waiting = text;
  if (Date.now() - spoken >= NEWS) speak();
}
function speak() {
  if (waiting === null) return;
  news.textContent = waiting;
  waiting = null;
  spoken = Date.now();
}

function listen() {
  source?.close();
  heard = Date.now();
  source = new EventSource("events");
  source.addEventListener("open", () => hear());
  source.addEventListener("beat", () => hear());
  source.addEventListener("error", () => {
    lostSince ??= Date.now();
    show();
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, AGAIN);  // refused; else it tries by itself
  });
  for (const name of ["stream", "status", "windows", "classes", "accuracy", "predictions", "letters", "lag"]) {
    source.addEventListener(name, (event) => {
      const before = parts.windows?.[0]?.number;
      parts[name] = JSON.parse(event.data);
      if (name === "status") looked = Date.now();
      draw(name, parts);
      if (name === "windows" && before !== undefined && parts.windows[0] && parts.windows[0].number !== before) {
        const { number, seen, unseen } = parts.windows[0];
        say(`Window ${number} closed: ${seen} classes learned, ${unseen} described.`);
      }
      hear();
    });
  }
}

function hear() {
  heard = Date.now();
  lostSince = null;
  show();
}

setInterval(() => {
  reading(parts);  // it says how long ago
  show();
  if (waiting !== null && Date.now() - spoken >= NEWS) speak();
  if (Date.now() - heard > SILENCE) {
    lostSince ??= heard;
    listen();
  }
}, 1_000);
listen();
