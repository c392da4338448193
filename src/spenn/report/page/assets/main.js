// What is chosen, the controls that choose it, and what is drawn when it changes.

const results = readJson("results");
const view = readJson("view");
const byId = (id) => document.getElementById(id);

const state = {
  method: Math.max(view.methods.findIndex((m) => m.name === view.opening), 0),
  variable: 0,
  trajectory: 0,
  level: nearestIndex(view.levels, 0.9),
  position: null, // of the place, in its own units: variables may live at different places
  time: Math.floor((view.times.length - 1) / 2),
};

const current = {
  get forecast() { return forecastOf(state.method, state.variable); },
  get place() { return state.position === null ? Math.floor(current.forecast.places.length / 2) : nearestIndex(current.forecast.places, state.position); },
  get level() { return view.levels[state.level]; },
  get label() { return view.labels[state.variable]; },
  get name() { return view.names[state.variable]; },
  get method() { return view.methods[state.method]; },
  get entry() { return results.methods[current.method.name]; },
  get colour() { return `m${state.method}`; },
  get isField() { return current.forecast.places.length > 1; },
};

const forecasts = new Map();

function forecastOf(method, variable) {
  const key = `${method} ${variable}`;
  if (!forecasts.has(key)) forecasts.set(key, new Forecast(view, method, variable));
  return forecasts.get(key);
}

function choose(changes) {
  Object.assign(state, changes);
  render();
}

// ---- Controls ----------------------------------------------------------------------------------

function offer(id, texts, key) {
  const select = byId(id);
  select.append(...texts.map((text, i) => element("option", { value: i }, text)));
  select.value = String(state[key]);
  select.closest("[data-control]").hidden = texts.length < 2; // no choice of one
  select.addEventListener("change", () => choose({ [key]: Number(select.value) }));
}

function slide(id, count, pick) {
  const input = byId(id);
  input.max = String(Math.max(count - 1, 0));
  input.addEventListener("input", () => pick(Number(input.value)));
}

function startControls() {
  offer("method", view.methods.map((m) => m.name), "method");
  offer("variable", view.labels, "variable");
  offer("trajectory", Array.from({ length: view.trajectories }, (_, i) => String(i + 1)), "trajectory");
  slide("level", view.levels.length, (level) => choose({ level }));
  slide("time", view.times.length, (time) => choose({ time }));
  slide("profile-time", view.times.length, (time) => choose({ time }));
  slide("place", 1, (place) => choose({ position: current.forecast.places[place] }));
  byId("level-down").addEventListener("click", () => choose({ level: Math.max(state.level - 1, 0) }));
  byId("level-up").addEventListener("click", () => choose({ level: Math.min(state.level + 1, view.levels.length - 1) }));
  document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
  const calibrated = view.methods.some((m) => m.reach);
  document.querySelector("[data-control=level]").hidden = !calibrated || view.levels.length < 2;
}

function setSlider(id, value, text) {
  const input = byId(id);
  input.value = String(value);
  input.setAttribute("aria-valuetext", text);
  byId(`${id}-text`).textContent = text;
}

function showControls() {
  const { forecast } = current;
  byId("method").value = String(state.method);
  byId("variable").value = String(state.variable);
  byId("trajectory").value = String(state.trajectory);
  const noLevels = !current.method.reach;
  ["level", "level-down", "level-up"].forEach((id) => { byId(id).disabled = noLevels; });
  byId("level-down").disabled ||= state.level === 0;
  byId("level-up").disabled ||= state.level === view.levels.length - 1;
  if (view.levels.length) setSlider("level", state.level, noLevels ? MISSING : formatPercent(current.level));
  const when = formatPosition(view.timeLabel, view.times[state.time]);
  setSlider("time", state.time, when);
  setSlider("profile-time", state.time, when);
  document.querySelector("[data-control=place]").hidden = !current.isField;
  byId("place").max = String(forecast.places.length - 1);
  setSlider("place", current.place, formatPosition(view.placeLabel, forecast.places[current.place]));
  byId("selection").textContent = selectionText();
}

function selectionText() {
  const several = (count, text) => (count > 1 ? [text] : []);
  return [
    current.label,
    ...several(view.methods.length, current.method.name),
    ...several(view.trajectories, `trajectory ${state.trajectory + 1}`),
    ...(current.method.reach ? [formatPercent(current.level)] : []),
  ].join(" · ");
}

function describe(variable = state.variable) {
  const trajectory = view.trajectories > 1 ? `, test trajectory ${state.trajectory + 1}` : ", test trajectory";
  return `${view.labels[variable]} by ${current.method.name}${trajectory}`;
}

// ---- Drawing -----------------------------------------------------------------------------------

function bandLevels() {
  return current.method.reach ? shadedLevels(view.levels, state.level) : [];
}

