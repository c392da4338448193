// Numbers as text, and the ticks of axes.

const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const MISSING = "–";

function powerOfTen(power) {
  return "10" + Array.from(String(power), (c) => SUPERSCRIPTS[c]).join("");
}

// A few significant digits, with a power of ten where plain ones would be long (as _text.py does).
function formatNumber(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return MISSING;
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const [mantissa, exponent] = Math.abs(value).toExponential(digits - 1).split("e");
  const power = Number(exponent);
  const sign = value < 0 ? "−" : "";
  if (power >= -3 && power < Math.max(4, digits)) {
    return sign + Math.abs(value).toFixed(Math.max(digits - 1 - power, 0));
  }
  return `${sign}${mantissa}·${powerOfTen(power)}`;
}

// A number written to the same decimal place as a smaller one that belongs to it.
function formatLike(value, step) {
  if (!Number.isFinite(value) || !Number.isFinite(step) || step === 0) return formatNumber(value, 5);
  const size = Math.max(Math.abs(value), Math.abs(step));
  const digits = Math.floor(Math.log10(size)) - Math.floor(Math.log10(Math.abs(step))) + 2;
  return formatNumber(value, Math.min(Math.max(digits, 3), 7));
}

function formatPercent(share) {
  if (share === null || share === undefined) return MISSING;
  return `${Number((100 * share).toPrecision(3))}\u00a0%`;
}

// Round numbers inside [low, high], about `count` of them, and how far they are apart.
function linearTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((s) => s * unit >= rough * 0.6); // rather one more than one
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return { step, ticks: Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => (first + i) * step) };
}

// Powers of ten inside [low, high], no more than `count` of them.
function logTicks(low, high, count) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const stride = Math.max(Math.ceil((last - first + 1) / Math.max(count, 2)), 1);
  const ticks = [];
  for (let power = last; power >= first; power -= stride) ticks.unshift(10 ** power);
  return ticks;
}

// 'time t (s)' taken apart: ['time t', 's'], or ['time t', ''] without a unit.
function splitLabel(label) {
  const [, words, unit] = /^(.*?)\s*(?:\(([^()]*)\))?$/s.exec(label);
  return [words, unit ?? ""];
}

// 'time t (s)' and 0.5 make 't = 0.5 s'; a label without a symbol or a unit does without.
function formatPosition(label, value) {
  const [words, unit] = splitLabel(label);
  const symbol = /^\S{2,} (\S(?: .*)?)$/s.exec(words)?.[1];
  return `${symbol ? `${symbol} = ` : ""}${formatNumber(value, 3)}${unit ? `\u00a0${unit}` : ""}`;
}

// The label of an axis whose numbers were divided by a power of ten.
function withPower(label, power) {
  if (!power) return label;
  const [words, unit] = splitLabel(label);
  return `${words} (${powerOfTen(power)}${unit ? `\u00a0${unit}` : ""})`;
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// What to divide the numbers of an axis by, so that few digits remain.
function axisPower(low, high) {
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (!(size > 0)) return 0;
  const power = Math.floor(Math.log10(size));
  return power > -3 && power < 4 ? 0 : power;
}

function tickTexts(ticks, step, power) {
  const decimals = Math.max(0, -Math.floor(Math.log10(step / 10 ** power) + 1e-9));
  return ticks.map((t) => {
    const text = (t / 10 ** power).toFixed(Math.min(decimals, 8));
    return text.replace("-", Number(text) === 0 ? "" : "−");
  });
}

// Smallest and largest finite value of several lists; undefined if there is none.
function extent(...lists) {
  let low = Infinity;
  let high = -Infinity;
  for (const list of lists) {
    for (const value of list) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : undefined;
}

function padded([low, high], share = 0.06) {
  const size = high - low || Math.abs(high) || 1;
  return [low - share * size, high + share * size];
}

function quantile(sorted, share) {
  return sorted[Math.min(Math.max(Math.round(share * (sorted.length - 1)), 0), sorted.length - 1)];
}
