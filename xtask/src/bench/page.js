"use strict";
// Draws the parts that the page holds. A chart is bars in groups; a click on a bar opens its group into parts.
const parts = JSON.parse(document.getElementById("data").textContent);
const SERIES = ["#2563eb", "#dc2626", "#f59e0b", "#8b5cf6", "#059669", "#db2777", "#0891b2", "#65a30d"];
const PIECES = ["#2563eb", "#93c5fd", "#f59e0b", "#dc2626", "#8b5cf6", "#9ca3af"];
const NOTES = {
  real: "Bars begin at zero. Click one to open it into its parts.",
  change: "Bars show the change against the base, and the largest change fills the chart. Bars to the good side of zero are better.",
};
let scale = location.hash.includes("change") ? "change" : "real";

const unique = (list) => [...new Set(list)];
const colours = new Map();
const colour = (series) => {
  if (!colours.has(series)) colours.set(series, SERIES[colours.size % SERIES.length]);
  return colours.get(series);
};

function make(name, attributes = {}, ...children) {
  const isShape = ["svg", "rect", "line", "text", "g", "title", "polyline", "circle"].includes(name);
  const node = isShape ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// 1234567 as 1.23M, 0.0234 as 0.0234.
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return (value / 1e6).toPrecision(3) + "M";
  if (size >= 1e4) return (value / 1e3).toPrecision(3) + "k";
  if (size >= 100) return value.toFixed(0);
  return String(Number(value.toPrecision(3)));
}
function percent(value) {
  if (Math.abs(value) < 1e-9) return "0%";
  return (value > 0 ? "+" : "") + (value * 100).toFixed(Math.abs(value) >= 0.1 ? 0 : 1) + "%";
}

function baseOf(chart, bar) {
  const { by, name } = chart.base;
  return chart.bars.find((other) => by === "series"
    ? other.series === name && other.group === bar.group
    : other.group === name && other.series === bar.series);
}

// What a bar shows: itself, or its change against the base.
function shown(chart, bar) {
  if (scale === "real") return bar.value;
  const base = baseOf(chart, bar);
  return base && base.value ? bar.value / base.value - 1 : 0;
}

// Round numbers that cover the values, at most five steps.
function ticks(low, high) {
  const step = [1, 2, 5].flatMap((n) => Array.from({ length: 24 }, (_, e) => n * 10 ** (e - 10)))
    .sort((a, b) => a - b).find((step) => (high - low) / step <= 5) || 1;
  const list = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) list.push(at);
  return list;
}

