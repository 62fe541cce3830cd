// Line charts with several series on a canvas.

import { colour } from "./colours.js";
import { Surface } from "./canvas.js";

export class LineChart {
  // `format` turns values into text, `format_x` the horizontal ones.
  constructor(canvas, title, format, format_x, steps = decimal_steps) {
    this.surface = new Surface(canvas);
    this.title = title;
    this.format = format;
    this.format_x = format_x;
    this.steps = steps;
    this.series = []; // {name, colour, x: [], y: []}
    this.pointer = null;
    this.touched = () => {};
    canvas.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    canvas.addEventListener("pointerleave", () => this.#point(null));
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", title);
  }

  #point(x) {
    this.pointer = x;
    this.touched(this);
  }

  draw() {
    const context = this.surface.begin();
    const { width, height } = this.surface;
    const area = { left: 62, right: width - 8, top: 20, bottom: height - 18 };
    context.fillStyle = colour("soft");
    context.fillText(this.title, 2, 12);
    const points = this.series
      .flatMap((series) => series.x.map((x, i) => [x, series.y[i]]))
      .filter(([, y]) => Number.isFinite(y));
    if (points.length === 0) {
      context.fillText("no data yet", area.left, (area.top + area.bottom) / 2);
      return false;
    }
    let [low_x, high_x, low_y, high_y] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [x, y] of points) {
      low_x = Math.min(low_x, x);
      high_x = Math.max(high_x, x);
      low_y = Math.min(low_y, y);
      high_y = Math.max(high_y, y);
    }
    if (low_y > 0 && low_y < high_y * 0.6) low_y = 0;
    if (high_y === low_y) high_y = low_y + (Math.abs(low_y) || 1) * 0.1;
    if (high_x === low_x) high_x = low_x + 1;
    const at_x = (x) => area.left + ((x - low_x) / (high_x - low_x)) * (area.right - area.left);
    const at_y = (y) => area.bottom - ((y - low_y) / (high_y - low_y)) * (area.bottom - area.top);
    this.#draw_axes(context, area, { low_x, high_x, low_y, high_y, at_y });
    for (const series of this.series) draw_line(context, series, at_x, at_y);
    if (this.pointer !== null) this.#draw_reading(context, area, at_x);
    return false;
  }

  #draw_axes(context, area, { low_x, high_x, low_y, high_y, at_y }) {
    context.strokeStyle = colour("line");
    context.lineWidth = 1;
    context.fillStyle = colour("soft");
    context.textAlign = "right";
    for (const value of this.steps(low_y, high_y, 4)) {
      const y = Math.round(at_y(value)) + 0.5;
      context.beginPath();
      context.moveTo(area.left, y);
      context.lineTo(area.right, y);
      context.stroke();
      context.fillText(this.format(value), area.left - 5, y + 4);
    }
    context.fillText(this.format_x(high_x), area.right, area.bottom + 14);
    context.textAlign = "left";
    context.fillText(this.format_x(low_x), area.left, area.bottom + 14);
  }

  // The values below the pointer.
  #draw_reading(context, area, at_x) {
    const lines = [];
    let line_x = null;
    for (const series of this.series) {
      let best = -1;
      for (let i = 0; i < series.x.length; ++i)
        if (best < 0 || Math.abs(at_x(series.x[i]) - this.pointer) < Math.abs(at_x(series.x[best]) - this.pointer))
          best = i;
      if (best >= 0 && Number.isFinite(series.y[best])) {
        line_x = at_x(series.x[best]);
        lines.push([
          `${series.name} ${this.format(series.y[best])} at ${this.format_x(series.x[best])}`,
          series.colour,
        ]);
      }
    }
    if (line_x === null) return;
    context.strokeStyle = colour("soft");
    context.beginPath();
    context.moveTo(line_x, area.top);
    context.lineTo(line_x, area.bottom);
    context.stroke();
    const right = line_x > (area.left + area.right) / 2;
    context.textAlign = right ? "right" : "left";
    lines.slice(0, 8).forEach(([text, ink], i) => {
      context.fillStyle = ink;
      context.fillText(text, line_x + (right ? -6 : 6), area.top + 12 + 15 * i);
    });
    context.textAlign = "left";
  }
}

function draw_line(context, series, at_x, at_y) {
  context.strokeStyle = series.colour;
  context.lineWidth = 1.8;
  context.lineJoin = "round";
  context.beginPath();
  let pen_down = false;
  for (let i = 0; i < series.x.length; ++i) {
    if (!Number.isFinite(series.y[i])) {
      pen_down = false;
      continue;
    }
    if (pen_down) context.lineTo(at_x(series.x[i]), at_y(series.y[i]));
    else context.moveTo(at_x(series.x[i]), at_y(series.y[i]));
    pen_down = true;
  }
  context.stroke();
}

// Round values from low to high, at most `most` of them.
export function decimal_steps(low, high, most) {
  const raw = (high - low) / most;
  const scale = 10 ** Math.floor(Math.log10(raw));
  return multiples(
    [1, 2, 5, 10].map((factor) => factor * scale).find((step) => step >= raw),
    low,
    high,
  );
}

// The same in powers of two, for bytes.
export function binary_steps(low, high, most) {
  return multiples(2 ** Math.ceil(Math.log2((high - low) / most)), low, high);
}

function multiples(step, low, high) {
  const values = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step)
    values.push(Math.abs(value) < step * 1e-9 ? 0 : value);
  return values;
}