function fanOf(variable) {
  const forecast = forecastOf(state.method, variable);
  const place = variable === state.variable ? current.place : placeIn(forecast);
  const where = forecast.places.length > 1 ? ` at ${formatPosition(view.placeLabel, forecast.places[place])}` : "";
  const line = forecast.overTime(state.trajectory, place, bandLevels());
  const options = {
    method: current.colour, level: current.level, label: view.labels[variable],
    xLabel: view.timeLabel, description: `${describe(variable)}${where}`,
  };
  return { line, options };
}

function placeIn(forecast) {
  return nearestIndex(forecast.places, current.forecast.places[current.place]);
}

function renderFan() {
  const { line, options } = fanOf(state.variable);
  drawForecast(byId("fan"), line, { ...options, now: view.times[state.time], choose: (time) => choose({ time }) });
  forecastLegend(byId("fan-legend"), line, options);
  const when = formatPosition(view.timeLabel, view.times[state.time]);
  say("fan-reading", `${capital(options.description)}, ${when}: `, ...pointReading(line, state.time, options.level));
  say("fan-note", fanNote(line));
  byId("fan-table").replaceChildren(forecastTable(line, options, evenly(view.times.length, 16)));
}

function fanNote(line) {
  if (!current.method.std) return `${current.method.name} is a single model: it states no uncertainty, and has no interval.`;
  if (!current.method.reach) return `${current.method.name} was not calibrated: there is no interval to show.`;
  const open = line.bands.find((b) => b.level === current.level).half.filter((h) => h === Infinity).length;
  if (!open) return "";
  const count = results.data?.calibration;
  const trajectories = count ? `${count} calibration trajectories` : "the calibration trajectories";
  return `At ${open} of ${line.x.length} times the ${formatPercent(current.level)} interval has no ends: ${trajectories} are too few to promise as much.`;
}

function renderFields() {
  if (byId("fields").hidden) return;
  const { forecast } = current;
  const layers = current.isField ? fieldLayers(forecast, state.trajectory, current.method.reach ? state.level : -1) : [];
  const maps = byId("maps");
  // Kept from one drawing to the next, so that the page below does not jump.
  while (maps.children.length > layers.length) maps.lastElementChild.remove();
  while (maps.children.length < layers.length) maps.append(element("figure"));
  const options = {
    timeLabel: view.timeLabel, placeLabel: view.placeLabel, label: current.label, time: state.time, place: current.place,
    choose: (time, place) => choose({ time, position: forecast.places[place] }),
  };
  layers.forEach((layer, i) => drawMap(maps.children[i], forecast, layer, options));
  const blank = layers.some((layer) => layer.values.some((v) => !Number.isFinite(v)));
  say("maps-note", !current.isField ? `${current.label} is one number, not a field.` : blank ? "Grey stripes: infinite, or not a number." : "");
  renderProfile(forecast);
}

function renderProfile(forecast) {
  const line = forecast.overPlaces(state.trajectory, state.time, bandLevels());
  const when = formatPosition(view.timeLabel, view.times[state.time]);
  const options = {
    method: current.colour, level: current.level, label: current.label, short: true,
    xLabel: view.placeLabel || "place", description: `${describe()}, over places at ${when}`,
    now: forecast.places[current.place], choose: (place) => choose({ position: forecast.places[place] }),
  };
  byId("profile").hidden = !current.isField;
  if (!current.isField) return;
  drawForecast(byId("profile"), line, options);
  forecastLegend(byId("profile-legend"), line, options);
  const where = formatPosition(view.placeLabel, forecast.places[current.place]);
  say("profile-reading", `${capital(describe())}, ${when}, ${where}: `, ...pointReading(line, current.place, options.level));
  byId("profile-table").replaceChildren(forecastTable(line, options, evenly(forecast.places.length, 29)));
}

function renderCoverage() {
  const { coverage } = current.entry;
  const charts = byId("coverage-charts");
  const parts = ["coverage-legend", "coverage-charts"].map(byId);
  parts.forEach((part) => { part.hidden = !coverage; });
  byId("coverage-table").parentElement.hidden = !coverage;
  if (!coverage) return say("coverage-reading", `${current.method.name} is a single model: it has no intervals to check.`);
  drawCoverage(charts, coverage, view.names, view.labels, current.colour, current.level);
  legend(byId("coverage-legend"), [
    [current.colour, KEYS.open(), "raw, before calibration"],
    [current.colour, KEYS.full(), "calibrated"],
    ["", KEYS.line("nominal"), "as promised"],
  ]);
  say("coverage-reading", ...coverageReading(coverage, view.names, view.labels, current.level));
  byId("coverage-table").replaceChildren(coverageTable(coverage, view.names, `Coverage of ${current.method.name}`));
}

