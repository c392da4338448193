// Elements, scales, axes and paths. Text always goes in as text, never as markup.

const SVG = document.getElementById("drawing").namespaceURI;
let identities = 0;

function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function shape(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// Room for a chart: that of its container, or of a sheet of paper while printing.
const paper = { width: 0 };

function roomIn(container, share = 1) {
  return paper.width ? paper.width * share : Math.max(container.clientWidth, 280);
}

// A number with the exact value behind it.
function numberElement(value, text = formatNumber(value)) {
  const exact = Number.isFinite(value) ? String(value) : "";
  return element("span", { class: "number", "data-value": exact }, text);
}

function scaleOf([low, high], [from, to], log = false) {
  const place = log ? Math.log10 : (v) => v;
  const start = place(low);
  const factor = (to - from) / (place(high) - start || 1);
  return (value) => from + factor * (place(value) - start);
}

// A path through points, broken where a number is missing.
function pathOf(x, y) {
  let path = "";
  let pen = false;
  for (let i = 0; i < x.length; i++) {
    const here = Number.isFinite(x[i]) && Number.isFinite(y[i]);
    if (here) path += `${pen ? "L" : "M"}${x[i].toFixed(1)},${y[i].toFixed(1)}`;
    pen = here;
  }
  return path;
}

// The area between two lines, in pieces where a number is missing.
function areaOf(x, low, high) {
  let path = "";
  for (const [from, to] of runs(x.map((_, i) => Number.isFinite(low[i]) && Number.isFinite(high[i])))) {
    const indices = Array.from({ length: to - from }, (_, i) => from + i);
    const there = indices.map((i) => `${x[i].toFixed(1)},${high[i].toFixed(1)}`);
    const back = indices.reverse().map((i) => `${x[i].toFixed(1)},${low[i].toFixed(1)}`);
    path += `M${[...there, ...back].join("L")}Z`;
  }
  return path;
}

// Stretches [from, to) in which a condition holds.
function runs(holds) {
  const found = [];
  for (let i = 0; i < holds.length; i++) {
    if (holds[i] && !holds[i - 1]) found.push([i, i + 1]);
    else if (holds[i]) found[found.length - 1][1] = i + 1;
  }
  return found;
}

// An empty chart with axes: `x` and `y` are {limits, label, log, percent, grid}. Drawn as wide as its container,
// so that text keeps its size on a phone.
function frame(width, height, x, y, options = {}) {
  const left = options.left ?? 54;
  const box = { left, right: width - (x.percent ? 24 : 16), top: options.top ?? 26, bottom: height - (x.label ? 40 : 22) };
  const sx = scaleOf(x.limits, [box.left, box.right], x.log);
  const sy = scaleOf(y.limits, [box.bottom, box.top], y.log);
  const clip = `clip${identities++}`;
  const area = { x: box.left, y: box.top, width: Math.max(box.right - box.left, 1), height: box.bottom - box.top };
  const inside = shape("g", { "clip-path": `url(#${clip})` });
  const axes = shape("g", {});
  axes.append(...yAxis(y, sy, box), ...xAxis(x, sx, box));
  const root = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  root.append(shape("defs", {}, shape("clipPath", { id: clip }, shape("rect", area))), axes, inside);
  return { root, inside, sx, sy, box };
}

function axisTicks({ limits: [low, high], log, percent }, room) {
  if (log) {
    const ticks = logTicks(low, high, room);
    return { ticks, texts: ticks.map((t) => powerOfTen(Math.round(Math.log10(t)))), power: 0 };
  }
  if (percent) {
    const ticks = room > 3 ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1];
    return { ticks, texts: ticks.map((t) => formatPercent(t)), power: 0 };
  }
  const power = axisPower(low, high);
  const { ticks, step } = linearTicks(low, high, room);
  return { ticks, texts: tickTexts(ticks, step, power), power };
}