function draw(chart, opened, open) {
  const groups = unique(chart.bars.map((bar) => bar.group));
  const series = unique(chart.bars.map((bar) => bar.series));
  const isWide = groups.length * series.length > 40;
  const W = isWide ? 1100 : 480, H = 230, left = 54, right = 8, top = 14, bottom = 34;
  const values = chart.bars.map((bar) => shown(chart, bar)).filter(Number.isFinite);
  const high = Math.max(0, ...values) || (scale === "real" ? 1 : 0.01), low = Math.min(0, ...values);
  const y = (value) => top + (high - value) / (high - low || 1) * (H - top - bottom);
  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${chart.section}: ${chart.title}` });
  const written = scale === "real" ? short : percent;
  for (const at of ticks(low, high)) {
    svg.append(make("line", { class: Math.abs(at) < 1e-12 ? "zero" : "rule", x1: left, x2: W - right, y1: y(at), y2: y(at) }));
    svg.append(make("text", { x: left - 5, y: y(at) + 4, "text-anchor": "end" }, written(at)));
  }
  const step = (W - left - right) / groups.length, width = Math.min(46, step * 0.84 / series.length), gap = step - width * series.length;
  groups.forEach((group, g) => {
    const x = left + g * step + gap / 2;
    series.forEach((name, s) => {
      const bar = chart.bars.find((bar) => bar.group === group && bar.series === name);
      if (!bar || !Number.isFinite(bar.value)) return;
      const value = shown(chart, bar), from = y(Math.max(0, value)), to = y(Math.min(0, value));
      const isOpen = opened && opened.group === group && opened.series === name;
      const rect = make("rect", { class: "bar" + (isOpen ? " open" : ""), x: x + s * width, y: from, tabindex: 0, role: "button",
        width: Math.max(1, width - 1), height: Math.max(1, to - from), fill: colour(name), rx: 1.5 });
      const base = baseOf(chart, bar);
      const change = base && base !== bar && base.value ? `, ${percent(bar.value / base.value - 1)} against ${chart.base.name}` : "";
      rect.append(make("title", {}, `${name}, ${chart.axis} ${group}: ${short(bar.value)} ${chart.unit}${change}`));
      rect.addEventListener("click", () => open(bar));
      rect.addEventListener("keydown", (event) => { if (event.key === "Enter") open(bar); });
      svg.append(rect);
      if (width > 26) svg.append(make("text", { class: "value", x: x + (s + .5) * width, y: value < 0 ? to + 10 : from - 3, "text-anchor": "middle" }, written(value)));
    });
    const long = group.length * 6.2 > step;
    const at = { x: x + (step - gap) / 2, y: H - bottom + (long && g % 2 ? 27 : 15), "text-anchor": "middle" };
    svg.append(make("text", at, group));
  });
  return svg;
}

// Lines over a logarithmic axis; the values' axis is logarithmic too, where they are not changes.
function drawCurves(chart) {
  const series = unique(chart.bars.map((bar) => bar.series));
  const W = 480, H = 250, left = 54, right = 14, top = 14, bottom = 34;
  const at = (bar) => Math.log(Number(bar.group));
  const xs = chart.bars.map(at), first = Math.min(...xs), last = Math.max(...xs);
  const x = (value) => left + (value - first) / (last - first || 1) * (W - left - right);
  const values = chart.bars.map((bar) => shown(chart, bar)).filter(Number.isFinite);
  const isReal = scale === "real", written = isReal ? short : percent;
  const high = isReal ? Math.max(...values) * 1.2 : Math.max(0.01, ...values), low = isReal ? Math.min(...values) / 1.2 : Math.min(0, ...values);
  const place = isReal ? Math.log : (value) => value;
  const y = (value) => top + (place(high) - place(value)) / (place(high) - place(low) || 1) * (H - top - bottom);
  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${chart.section}: ${chart.title}` });
  for (const tick of isReal ? logarithmicTicks(low, high) : ticks(low, high)) {
    svg.append(make("line", { class: Math.abs(tick) < 1e-12 ? "zero" : "rule", x1: left, x2: W - right, y1: y(tick), y2: y(tick) }));
    svg.append(make("text", { x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, written(tick)));
  }
  const groups = unique(chart.bars.map((bar) => bar.group)).sort((a, b) => a - b);
  groups.forEach((group, g) => {
    if (groups.length > 6 && g % 2) return;
    svg.append(make("text", { x: x(Math.log(Number(group))), y: H - bottom + 16, "text-anchor": "middle" }, sized(Number(group))));
  });
  for (const name of series) {
    const bars = chart.bars.filter((bar) => bar.series === name && Number.isFinite(bar.value)).sort((a, b) => at(a) - at(b));
    const points = bars.map((bar) => `${x(at(bar))},${y(shown(chart, bar))}`).join(" ");
    svg.append(make("polyline", { points, fill: "none", stroke: colour(name), "stroke-width": 2, "stroke-linejoin": "round" }));
    for (const bar of bars) {
      const dot = make("circle", { cx: x(at(bar)), cy: y(shown(chart, bar)), r: 3.5, fill: colour(name) });
      dot.append(make("title", {}, `${name}, ${group(bar, chart)}: ${short(bar.value)} ${chart.unit}`));
      svg.append(dot);
    }
  }
  return svg;
}
const group = (bar, chart) => `${Number(bar.group).toLocaleString("en")} ${chart.axis}`;
// 16, 4k, 1M: powers of two by the names they go by.
function sized(count) {
  if (count >= 1 << 20) return `${count / (1 << 20)}M`;
  return count >= 1024 ? `${count / 1024}k` : String(count);
}
function logarithmicTicks(low, high) {
  const digits = high / low > 100 ? [1] : [1, 2, 5];
  return Array.from({ length: 20 }, (_, e) => digits.map((digit) => digit * 10 ** (e - 8))).flat().filter((tick) => tick >= low && tick <= high);
}

