// Loss, samples/s and step time of training runs.

import { colour_of } from "./colours.js";
import { LineChart } from "./charts.js";
import { clock, count, duration, plural, significant } from "./format.js";

const points_max = 2000; // Of a run; more are thinned out.
const runs_max = 32;

export class TrainingView {
  constructor(list, canvases) {
    this.list = list;
    this.axis = "step";
    this.runs = new Map(); // id -> {run, series, shown, label, text}
    const format_x = (x) => (this.axis === "step" ? `step ${Math.round(x)}` : clock(x));
    this.charts = [
      ["loss", new LineChart(canvases.loss, "loss", significant, format_x)],
      ["samples_per_s", new LineChart(canvases.samples, "samples/s", count, format_x)],
      ["step_seconds", new LineChart(canvases.seconds, "step time", (s) => duration(s * 1e3), format_x)],
    ];
  }

  // The document of GET trainings, with whole series.
  replace(runs) {
    this.runs.clear();
    this.list.replaceChildren();
    this.add(runs);
  }

  // New points of runs.
  add(runs) {
    for (const run of runs) {
      let entry = this.runs.get(run.run);
      if (!entry) entry = this.#add_run(run);
      entry.run = run;
      append(entry.series, run.series);
      thin_out(entry.series);
      entry.text.textContent = describe(run);
    }
    while (this.runs.size > runs_max) {
      const [id, oldest] = this.runs.entries().next().value;
      oldest.label.parentElement.remove();
      this.runs.delete(id);
    }
    this.refresh();
  }

  refresh() {
    for (const [key, chart] of this.charts) {
      chart.series = [...this.runs.values()]
        .filter((entry) => entry.shown)
        .map((entry) => ({
          name: entry.run.name,
          colour: colour_of(entry.number),
          x: this.axis === "step" ? entry.series.step : entry.series.time_ms,
          y: entry.series[key].map((value) => value ?? NaN),
        }));
    }
  }

  #add_run(run) {
    if (this.runs.size === 0) this.list.replaceChildren();
    const item = document.createElement("li");
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    const text = document.createElement("span");
    label.append(box, swatch, text);
    item.append(label);
    this.list.append(item);
    const number = this.runs.size === 0 ? 0 : Math.max(...[...this.runs.values()].map((entry) => entry.number)) + 1;
    swatch.style.background = colour_of(number);
    const entry = {
      run,
      label,
      text,
      number,
      shown: true,
      series: { step: [], time_ms: [], loss: [], samples_per_s: [], step_seconds: [] },
    };
    box.addEventListener("change", () => {
      entry.shown = box.checked;
      this.refresh();
      this.touched();
    });
    this.runs.set(run.run, entry);
    return entry;
  }
}

// The whole series and the stream of new points overlap when a connection begins.
function append(series, added) {
  const last = series.time_ms.at(-1) ?? 0;
  added.time_ms.forEach((time, i) => {
    if (time > last) for (const key of Object.keys(series)) series[key].push(added[key][i]);
  });
}

// Drops every second point, so that a long run costs no more than a short one.
function thin_out(series) {
  if (series.step.length <= points_max) return;
  for (const key of Object.keys(series)) series[key] = series[key].filter((_, i) => i % 2 === 0);
}

function describe(run) {
  const loss = run.loss === null ? "loss not a number" : `loss ${significant(run.loss)}`;
  const repeated = run.repeated ? `, ${plural(run.repeated, "step")} repeated` : "";
  return (
    `${run.name}: ${run.strategy}, ${plural(run.ranks, "rank")}, step ${run.last_step}, ${loss}, ` +
    `${count(run.samples_per_s)} samples/s${repeated}`
  );
}
