// The arrays of the page: text to numbers, once each and only when asked for.

function readJson(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return new DataView(bytes.buffer);
}

// Every float16 there is, as not every browser can read them.
const HALVES = Float64Array.from({ length: 65536 }, (_, bits) => {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -14 * (fraction / 1024);
});

const READERS = {
  f2: [2, (view, at) => HALVES[view.getUint16(at, true)]],
  f4: [4, (view, at) => view.getFloat32(at, true)],
  f8: [8, (view, at) => view.getFloat64(at, true)],
};

const decoded = new Map();

function decode(packed) {
  if (!decoded.has(packed)) {
    const [size, read] = READERS[packed.type];
    const view = bytesOf(packed.data);
    const scale = packed.scale ?? 1;
    decoded.set(packed, Float64Array.from({ length: view.byteLength / size }, (_, i) => scale * read(view, size * i)));
  }
  return decoded.get(packed);
}

// One method and one variable: numbers at (trajectory, time, place).
class Forecast {
  constructor(view, method, variable) {
    const packed = view.methods[method];
    this.times = view.times;
    this.levels = view.levels;
    this.places = view.variables[variable].places ?? [0];
    this.truth = decode(view.variables[variable].truth);
    this.error = decode(packed.error[variable]);
    this.std = packed.std && decode(packed.std[variable]);
    this.reach = packed.reach && decode(packed.reach[variable]);
  }

  at(trajectory, time, place) {
    return (trajectory * this.times.length + time) * this.places.length + place;
  }

  // Half the width of the calibrated interval; infinite where nothing can be promised.
  half(level, trajectory, time, place) {
    const reach = this.reach[this.at(level, time, place)];
    if (reach === Infinity) return Infinity;
    const std = this.std[this.at(trajectory, time, place)];
    return std === 0 ? 0 : reach * std;
  }

  // Along one axis: what a chart of a forecast needs. `where` gives (time, place) of each point.
  line(trajectory, x, where, levels) {
    const indices = where.map(([time, place]) => this.at(trajectory, time, place));
    return {
      x,
      truth: indices.map((i) => this.truth[i]),
      error: indices.map((i) => this.error[i]),
      std: this.std && indices.map((i) => this.std[i]),
      bands: levels.map((level) => ({
        level: this.levels[level],
        half: where.map(([time, place]) => this.half(level, trajectory, time, place)),
      })),
    };
  }

  overTime(trajectory, place, levels) {
    return this.line(trajectory, this.times, this.times.map((_, time) => [time, place]), levels);
  }

  overPlaces(trajectory, time, levels) {
    return this.line(trajectory, this.places, this.places.map((_, place) => [time, place]), levels);
  }
}
