// Numbers, times and ids as text for people.

const byte_units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value) {
  let unit = 0;
  while (value >= 1024 && unit + 1 < byte_units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${significant(value)} ${byte_units[unit]}`;
}

// Three significant digits, and a suffix from a thousand on.
export function count(value) {
  for (const [limit, suffix] of [
    [1e9, " G"],
    [1e6, " M"],
    [1e4, " k"],
  ])
    if (Math.abs(value) >= limit) return significant(value / (suffix === " k" ? 1e3 : limit)) + suffix;
  return significant(value);
}

export function duration(milliseconds) {
  if (milliseconds < 1) return `${significant(milliseconds * 1e3)} us`;
  if (milliseconds < 1e3) return `${significant(milliseconds)} ms`;
  if (milliseconds < 12e4) return `${significant(milliseconds / 1e3)} s`;
  return milliseconds < 72e5 ? `${significant(milliseconds / 6e4)} min` : `${significant(milliseconds / 36e5)} h`;
}

export function significant(value) {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return digits > 6 ? value.toExponential(1) : String(Number(value.toFixed(digits)));
}

export function clock(time_ms, fraction = false) {
  const text = new Date(time_ms).toTimeString().slice(0, 8);
  return fraction ? `${text}.${String(Math.floor(time_ms % 1e3)).padStart(3, "0")}` : text;
}

// "0 to 5, 7 and 9" from sorted numbers.
export function ranges(numbers) {
  const parts = [];
  for (let i = 0; i < numbers.length;) {
    let j = i;
    while (j + 1 < numbers.length && numbers[j + 1] === numbers[j] + 1) ++j;
    parts.push(j > i + 1 ? `${numbers[i]} to ${numbers[j]}` : String(numbers[i]));
    i = j > i + 1 ? j + 1 : i + 1;
  }
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

export function plural(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
