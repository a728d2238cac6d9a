// Listens to the server and shows the state of the connection. The content is drawn by view.js.
import { draw, summary } from "./view.js";

const SILENCE = 35_000;  // several beats of the server, in ms
const BUS_SILENCE = 12_000;  // several checks of the bus
const RETRY = 2_000;
const NEWS = 10_000;  // between two announcements to a screen reader

const state = document.getElementById("state");
const problem = document.getElementById("problem");
const news = document.getElementById("news");
const parts = {};
let source = null;
let heard = Date.now();
let looked = Date.now();  // when we last heard that the bus answered
let lostSince = null;

function show() {
  const status = parts.status ?? { state: "connecting", problem: null };
  const lost = lostSince !== null;
  const silent = status.state === "following" && Date.now() - looked > BUS_SILENCE;
  const word = lost ? "lost" : silent ? "away" : status.state;
  const words = { lost: "no connection", away: "bus unavailable", following: "following", connecting: "connecting" };
  if (state.textContent !== words[word]) say(words[word]);
  state.textContent = words[word];
  state.className = "state " + word;
  const since = lost ? new Date(lostSince).toLocaleTimeString() : "";
  problem.textContent = lost
    ? `No connection to the server since ${since}; retrying. The content below is from before.`
    : silent
      ? `The bus has not answered since ${new Date(looked).toLocaleTimeString()}. The content below is from before.`
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
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, RETRY);  // refused; otherwise the browser retries
  });
  for (const name of ["stream", "status", "windows", "classes", "accuracy", "predictions", "letters", "lag"]) {
    source.addEventListener(name, (event) => {
      const before = parts.windows?.[0]?.number;
      parts[name] = JSON.parse(event.data);
      if (name === "status") looked = Date.now();
      draw(name, parts);
      if (name === "windows" && before !== undefined && parts.windows[0] && parts.windows[0].number !== before) {
        const { number, seen, unseen } = parts.windows[0];
        say(`Window ${number} closed: ${seen} classes seen, ${unseen} unseen.`);
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
  summary(parts);  // its "ago" changes
  show();
  if (waiting !== null && Date.now() - spoken >= NEWS) speak();
  if (Date.now() - heard > SILENCE) {
    lostSince ??= heard;
    listen();
  }
}, 1_000);
listen();
