// Draws the parts of the state. Anything from the stream is set as text, never as markup.

const byId = (id) => document.getElementById(id);
const percent = (fraction) => (fraction == null ? "–" : (100 * fraction).toFixed(1));
const score = (number) => number?.toFixed(3) ?? "–";
const both = (seen, unseen) => (seen === null && unseen === null ? "–" : `${percent(seen)} / ${percent(unseen)}`);
const whole = (number) => number?.toLocaleString("en").replaceAll(",", "\u202f") ?? "–";
const clock = (ms) => new Date(ms).toLocaleTimeString();
const NAMED = 80;  // the most classes that are shown by name

function el(tag, text, className = "", title = null) {
  const element = document.createElement(tag);
  if (text !== null) element.textContent = text;
  if (className) element.className = className;
  if (title !== null) element.title = title;
  return element;
}

function ago(ms) {
  const seconds = Math.max(0, Math.round((Date.now() - ms) / 1000));
  if (seconds < 90) return `${seconds} s ago`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}

function stream({ stream }) {
  byId("title").textContent = stream.prefix;
  document.title = `${stream.prefix}, live`;
  byId("where").textContent = stream.bus ? `Live from ${stream.bus}` : "Live";
}

export function summary({ windows }) {
  if (!windows) return;
  const last = windows[0];
  let text = "No window has closed yet. Describe classes and send features to see them here.";
  if (last) {
    const seen = `${whole(last.seen)} seen ${last.seen === 1 ? "class" : "classes"}`;
    text = `It knows ${seen} and ${whole(last.unseen)} unseen. Window ${last.number} closed ${ago(last.ms)}.`;
  }
  if (byId("summary").textContent !== text) byId("summary").textContent = text;
}

function headline({ windows, lag, accuracy }) {
  const last = windows?.[0];
  const waiting = lag ? lag.features + lag.attributes : null;
  const evaluated = accuracy?.generation == null ? "no evaluation yet"
    : `harmonic mean of ${both(accuracy.seen, accuracy.unseen)} seen / unseen, generation ${accuracy.generation}`;
  const figures = [
    ["Generation", whole(last?.number), last?.digest ? last.digest.slice(0, 12) : "none yet", ""],
    ["Seen", whole(last?.seen), "classes with examples", "seen"],
    ["Unseen", whole(last?.unseen), "classes with a description only", "unseen"],
    ["Accuracy", percent(accuracy?.harmonic), evaluated, ""],
    ["To learn", whole(waiting), "records waiting for the next window", ""],
    ["To answer", whole(lag?.samples), "samples waiting for a scorer", ""],
  ];
  const divisions = figures.map(([name, value, meaning, kind]) => {
    const division = el("div", null);
    division.append(el("dt", name), el("dd", value, "figure " + kind), el("dd", meaning, "meaning"));
    return division;
  });
  byId("headline").replaceChildren(...divisions);
}

function classes({ classes }) {
  const cells = byId("cells");
  const named = classes.shown.length <= NAMED;
  cells.classList.toggle("named", named);
  const there = new Map([...cells.children].map((cell) => [cell.dataset.id, cell]));
  const drawn = classes.shown.map(([id, seen]) => {
    const cell = there.get(id) ?? el("li", null);
    const state = seen ? "seen" : "unseen";
    cell.dataset.id = id;
    cell.title = `${id}, ${state}`;
    cell.replaceChildren(...(named ? [id, el("span", `, ${state}`, "aside")] : [el("span", cell.title, "aside")]));
    cell.classList.toggle("seen", seen);
    return cell;
  });
  const same = drawn.length === there.size && drawn.every((cell, i) => cells.children[i] === cell);
  if (!same) cells.replaceChildren(...drawn);
  byId("more").textContent = classes.more ? `and ${whole(classes.more)} more` : "";
  const changes = classes.changes.map(({ window, class_id, what }) => {
    const item = el("li", null);
    item.append(el("b", class_id), " ", el("span", what, what), ` in window ${window}`);
    return item;
  });
  if (!changes.length) changes.push(el("li", "None since this page was opened.", "meaning"));
  byId("changes").replaceChildren(...changes);
}