// Every bar of the opened bar's group, as one stack each, on one scale.
function openedPanel(chart, bar, close) {
  const bars = chart.bars.filter((other) => other.group === bar.group && other.parts.length);
  const names = unique(bars.flatMap((other) => other.parts.map((part) => part.name)));
  const sum = (other) => other.parts.reduce((total, part) => total + Math.max(0, part.value), 0);
  const largest = Math.max(...bars.map(sum), 1e-12);
  const button = make("button", { type: "button" }, "close");
  button.addEventListener("click", close);
  const table = make("table");
  for (const other of bars) {
    const stack = make("div");
    for (const part of other.parts) {
      const style = `width:${Math.max(0, part.value) / largest * 100}%;background:${PIECES[names.indexOf(part.name) % PIECES.length]}`;
      stack.append(make("span", { style, title: `${part.name}: ${short(part.value)} ${other.parts_unit}` }));
    }
    table.append(make("tr", other === bar ? { class: "chosen" } : {}, make("td", {}, other.series),
      make("td", {}, other.parts.map((part) => short(part.value)).join(" + ") + " " + other.parts_unit), make("td", { class: "stack" }, stack)));
  }
  const legend = make("div", { class: "legend" });
  names.forEach((name, n) => legend.append(make("span", {}, make("i", { style: `background:${PIECES[n % PIECES.length]}` }), name)));
  return make("div", { class: "opened" }, button, make("b", {}, `${chart.axis} ${bar.group}`), legend, table);
}

function figure(chart) {
  let opened = null;
  const node = make("figure");
  const open = (bar) => { opened = opened === bar ? null : bar; render(); };
  function render() {
    const series = unique(chart.bars.map((bar) => bar.series));
    const legend = make("div", { class: "legend" });
    series.forEach((name) => legend.append(make("span", {}, make("i", { style: `background:${colour(name)}` }), name)));
    const unit = scale === "real" ? `${chart.unit}, ${chart.better} is better` : `vs ${chart.base.name}, ${chart.better} is better`;
    node.replaceChildren(make("figcaption", {}, chart.title, make("span", {}, unit)), chart.drawing === "curves" ? drawCurves(chart) : draw(chart, opened, open), legend);
    if (opened && opened.parts.length) node.append(openedPanel(chart, opened, () => open(opened)));
  }
  render();
  node.addEventListener("scale", render);
  node.openFirst = () => open(chart.bars[0]);
  return node;
}

function page() {
  const main = document.getElementById("main"), nav = document.getElementById("parts");
  for (const part of parts) {
    nav.append(make("a", { href: "#" + part.part }, part.title));
    main.append(make("h2", { id: part.part }, part.title));
    const method = make("p", { class: "method" }, `${part.method} ${part.made}; ${part.machine}; ${part.command}. `);
    if (part.quick) method.append(make("span", { class: "quick" }, "A quick run: the figures show that it works, not how fast it is."));
    main.append(method);
    for (const section of unique(part.charts.map((chart) => chart.section))) {
      const charts = part.charts.filter((chart) => chart.section === section);
      const hasMany = (chart) => chart.bars.length > 40 || unique(chart.bars.map((bar) => bar.group)).length > 8;
      const isWide = charts.some((chart) => chart.drawing !== "curves" && hasMany(chart));
      main.append(make("h3", {}, section), make("div", { class: isWide ? "charts wide" : "charts" }, ...charts.map(figure)));
    }
  }
  if (!parts.length) main.append(make("p", {}, "Nothing has been measured yet: cargo xtask bench."));
}

function choose(next) {
  scale = next;
  for (const button of document.querySelectorAll("#scale button")) button.setAttribute("aria-pressed", String(button.dataset.scale === scale));
  document.getElementById("scale-note").textContent = NOTES[scale];
  for (const node of document.querySelectorAll("figure")) node.dispatchEvent(new Event("scale"));
}

page();
document.querySelectorAll("#scale button").forEach((button) => button.addEventListener("click", () => choose(button.dataset.scale)));
choose(scale);
if (location.hash.includes("open")) document.querySelectorAll("figure").forEach((node) => node.openFirst());
