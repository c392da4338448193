// The charts: each draws one selection into one container, and says in words what it shows.

const SHADED = [0.5, 0.8, 0.95];

// ---- Forecasts, over time or over places -------------------------------------------------------

// The levels to draw: three to judge by, and the chosen one.
function shadedLevels(levels, chosen) {
  const found = SHADED.map((level) => levels.findIndex((l) => Math.abs(l - level) < 1e-9)).filter((i) => i >= 0);
  return [...new Set([...found, chosen])].sort((a, b) => b - a);
}

function drawForecast(container, line, options) {
  const width = roomIn(container);
  const value = forecastPanel(line, line.truth, valueLimits(line), { ...options, width, height: options.short ? 190 : 250 });
  const zero = line.truth.map(() => 0);
  const name = { ...options, label: differenceLabel(options.label), width, height: options.short ? 220 : 280, last: true };
  const difference = forecastPanel(line, zero, differenceLimits(line), name);
  value.setAttribute("aria-label", options.description);
  difference.setAttribute("aria-label", `The same, minus the truth. ${options.description}`);
  container.replaceChildren(value, difference);
}

function differenceLabel(label) {
  const [, unit] = splitLabel(label);
  return `forecast minus truth${unit ? ` (${unit})` : ""}`;
}

function forecastPanel(line, truth, limits, options) {
  const x = { limits: extent(line.x), label: options.last ? options.xLabel : "" };
  const chart = frame(options.width, options.height, x, { limits, label: options.label });
  const px = line.x.map(chart.sx);
  const centre = truth.map((t, i) => t + line.error[i]);
  const group = shape("g", { class: options.method });
  const far = 20 * (limits[1] - limits[0]);
  for (const band of line.bands) {
    const half = band.half.map((h) => Math.min(h, far));
    const ends = [-1, 1].map((side) => centre.map((c, i) => chart.sy(c + side * half[i])));
    group.append(shape("path", { class: "band", d: areaOf(px, ...ends) }));
    if (band.level !== options.level) continue;
    group.append(...unboundedStretches(chart, px, band.half));
    ends.forEach((end) => group.append(shape("path", { class: "edge", d: pathOf(px, end.map((e, i) => (band.half[i] === Infinity ? NaN : e))) })));
  }
  group.append(shape("path", { class: "mean", d: pathOf(px, centre.map(chart.sy)) }));
  const line0 = shape("path", { class: "truth", d: pathOf(px, truth.map(chart.sy)) });
  chart.inside.append(group, line0);
  markPosition(chart, options);
  if (options.choose) chooseByPointer(chart, line.x, options.choose);
  return chart.root;
}

function markPosition(chart, { now }) {
  if (now === undefined) return;
  const x = chart.sx(now);
  chart.inside.append(shape("path", { class: "now", d: `M${x},${chart.box.top}V${chart.box.bottom}` }));
}

// Hatching where the chosen interval has no ends.
function unboundedStretches(chart, px, half) {
  const { top, bottom } = chart.box;
  const strokes = [];
  for (const [from, to] of runs(half.map((h) => h === Infinity))) {
    const left = from ? (px[from - 1] + px[from]) / 2 : px[from];
    const right = to < px.length ? (px[to - 1] + px[to]) / 2 : px[to - 1];
    const id = `clip${identities++}`;
    const size = { x: left, y: top, width: Math.max(right - left, 1.5), height: bottom - top };
    let d = "";
    for (let x = left - (bottom - top); x < right; x += 9) d += `M${x.toFixed(1)},${bottom}L${(x + bottom - top).toFixed(1)},${top}`;
    strokes.push(shape("clipPath", { id }, shape("rect", size)), shape("path", { class: "hatch unbounded", d, "clip-path": `url(#${id})` }));
  }
  return strokes;
}

// Around the truth, and around the forecast as long as it stays near.
function valueLimits(line) {
  const [low, high] = extent(line.truth) ?? [0, 1];
  const range = high - low || Math.abs(high) || 1;
  const centre = line.truth.map((t, i) => t + line.error[i]);
  const widest = line.bands[0];
  const ends = widest ? [-1, 1].map((s) => centre.map((c, i) => c + s * widest.half[i])) : [];
  const [least, most] = extent(line.truth, centre, ...ends) ?? [low, high];
  return padded([Math.max(least, low - range), Math.min(most, high + range)]);
}

function differenceLimits(line) {
  const ends = line.bands.flatMap((b) => [-1, 1].map((s) => line.error.map((e, i) => e + s * b.half[i])));
  const [low, high] = extent([0], line.error, ...ends) ?? [-1, 1];
  return low === high ? [-1, 1] : padded([low, high]);
}

