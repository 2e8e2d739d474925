// Numbers as people read them: three digits, a unit that fits, narrow spaces between both.
const NARROW = "\u202f";
const known = (value) => typeof value === "number" && Number.isFinite(value);

function digits(value, count = 3) {
  const before = Math.max(1, Math.floor(Math.log10(Math.abs(value) || 1)) + 1);
  return value.toFixed(Math.max(0, count - before));
}

const scaled = (value, units) => {
  // A value that rounds up to the next unit is shown in that unit.
  const [size, unit] = units.find(([least]) => Math.abs(value) >= least * 0.9995) ?? units.at(-1);
  return `${digits(value / size)}${NARROW}${unit}`;
};

const TIMES = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];
export const seconds = (value) => (!known(value) ? "–" : value === 0 ? `0${NARROW}s` : scaled(value, TIMES));

const RATES = [
  [1e9, "Gbit/s"],
  [1e6, "Mbit/s"],
  [1e3, "kbit/s"],
  [1, "bit/s"],
];
export const rate = (bytesPerSecond) =>
  scaled(bytesPerSecond * 8, RATES)
    .replace(/(\.\d*?)0+(?=\D)/, "$1")
    .replace(/\.(?=\D)/, "");

const SIZES = [
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
  [1, "B"],
];
export const bytes = (value) => (known(value) ? scaled(value, SIZES) : "–");

export const times = (value) => (known(value) ? `${value.toFixed(2)}×` : "–");
export const percent = (share, decimals = 1) =>
  known(share) ? `${(share * 100).toFixed(decimals)}${NARROW}%` : "–";
export const signed = (share) => `${share < 0 ? "−" : "+"}${percent(Math.abs(share))}`;
export const loss = (value) => (known(value) ? value.toPrecision(3) : "–");
const grouped = (value, decimals) =>
  value.toLocaleString("en", { maximumFractionDigits: decimals }).replaceAll(",", NARROW);
export const count = (value) => (known(value) ? grouped(value, 1) : "–");

// One unit for a whole axis.
export function timeUnit(most) {
  const [size, unit] = TIMES.find(([least]) => most >= least) ?? TIMES.at(-1);
  return { size, unit };
}
export const plain = (value) => grouped(Number(value.toPrecision(6)), 9);