function accuracy({ accuracy }) {
  for (const name of ["evaluated", "prequential"]) {
    // Drawn by the server from numbers alone, and parsed as XML: it cannot contain markup from the stream.
    const box = byId(name);
    if (accuracy[name] === null) {
      box.replaceChildren(el("p", "Nothing yet.", "meaning"));
      continue;
    }
    const markup = accuracy[name].replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"');
    const drawing = new DOMParser().parseFromString(markup, "image/svg+xml").documentElement;
    const plot = el("div", null, "plot");
    plot.append(document.importNode(drawing, true));
    box.replaceChildren(plot);
  }
}

function table(id, head, rows) {
  const [thead, tbody] = byId(id).querySelectorAll("thead, tbody");
  if (rows.length && !thead.children.length) {
    const row = el("tr", null);
    const sides = rows[0]?.cells.map(([, kind = ""]) => (/text|cut/.test(kind) ? "left" : "")) ?? [];
    row.append(...head.map((name, i) => Object.assign(el("th", name, sides[i]), { scope: "col" })));
    thead.append(row);
  }
  const drawn = rows.map(({ cells, bad }) => {
    const row = el("tr", null, bad ? "bad" : "");
    row.append(...cells.map(([text, look = "", title = null], i) => el(i ? "td" : "th", text, look, title)));
    row.firstChild.scope = "row";
    return row;
  });
  if (!rows.length) {
    const row = el("tr", null);
    row.append(Object.assign(el("td", "None yet.", "text"), { colSpan: head.length }));
    drawn.push(row);
  }
  tbody.replaceChildren(...drawn);
}

function windows({ windows }) {
  const head = ["window", "closed", "kind", "described", "features", "seen", "unseen", "before learning: seen / unseen",
    "duplicates", "dead letters", "reason", "digest"];
  table("windows-table", head, windows.map((w) => ({
    bad: w.kind === "failed" || w.lost > 0,
    cells: [
      [whole(w.number)], [clock(w.ms)], [w.to === null ? w.kind : `${w.kind} to ${w.to}`],
      [whole(w.described)], [whole(w.features)], [whole(w.seen)], [whole(w.unseen)],
      [both(w.prequential_seen, w.prequential_unseen)],
      [whole(w.duplicate)], [whole(w.dead)],
      [w.error ?? (w.lost ? `${w.reason}; ${w.lost} records lost` : w.reason), "cut", w.error ?? w.reason],
      [w.digest ? w.digest.slice(0, 12) : "–", "", w.digest ?? ""],
    ],
  })));
}

const kind = ({ seen }) => (seen === null ? "" : seen ? "seen" : "unseen");

function predictions({ predictions }) {
  const head = ["request", "time", "class", "known by", "score", "margin", "generation"];
  table("predictions-table", head, predictions.map((p) => ({
    bad: p.status === "invalid",
    cells: [
      [p.request_id, "cut", p.request_id], [clock(p.ms)],
      [p.class_id ?? p.error ?? p.status, "cut " + kind(p), p.class_id ?? p.error ?? p.status],
      [{ seen: "examples", unseen: "description" }[kind(p)] ?? "–", kind(p)],
      [score(p.score)], [score(p.margin)], [whole(p.generation)],
    ],
  })));
}

function letters({ letters }) {
  table("letters-table", ["reason", "time", "detail"], letters.map((l) => ({
    bad: false,
    cells: [[l.reason, "cut"], [clock(l.ms)], [l.detail, "text"]],
  })));
}

const parts = { stream, classes, accuracy, windows, predictions, letters };

export function draw(name, state) {
  parts[name]?.(state);
  if (["windows", "lag", "accuracy"].includes(name)) headline(state);
  summary(state);
}