function chooseByPointer(chart, x, choose) {
  chart.root.addEventListener("click", (event) => {
    const box = chart.root.getBoundingClientRect();
    const at = ((event.clientX - box.left) * chart.root.viewBox.baseVal.width) / box.width;
    choose(nearestIndex(x.map(chart.sx), at));
  });
}

function nearestIndex(values, target) {
  let best = 0;
  values.forEach((v, i) => {
    if (Math.abs(v - target) < Math.abs(values[best] - target)) best = i;
  });
  return best;
}

function forecastLegend(container, line, options) {
  const chosen = line.bands.find((b) => b.level === options.level);
  const others = line.bands.filter((b) => b !== chosen).map((b) => formatPercent(b.level)).reverse();
  legend(container, [
    ["", KEYS.line("truth"), "truth"],
    [options.method, KEYS.line("mean"), line.std ? "mean forecast" : "forecast"],
    chosen && [options.method, KEYS.interval(), `calibrated ${formatPercent(chosen.level)} interval`],
    others.length && [options.method, KEYS.band(), `${others.join(", ")} intervals, shaded`],
    chosen?.half.includes(Infinity) && [options.method, KEYS.hatch(), "interval without ends"],
  ]);
}

// What the forecast says at one point, in words and numbers.
function pointReading(line, at, level) {
  const truth = line.truth[at];
  const error = line.error[at];
  const step = Math.abs(error);
  const parts = [
    "truth ", numberElement(truth, formatLike(truth, step)),
    ", forecast ", numberElement(truth + error, formatLike(truth + error, step)),
    " (", numberElement(error, `${error > 0 ? "+" : ""}${formatNumber(error)}`), ")",
  ];
  const band = line.bands.find((b) => b.level === level);
  if (!band) return [...parts, "."];
  const half = band.half[at];
  if (half === Infinity) return [...parts, `; the ${formatPercent(level)} interval has no ends here.`];
  const inside = Math.abs(error) <= half ? "holds the truth" : "misses the truth";
  return [...parts, `; the ${formatPercent(level)} interval, `, "±\u202f", numberElement(half, formatNumber(half)), `, ${inside}.`];
}

function forecastTable(line, options, indices) {
  const columns = [options.xLabel, "truth", line.std ? "mean forecast" : "forecast", "difference"];
  const band = line.bands.find((b) => b.level === options.level);
  if (line.std) columns.push("standard deviation");
  if (band) columns.push("lower end", "upper end");
  const rows = indices.map((i) => {
    const mean = line.truth[i] + line.error[i];
    const cells = [formatNumber(line.x[i], 4), line.truth[i], mean, line.error[i]];
    if (line.std) cells.push(line.std[i]);
    if (band) cells.push(mean - band.half[i], mean + band.half[i]);
    return cells;
  });
  return tableElement(options.description, columns, rows);
}

function evenly(count, most) {
  const size = Math.min(count, most);
  return [...new Set(Array.from({ length: size }, (_, i) => Math.round((i * (count - 1)) / Math.max(size - 1, 1))))];
}

// ---- Coverage ----------------------------------------------------------------------------------

function drawCoverage(container, coverage, names, labels, method, level) {
  const panels = names.map((name, i) => ({ label: labels[i], raw: coverage.raw[name], held: coverage.calibrated[name] }));
  panels.push({ label: "whole trajectories", held: coverage.simultaneous });
  container.replaceChildren(...panels.map(() => element("div", { class: "chart" })));
  panels.forEach((panel, i) => {
    const place = container.children[i];
    place.append(coveragePanel(place, panel, coverage.levels, method, level));
  });
}

function coveragePanel(place, { label, raw, held }, levels, method, level) {
  const width = Math.min(Math.max(place.clientWidth, 150), 330);
  const axis = { limits: [0, 1], percent: true };
  const chart = frame(width, width, { ...axis, label: "promised" }, { ...axis, label }, { left: 50 });
  const px = levels.map(chart.sx);
  const group = shape("g", { class: method });
  const diagonal = shape("path", { class: "nominal", d: `M${chart.sx(0)},${chart.sy(0)}L${chart.sx(1)},${chart.sy(1)}` });
  const now = shape("path", { class: "now", d: `M${chart.sx(level)},${chart.box.top}V${chart.box.bottom}` });
  const numbers = (shares) => shares.map((s) => (s === null ? NaN : s));
  if (raw) {
    const py = numbers(raw).map(chart.sy);
    group.append(shape("path", { class: "raw", d: pathOf(px, py) }));
    py.forEach((y, i) => Number.isFinite(y) && group.append(shape("rect", { class: "open", x: px[i] - 2.8, y: y - 2.8, width: 5.6, height: 5.6 })));
  }
  const py = numbers(held).map(chart.sy);
  group.append(shape("path", { class: "mean", d: pathOf(px, py) }));
  py.forEach((y, i) => Number.isFinite(y) && group.append(shape("circle", { class: "full", cx: px[i], cy: y, r: 3.2 })));
  chart.root.append(diagonal, now, group);
  const at = levels.indexOf(level);
  const before = raw ? `${formatPercent(raw[at])} before and ` : "";
  chart.root.setAttribute("aria-label", `${label}: at ${formatPercent(level)}, ${before}${formatPercent(held[at])} after calibration were inside.`);
  return chart.root;
}

