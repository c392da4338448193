// Fields over time and place, as pictures with axes and colour bars.

// Stops of viridis (values) and magma (sizes): even in lightness, and clear to colour-blind readers.
const VIRIDIS = ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"];
const MAGMA = ["000004", "180f3d", "440f76", "721f81", "9e2f7f", "cd4071", "f1605d", "fd9668", "feca8d", "fcfdbf"];
const NOTHING = [128, 128, 128];

function colourTable(stops) {
  const parts = stops.map((s) => [0, 2, 4].map((i) => parseInt(s.slice(i, i + 2), 16)));
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (parts.length - 1);
    const low = Math.min(Math.floor(at), parts.length - 2);
    return parts[low].map((v, k) => Math.round(v + (parts[low + 1][k] - v) * (at - low)));
  });
}

const VALUES = colourTable(VIRIDIS);
const SIZES = colourTable(MAGMA);

// All but the most extreme values, a few of which would take the colours from the rest.
function colourLimits(values) {
  const sorted = Float64Array.from(values).filter(Number.isFinite).sort();
  if (!sorted.length) return [0, 1];
  return [quantile(sorted, 0.002), quantile(sorted, 0.998)];
}

// The maps of one forecast: what each is called, its numbers at (time, place) and its colours.
function fieldLayers(forecast, trajectory, level) {
  const size = forecast.times.length * forecast.places.length;
  const part = (values) => values.subarray(trajectory * size, (trajectory + 1) * size);
  const truth = part(forecast.truth);
  const error = part(forecast.error);
  const limits = colourLimits(truth);
  const layers = [
    { name: "truth", values: truth, limits, colours: VALUES },
    { name: forecast.std ? "mean forecast" : "forecast", values: truth.map((t, i) => t + error[i]), limits, colours: VALUES },
    { name: "absolute error", values: error.map(Math.abs), colours: SIZES },
  ];
  if (forecast.std) layers.push({ name: "standard deviation of samples", values: part(forecast.std), colours: SIZES });
  if (forecast.reach && level >= 0) {
    const places = forecast.places.length;
    const half = Float64Array.from({ length: size }, (_, i) => forecast.half(level, trajectory, Math.floor(i / places), i % places));
    layers.push({ name: `calibrated half-width, ${formatPercent(forecast.levels[level])}`, values: half, colours: SIZES });
  }
  return layers.map((layer) => ({ ...layer, limits: layer.limits ?? [0, colourLimits(layer.values)[1]] }));
}

function drawMap(figure, forecast, layer, options) {
  const width = Math.max(figure.clientWidth, 240);
  const height = 190;
  const times = forecast.times;
  const x = { limits: extent(times), label: options.timeLabel };
  const y = { limits: placeLimits(forecast.places), label: options.placeLabel || "place", grid: false };
  const chart = frame(width, height, x, y, { left: 46, top: 24 });
  const { box } = chart;
  const canvas = element("canvas", { "aria-hidden": "true" });
  paint(canvas, forecast, layer, Math.round(box.right - box.left), Math.round(box.bottom - box.top));
  const share = (part, whole) => `${(100 * part) / whole}%`;
  Object.assign(canvas.style, {
    left: share(box.left, width), top: share(box.top, height),
    width: share(box.right - box.left, width), height: share(box.bottom - box.top, height),
  });
  const at = [chart.sx(times[options.time]), chart.sy(forecast.places[options.place])];
  for (const kind of ["light", "dark"]) {
    chart.inside.append(shape("path", { class: `now ${kind}`, d: `M${at[0]},${box.top}V${box.bottom}M${box.left},${at[1]}H${box.right}` }));
  }
  chart.root.setAttribute("aria-label", mapDescription(layer, options.label));
  chart.root.addEventListener("click", (event) => {
    const bounds = chart.root.getBoundingClientRect();
    const scale = width / bounds.width;
    const px = (event.clientX - bounds.left) * scale;
    const py = (event.clientY - bounds.top) * scale;
    options.choose(nearestIndex(times.map(chart.sx), px), nearestIndex(forecast.places.map(chart.sy), py));
  });
  const caption = element("figcaption", {}, element("strong", {}, layer.name));
  figure.replaceChildren(caption, element("div", { class: "map chart" }, canvas, chart.root), colourBar(layer, width, options.label));
}

function placeLimits(places) {
  const [low, high] = extent(places);
  const margin = (high - low) / Math.max(2 * (places.length - 1), 1) || 0.5;
  return [low - margin, high + margin];
}

function mapDescription(layer, label) {
  const [low, high] = extent(layer.values) ?? [NaN, NaN];
  return `Map of the ${layer.name} of ${label} over time and place, from ${formatNumber(low, 3)} to ${formatNumber(high, 3)}.`;
}

// Every pixel takes the nearest time and place, so uneven ones are drawn where they are.
function paint(canvas, forecast, layer, width, height) {
  canvas.width = Math.max(width, 1);
  canvas.height = Math.max(height, 1);
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const columns = nearestAlong(forecast.times, extent(forecast.times), canvas.width);
  const rows = nearestAlong(forecast.places, placeLimits(forecast.places), canvas.height).reverse();
  const [low, high] = layer.limits;
  rows.forEach((place, j) => columns.forEach((time, i) => {
    const value = layer.values[time * forecast.places.length + place];
    const share = high > low ? (value - low) / (high - low) : 0;
    const blank = !Number.isFinite(value) && (Math.floor((i + j) / 3) % 2 ? [90, 90, 90] : NOTHING);
    const colour = blank || layer.colours[Math.min(Math.max(Math.round(255 * share), 0), 255)];
    image.data.set([...colour, 255], 4 * (j * canvas.width + i));
  }));
  context.putImageData(image, 0, 0);
}

function nearestAlong(values, [low, high], count) {
  return Array.from({ length: count }, (_, i) => nearestIndex(values, low + ((i + 0.5) / count) * (high - low)));
}

function colourBar(layer, width, label) {
  const box = { left: 46, right: width - 16 };
  const [low, high] = layer.limits;
  const limits = high > low ? [low, high] : [low, low + 1];
  const sx = scaleOf(limits, [box.left, box.right]);
  const { ticks, texts, power } = axisTicks({ limits }, 4);
  const root = shape("svg", { viewBox: `0 0 ${width} 50`, "aria-hidden": "true" });
  const steps = 64;
  for (let i = 0; i < steps; i++) {
    const colour = layer.colours[Math.round((255 * i) / (steps - 1))];
    root.append(shape("rect", { x: box.left + ((box.right - box.left) * i) / steps, y: 0, width: (box.right - box.left) / steps + 0.6, height: 10, fill: `rgb(${colour.join(",")})` }));
  }
  ticks.forEach((t, i) => {
    root.append(shape("path", { class: "axis", d: `M${sx(t)},10v4` }), shape("text", { class: "tick", x: sx(t), y: 27, "text-anchor": "middle" }, texts[i]));
  });
  root.append(shape("text", { x: (box.left + box.right) / 2, y: 45, "text-anchor": "middle" }, shortened(withPower(label, power), width - 62)));
  return element("div", { class: "chart" }, root);
}