const spreads = new Map();

function binsOf(method, variable) {
  const forecast = forecastOf(method, variable);
  const key = `${method} ${variable}`;
  if (!spreads.has(key)) {
    const pairs = forecast.std ? spreadPoints(forecast) : [];
    spreads.set(key, pairs.length > 20 ? binSpread(pairs) : null);
  }
  return spreads.get(key);
}

function renderSpread() {
  const bins = binsOf(state.method, state.variable);
  byId("scatter").hidden = !bins;
  byId("scatter-legend").hidden = !bins;
  byId("scatter-table").parentElement.hidden = !bins;
  if (!bins) return say("scatter-reading", `${current.method.name} has no spread to compare with.`);
  const correlation = current.entry.error_spread_correlation?.[current.name];
  const description = `Error against spread of ${current.label} by ${current.method.name}`;
  drawSpread(byId("scatter"), bins, current.label, current.colour, `${description}, rank correlation ${formatNumber(correlation)}.`);
  legend(byId("scatter-legend"), [
    [current.colour, KEYS.cells(), "stronger colour: more points"],
    ["", KEYS.median(), "median error"],
    ["", KEYS.line("nominal"), "error equal to spread"],
  ]);
  const drawn = bins.sizes.reduce((a, b) => a + b, 0);
  say(
    "scatter-reading", `${description}: rank correlation `, numberElement(correlation),
    " over all test trajectories. The chart holds ", numberElement(drawn, drawn.toLocaleString("en-GB")),
    " points; the lowest hundredth is drawn at the edges.",
  );
  byId("scatter-table").replaceChildren(spreadTable(bins, description));
}

function renderLaws() {
  drawLaws(state.method, byId("energy"), byId("entropy"), byId("energy-reading"), byId("entropy-reading"));
}

function drawLaws(method, energy, entropy, energyText, entropyText) {
  const packed = view.methods[method];
  const series = [lawSeries(packed.energy), lawSeries(packed.entropy)];
  const draws = [drawEnergy, drawEntropy];
  [[energy, energyText], [entropy, entropyText]].forEach(([container, text], i) => {
    container.replaceChildren();
    text.replaceChildren(...(series[i] ? draws[i](container, series[i], view.timeLabel, `m${method}`, packed.name) : ["No rates along one trajectory are known."]));
  });
}

function renderVerdict() {
  document.querySelectorAll(".verdict").forEach((verdict) => { verdict.hidden = Number(verdict.dataset.method) !== state.method; });
}

function render() {
  showControls();
  renderVerdict();
  renderFan();
  renderFields();
  renderCoverage();
  renderSpread();
  renderLaws();
}

// ---- Printing: every variable and every method, as paper has no controls -----------------------

let closed = [];

const SHEET = 680; // CSS pixels between the margins of A4

function beforePrint() {
  paper.width = SHEET;
  render();
  closed = [...document.querySelectorAll("details.data:not([open])")];
  closed.forEach((details) => { details.open = true; });
  view.labels.forEach((_, variable) => variable !== state.variable && printVariable(variable));
  view.methods.forEach((_, method) => method !== state.method && printLaws(method));
}

function printedFigure(parent, caption) {
  const chart = element("div", { class: "chart" });
  byId(parent).append(element("figure", {}, element("figcaption", {}, caption), chart));
  return chart;
}

function printVariable(variable) {
  const { line, options } = fanOf(variable);
  drawForecast(printedFigure("print-forecasts", options.description), line, { ...options, short: true });
  const bins = binsOf(state.method, variable);
  const label = view.labels[variable];
  if (bins) drawSpread(printedFigure("print-scatters", `Error against spread of ${label}`), bins, label, current.colour, label);
}

function printLaws(method) {
  const charts = [1, 2].map(() => printedFigure("print-laws", ""));
  drawLaws(method, ...charts, ...charts.map((c) => c.previousElementSibling));
}

function afterPrint() {
  paper.width = 0;
  render();
  closed.forEach((details) => { details.open = false; });
  document.querySelectorAll(".print-only").forEach((part) => part.replaceChildren());
}

// ---- Start -------------------------------------------------------------------------------------

function startToolbar() {
  const wide = matchMedia("(min-width: 44rem)");
  const toolbar = document.querySelector(".toolbar");
  const adapt = () => { toolbar.open = wide.matches; };
  wide.addEventListener("change", adapt);
  adapt();
  toolbar.hidden = [...document.querySelectorAll("[data-control]")].every((control) => control.hidden);
}

function redrawOnResize() {
  let width = document.body.clientWidth;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    render();
  }).observe(document.body);
}

startControls();
render();
startToolbar();
redrawOnResize();
addEventListener("beforeprint", beforePrint);
addEventListener("afterprint", afterPrint);