function coverageReading(coverage, names, labels, level) {
  const at = coverage.levels.indexOf(level);
  if (at < 0) return [""];
  const parts = [`At ${formatPercent(level)}, before and after calibration: `];
  names.forEach((name, i) => {
    const [raw, held] = [coverage.raw[name][at], coverage.calibrated[name][at]];
    parts.push(`${i ? "; " : ""}${labels[i]} `, numberElement(raw, formatPercent(raw)), " and ", numberElement(held, formatPercent(held)));
  });
  const whole = coverage.simultaneous[at];
  return [...parts, ". Whole trajectories: ", numberElement(whole, formatPercent(whole)), "."];
}

function coverageTable(coverage, names, description) {
  const share = (value) => numberElement(value, formatPercent(value));
  const columns = ["promised", ...names.flatMap((n) => [`${n} before`, `${n} after`]), "whole trajectories"];
  const rows = coverage.levels.map((level, i) => [
    formatPercent(level),
    ...names.flatMap((n) => [share(coverage.raw[n][i]), share(coverage.calibrated[n][i])]),
    share(coverage.simultaneous[i]),
  ]);
  return tableElement(description, columns, rows);
}

// ---- Error against spread ----------------------------------------------------------------------

// Logarithms leave no place for zero, and the lowest hundredth would take up half of the picture.
function spreadPoints(forecast) {
  const pairs = [];
  forecast.std.forEach((std, i) => {
    const error = Math.abs(forecast.error[i]);
    if (std > 0 && error > 0 && Number.isFinite(std) && Number.isFinite(error)) pairs.push([std, error]);
  });
  return pairs;
}

function binSpread(pairs) {
  const limits = [0, 1].map((k) => {
    const sorted = Float64Array.from(pairs, (p) => p[k]).sort();
    return [quantile(sorted, 0.01), sorted[sorted.length - 1] * 1.0001];
  });
  const columns = 28;
  const rows = 22;
  const [place, level] = limits.map((limit, k) => scaleOf(limit, [0, k ? rows : columns], true));
  const clamp = (v, top) => Math.min(Math.max(Math.floor(v), 0), top - 1);
  const counts = Array.from({ length: columns }, () => new Array(rows).fill(0));
  const errors = Array.from({ length: columns }, () => []);
  for (const [std, error] of pairs) {
    const column = clamp(place(std), columns);
    counts[column][clamp(level(error), rows)] += 1;
    errors[column].push(error);
  }
  const edges = Array.from({ length: columns + 1 }, (_, i) => limits[0][0] * (limits[0][1] / limits[0][0]) ** (i / columns));
  const medians = errors.map((list) => (list.length >= 5 ? quantile(list.sort((a, b) => a - b), 0.5) : NaN));
  return { limits, counts, rows, columns, edges, medians, sizes: errors.map((e) => e.length) };
}

function drawSpread(container, bins, label, method, description) {
  const width = roomIn(container);
  const [x, y] = bins.limits.map((limits) => ({ limits, log: true }));
  const chart = frame(width, Math.min(380, width * 0.75 + 60), { ...x, label: `spread of ${label}` }, { ...y, label: `error of ${label}` });
  const group = shape("g", { class: method });
  const most = Math.max(...bins.counts.flat());
  const { box } = chart;
  const [w, h] = [(box.right - box.left) / bins.columns, (box.bottom - box.top) / bins.rows];
  bins.counts.forEach((column, i) => column.forEach((count, j) => {
    if (!count) return;
    const at = { x: box.left + i * w, y: box.bottom - (j + 1) * h, width: w, height: h };
    group.append(shape("rect", { class: "cell", "fill-opacity": (0.08 + 0.87 * Math.sqrt(count / most)).toFixed(3), ...at }));
  }));
  const line = bins.limits[0].map((v) => `${chart.sx(v)},${chart.sy(v)}`).join("L");
  const px = bins.edges.slice(1).map((e, i) => chart.sx(Math.sqrt(e * bins.edges[i])));
  const py = bins.medians.map(chart.sy);
  chart.inside.append(group, shape("path", { class: "nominal", d: `M${line}` }), shape("path", { class: "median", d: pathOf(px, py) }));
  py.forEach((v, i) => Number.isFinite(v) && chart.inside.append(shape("circle", { class: "dot", cx: px[i], cy: v, r: 4 })));
  chart.root.setAttribute("aria-label", description);
  container.replaceChildren(chart.root);
}

