// Epochs of every communicator as bars over time, with losses, faults, and what joined and left.

import { colour, colour_of } from "./colours.js";
import { Surface } from "./canvas.js";
import { clock } from "./format.js";

const events_max = 2000;
const listed = 30;
const lane_height = 20;

export class TimelineView {
  constructor(canvas, list, state) {
    this.surface = new Surface(canvas);
    this.list = list;
    this.state = state;
    this.events = [];
    this.last_index = 0;
    this.range_s = 600;
    this.pointer = null;
    this.touched = () => {};
    canvas.addEventListener("pointermove", (event) => this.#point([event.offsetX, event.offsetY]));
    canvas.addEventListener("pointerleave", () => this.#point(null));
  }

  #point(place) {
    this.pointer = place;
    this.touched(this);
  }

  add(events) {
    const fresh = events.filter((event) => event.index > this.last_index);
    if (fresh.length === 0) return;
    this.last_index = fresh.at(-1).index;
    this.events = [...this.events, ...fresh].slice(-events_max);
    for (const event of fresh.slice(-listed)) {
      const item = document.createElement("li");
      item.className = event.tone;
      const time = document.createElement("time");
      time.textContent = clock(event.time_ms, true);
      item.append(time, event.text);
      item.dataset.what = event.what;
      this.list.prepend(item);
    }
    while (this.list.children.length > listed) this.list.lastChild.remove();
  }

  clear() {
    this.events = [];
    this.last_index = 0;
    this.list.replaceChildren();
  }

  draw() {
    const context = this.surface.begin();
    const { width, height } = this.surface;
    const high = this.state.now();
    const first = this.events[0]?.time_ms ?? high - 6e4;
    const low =
      this.range_s > 0 ? Math.max(high - this.range_s * 1e3, Math.min(first, high - 2e4)) : Math.min(first, high - 2e4);
    const at = (time) => 4 + ((time - low) / (high - low)) * (width - 8);
    this.#draw_axis(context, low, high, at);
    const bars = this.#bars(low, high);
    const lanes = Math.max(1, Math.floor((height - 58) / lane_height));
    const shown = [...bars.keys()].slice(-lanes);
    shown.forEach((id, lane) => this.#draw_lane(context, bars.get(id), id, 38 + lane * lane_height, at));
    if (bars.size > shown.length) {
      context.fillStyle = colour("soft");
      context.fillText(`${bars.size - shown.length} older communicators are not shown`, 6, height - 20);
    }
    this.#draw_marks(context, low, at);
    return false;
  }

  #draw_axis(context, low, high, at) {
    const y = this.surface.height - 6;
    context.fillStyle = colour("soft");
    context.textAlign = "center";
    const step =
      [5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400].find((s) => (high - low) / 1e3 / s <= 7) ?? 604800;
    for (let time = Math.ceil(low / 1e3 / step) * step * 1e3; time <= high; time += step * 1e3) {
      const x = at(time);
      if (x > 30 && x < this.surface.width - 30) context.fillText(clock(time), x, y);
    }
    context.textAlign = "left";
  }

  // Epochs of each communicator that overlap the shown time.
  #bars(low, high) {
    const bars = new Map();
    for (const event of this.events) {
      if (!event.communicator) continue;
      const epochs = bars.get(event.communicator) ?? [];
      const epoch = event.epoch || (event.ranks > 0 ? 1 : 0); // a new communicator is in its first epoch
      const last = epochs.at(-1);
      if (last && last.end === null && (epoch > last.epoch || event.ranks === 0)) last.end = event.time_ms;
      if (epoch > 0 && event.ranks > 0) epochs.push({ epoch, ranks: event.ranks, start: event.time_ms, end: null });
      bars.set(event.communicator, epochs);
    }
    for (const [id, epochs] of bars) {
      const is_open = this.state.communicators.has(id);
      const seen = epochs
        .map((epoch) => ({ ...epoch, end: epoch.end ?? (is_open ? high : epoch.start) }))
        .filter((epoch) => epoch.end >= low);
      if (seen.length > 0) bars.set(id, seen);
      else bars.delete(id);
    }
    return bars;
  }

  #draw_lane(context, epochs, id, y, at) {
    for (const epoch of epochs) {
      const left = Math.max(4, at(epoch.start));
      const right = Math.max(left + 2, at(epoch.end));
      context.fillStyle = colour_of(id);
      context.globalAlpha = epoch.epoch % 2 ? 0.85 : 0.6;
      context.fillRect(left, y, right - left, lane_height - 4);
      context.globalAlpha = 1;
      context.save();
      context.beginPath();
      context.rect(left, y, right - left - 2, lane_height);
      context.clip();
      context.fillStyle = colour("panel");
      context.fillText(`${id}: epoch ${epoch.epoch}, ${epoch.ranks} ranks`, left + 4, y + 12);
      context.restore();
    }
  }

  #draw_marks(context, low, at) {
    let nearest = null;
    for (const event of this.events) {
      if (event.time_ms < low || !["loss", "fault", "slow", "joined", "left"].includes(event.what)) continue;
      const x = at(event.time_ms);
      const distance = this.pointer ? Math.abs(x - this.pointer[0]) : Infinity;
      if (distance < 8 && (!nearest || distance < nearest.distance)) nearest = { event, distance, x };
      draw_mark(context, event, x);
    }
    if (nearest) {
      context.fillStyle = colour("ink");
      const room = this.surface.width - context.measureText(nearest.event.text).width - 6;
      context.fillText(nearest.event.text, Math.max(4, Math.min(nearest.x + 8, room)), 12);
    }
  }
}

function draw_mark(context, event, x) {
  const y = 24;
  context.strokeStyle = context.fillStyle = colour(
    event.what === "loss" ? "bad" : ["fault", "slow"].includes(event.what) ? "warning" : "free",
  );
  context.lineWidth = 2;
  context.beginPath();
  if (event.what === "loss") {
    context.moveTo(x - 4, y - 4);
    context.lineTo(x + 4, y + 4);
    context.moveTo(x + 4, y - 4);
    context.lineTo(x - 4, y + 4);
    context.stroke();
  } else if (["fault", "slow"].includes(event.what)) {
    context.moveTo(x, y - 5);
    context.lineTo(x + 5, y + 4);
    context.lineTo(x - 5, y + 4);
    context.fill();
  } else {
    context.moveTo(x, y - 4);
    context.lineTo(x, y + 4);
    context.stroke();
  }
}