// As much of a label as there is room for.
function shortened(text, room) {
  const most = Math.max(Math.floor(room / 6.8), 8);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function xAxis(x, sx, box) {
  const { ticks, texts, power } = axisTicks(x, Math.min(Math.max(Math.floor((box.right - box.left) / 80), 2), 6));
  const parts = [shape("path", { class: "axis", d: `M${box.left},${box.bottom}H${box.right}` })];
  ticks.forEach((tick, i) => {
    parts.push(shape("path", { class: "axis", d: `M${sx(tick)},${box.bottom}v4` }));
    parts.push(shape("text", { class: "tick", x: sx(tick), y: box.bottom + 17, "text-anchor": "middle" }, texts[i]));
  });
  if (x.label) {
    const middle = (box.left + box.right) / 2;
    parts.push(shape("text", { x: middle, y: box.bottom + 35, "text-anchor": "middle" }, shortened(withPower(x.label, power), box.right - box.left)));
  }
  return parts;
}

function yAxis(y, sy, box) {
  const { ticks, texts, power } = axisTicks(y, Math.max(Math.floor((box.bottom - box.top) / 40), 2));
  const parts = [shape("text", { class: "name", x: 0, y: box.top - 11 }, shortened(withPower(y.label, power), box.right))];
  ticks.forEach((tick, i) => {
    if (y.grid ?? true) parts.push(shape("path", { class: "grid", d: `M${box.left},${sy(tick)}H${box.right}` }));
    parts.push(shape("text", { class: "tick", x: box.left - 8, y: sy(tick) + 4, "text-anchor": "end" }, texts[i]));
  });
  return parts;
}

// What a line or an area means; the same strokes as in the chart.
function legend(container, items) {
  container.replaceChildren(...items.filter(Boolean).map(([method, draw, text]) => {
    const key = shape("svg", { width: 30, height: 16, viewBox: "0 0 30 16", "aria-hidden": "true", class: method }, ...draw);
    return element("span", {}, key, text);
  }));
}

const KEYS = {
  line: (name) => [shape("path", { class: name, d: "M1,8H29" })],
  band: () => [shape("rect", { class: "band", x: 1, y: 1, width: 28, height: 14 }), shape("rect", { class: "band", x: 1, y: 4, width: 28, height: 8 })],
  interval: () => [shape("rect", { class: "band", x: 1, y: 2, width: 28, height: 12 }), shape("path", { class: "edge", d: "M1,2H29M1,14H29" })],
  hatch: () => [shape("path", { class: "hatch", d: "M2,15L12,1M10,15L20,1M18,15L28,1" })],
  open: () => [shape("path", { class: "raw", d: "M1,8H29" }), shape("rect", { class: "open", x: 11.5, y: 4.5, width: 7, height: 7 })],
  full: () => [shape("path", { class: "mean", d: "M1,8H29" }), shape("circle", { class: "full", cx: 15, cy: 8, r: 4 })],
  cells: () => [0.2, 0.5, 0.95].map((o, i) => shape("rect", { class: "cell", "fill-opacity": o, x: 1 + 9.5 * i, y: 3, width: 9, height: 10 })),
  median: () => [shape("path", { class: "median", d: "M1,8H29" }), shape("circle", { class: "dot", cx: 15, cy: 8, r: 4 })],
};

function crossAt(x, y) {
  return `M${x - 4},${y - 4}l8,8m0,-8l-8,8`;
}

// A table of numbers, with the exact value of each.
function tableElement(caption, columns, rows) {
  const head = columns.map((c) => element("th", { scope: "col" }, c));
  const body = rows.map(([first, ...cells]) => element(
    "tr", {},
    element("th", { scope: "row" }, first),
    ...cells.map((cell) => element("td", {}, cell instanceof Node ? cell : numberElement(cell, formatNumber(cell, 4)))),
  ));
  const table = element("table", {}, element("caption", {}, element("span", {}, caption)), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
}

function say(id, ...parts) {
  const node = document.getElementById(id);
  node.replaceChildren(...parts);
  node.hidden = parts.every((part) => part === "");
}