function spreadTable(bins, description) {
  const rows = bins.medians.flatMap((median, i) => (
    bins.sizes[i] ? [[`${formatNumber(bins.edges[i], 3)} to ${formatNumber(bins.edges[i + 1], 3)}`, element("span", {}, String(bins.sizes[i])), median]] : []
  ));
  return tableElement(description, ["spread", "points", "median error"], rows);
}

// ---- Laws --------------------------------------------------------------------------------------

function lawSeries(packed) {
  if (!packed) return null;
  const times = Array.from(decode(packed.times));
  const values = decode(packed.values);
  const rows = Array.from({ length: packed.rows }, (_, r) => Array.from(values.subarray(r * times.length, (r + 1) * times.length)));
  return { times, rows };
}

function drawEnergy(container, series, timeLabel, method, name) {
  const [low, median, high] = series.rows;
  const limits = extent([0], low, median, high);
  const y = { limits: limits[0] === limits[1] ? [-1, 1] : padded(limits), label: "dE/dt (energy range / model time)" };
  const chart = frame(roomIn(container, 0.48), 250, { limits: extent(view.times), label: timeLabel }, y);
  const px = series.times.map(chart.sx);
  chart.inside.append(
    shape("path", { class: "truth", d: `M${chart.box.left},${chart.sy(0)}H${chart.box.right}` }),
    shape("g", { class: method },
      shape("path", { class: "band", d: areaOf(px, low.map(chart.sy), high.map(chart.sy)) }),
      // Rounding jumps from record to record: outlines and a thick line would cover everything.
      shape("path", { class: "edge", d: pathOf(px, median.map(chart.sy)) })),
  );
  const largest = Math.max(...[...low, ...high].map(Math.abs).filter(Number.isFinite));
  const single = low.every((rate, i) => rate === high[i]);
  const who = single ? `${name} keeps` : `95\u00a0% of the samples of ${name} keep`;
  const parts = [`At each time of the first test trajectory ${who} dE/dt within ±\u202f`, numberElement(largest), "."];
  chart.root.setAttribute("aria-label", parts.map((p) => p.textContent ?? p).join(""));
  container.replaceChildren(chart.root);
  return [...parts, single ? " Dashed: zero." : " Band: those samples; line: their median; dashed: zero."];
}

function drawEntropy(container, series, timeLabel, method, name) {
  const [rates] = series.rows;
  const good = rates.map((r) => r > 0 && Number.isFinite(r));
  const limits = entropyLimits(rates.filter((_, i) => good[i]));
  const y = { limits, log: true, label: "smallest dS/dt (entropy / model time)" };
  const chart = frame(roomIn(container, 0.48), 250, { limits: extent(view.times), label: timeLabel }, y);
  const px = series.times.map(chart.sx);
  const py = rates.map((r, i) => (good[i] ? chart.sy(r) : NaN));
  chart.inside.append(shape("g", { class: method }, shape("path", { class: "mean", d: pathOf(px, py) })));
  // A logarithm has no place for these: crosses on the axis, and none is left out.
  const crosses = px.filter((_, i) => !good[i]).map((x) => crossAt(x, chart.box.bottom)).join("");
  if (crosses) chart.root.append(shape("path", { class: "cross", d: crosses }));
  container.replaceChildren(chart.root);
  const least = extent(rates)?.[0];
  const bad = good.filter((g) => !g).length;
  const parts = ["Smallest dS/dt of all samples of ", name, ": ", numberElement(least)];
  parts.push(bad ? `; × marks ${bad} of ${rates.length} times at which it is zero, negative or not finite.` : ", above zero at every time.");
  chart.root.setAttribute("aria-label", parts.map((p) => p.textContent ?? p).join(""));
  return parts;
}

function entropyLimits(values) {
  const found = extent(values);
  if (!found) return [0.1, 10];
  const [low, high] = [found[0] / 1.5, found[1] * 1.5];
  return high / low > 30 ? [low, high] : [low / 5, high * 5];
}
