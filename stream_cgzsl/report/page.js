// The theme button, the copy button, and reading a chart by pointer or keyboard.
"use strict";

function theme() {
  const button = document.getElementById("theme");
  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const show = () => button.setAttribute("aria-pressed", String(dark()));
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  button.hidden = false;
  show();
}

function enableCopy(button) {
  const code = button.parentElement.querySelector("code");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);  // without clipboard access, the reader copies by hand
      button.textContent = "Selected: press Ctrl-C";
    }
    setTimeout(() => { button.textContent = "Copy the command"; }, 3000);
  });
  button.hidden = false;
}

// A chart's table has its figures; a row's `data-at` is its horizontal position. An invisible slider makes the chart
// usable by keyboard and screen reader: its value is a row, its spoken text the figures of that row.
function makeReadable(figure) {
  const rows = [...figure.querySelectorAll("tr[data-at]")];
  const names = [...figure.querySelectorAll("thead th")].map((cell) => cell.textContent);
  if (!rows.length) return;
  for (const plot of figure.querySelectorAll(".plot")) addSlider(plot, rows, names);
}

function addSlider(plot, rows, names) {
  const drawing = plot.querySelector(".drawing");
  const cross = document.createElementNS("http://www.w3.org/2000/svg", "line");
  const slider = Object.assign(document.createElement("input"), {
    type: "range", className: "reader", min: 0, max: rows.length - 1, value: rows.length - 1,
  });
  const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
  tip.setAttribute("aria-hidden", "true");
  slider.setAttribute("aria-label", "Read " + drawing.getAttribute("aria-label"));

  const show = (row) => {
    const texts = [...row.cells].map((cell, i) => names[i] + " " + cell.textContent);
    slider.setAttribute("aria-valuetext", texts.join(", "));
    const first = document.createElement("strong");
    first.textContent = texts[0];
    tip.replaceChildren(first, ...texts.slice(1).flatMap((text) => [text, document.createElement("br")]));
    const position = Number(row.dataset.at) / 100;
    for (const [name, value] of [["class", "cross"], ["x1", position], ["x2", position], ["y1", 0], ["y2", 1]]) {
      cross.setAttribute(name, name === "class" ? value : value * 100 + "%");
    }
    drawing.append(cross);
    tip.hidden = false;
    const x = drawing.getBoundingClientRect().left - plot.getBoundingClientRect().left + position * drawing.clientWidth;
    const room = plot.clientWidth - tip.offsetWidth;
    tip.style.left = Math.max(0, Math.min(room, x + (x > plot.clientWidth / 2 ? -tip.offsetWidth - 12 : 12))) + "px";
    tip.style.top = "0";
  };
  const hide = () => {
    tip.hidden = true;
    cross.remove();
  };
  const nearest = (event) => {
    const box = drawing.getBoundingClientRect();
    const at = (100 * (event.clientX - box.left)) / box.width;
    const distance = (row) => Math.abs(Number(row.dataset.at) - at);
    show(rows.reduce((best, row) => (distance(row) < distance(best) ? row : best)));
  };
  plot.addEventListener("pointermove", nearest);
  plot.addEventListener("pointerdown", nearest);
  plot.addEventListener("pointerleave", hide);
  slider.addEventListener("input", () => show(rows[slider.value]));
  slider.addEventListener("focus", () => show(rows[slider.value]));
  slider.addEventListener("blur", hide);
  plot.prepend(slider);
  plot.append(tip);
}

for (const title of document.querySelectorAll(".drawing > title")) {
  title.parentElement.setAttribute("aria-label", title.textContent);  // a browser shows titles over our tooltips
  title.remove();
}
theme();
document.querySelectorAll(".copy").forEach(enableCopy);
document.querySelectorAll("figure.chart").forEach(makeReadable);
