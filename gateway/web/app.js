// The page: connects the stream of events to the views.

import { Animation } from "./canvas.js";
import { LineChart, binary_steps } from "./charts.js";
import { ClusterState } from "./cluster_state.js";
import { ClusterView } from "./cluster_view.js";
import { colour, colour_of, connect_theme_button } from "./colours.js";
import { CommunicatorView, wait_sentences } from "./communicator_view.js";
import { bytes, clock, count, duration, plural, ranges } from "./format.js";
import { GatewayClient, Token } from "./gateway_client.js";
import { JournalView } from "./journal_view.js";
import { OperatorPanel } from "./operator_panel.js";
import { TimelineView } from "./timeline_view.js";
import { TrainingView } from "./training_view.js";

const rate_points_max = 480; // Two minutes of updates.
const tabs_max = 40;

const element = (id) => document.getElementById(id);
const token = new Token();
const client = new GatewayClient(token);
const state = new ClusterState();
const animation = new Animation();

const operator_panel = new OperatorPanel(state, client, token);
const cluster_view = new ClusterView(element("cluster"), state, (device, node) => operator_panel.select(device, node));
const communicator_view = new CommunicatorView(element("communicator"), element("operation-text"), client);
const timeline_view = new TimelineView(element("timeline"), element("timeline-list"), state);
const training_view = new TrainingView(element("runs"), {
  loss: element("chart-loss"),
  samples: element("chart-samples"),
  seconds: element("chart-seconds"),
});
const journal_view = new JournalView(
  {
    list: element("journal"),
    text: element("journal-text"),
    search: element("journal-search"),
    kind: element("journal-kind"),
    follow: element("journal-follow"),
    older: element("journal-older"),
    form: element("journal-form"),
  },
  client,
);
const operation_rate = new LineChart(element("rate-operations"), "operations/s", count, clock);
const byte_rate = new LineChart(element("rate-bytes"), "bytes/s received by ranks", bytes, clock, binary_steps);

const rates = { time: [], operations: [], bytes: [] };
let chosen_communicator = 0; // 0: the first

operator_panel.changed = () => {
  cluster_view.selected = operator_panel.device;
  cluster_view.selected_node = operator_panel.device ? "" : operator_panel.node;
  const communicator = state.devices.get(operator_panel.device)?.communicators[0];
  if (communicator !== undefined) choose(communicator);
  animation.touch(cluster_view);
};

const charts = [operation_rate, byte_rate, ...training_view.charts.map(([, chart]) => chart)];
for (const view of [cluster_view, communicator_view, timeline_view, ...charts]) {
  view.touched = () => animation.touch(view);
  animation.add(view);
}
training_view.touched = () => charts.forEach((chart) => animation.touch(chart));

function choose(id) {
  chosen_communicator = id;
  show_communicators();
}

function text_item(text, tone, time_ms) {
  const item = document.createElement("li");
  item.className = tone;
  if (time_ms) {
    const time = document.createElement("time");
    time.textContent = `for ${duration(Math.max(0, state.now() - time_ms))}`;
    item.append(time);
  }
  item.append(text);
  return item;
}

// One tab for each communicator, kept in place so that a click never misses.
function show_communicators() {
  const tabs = element("communicators");
  const ids = [...state.communicators.keys()].sort((a, b) => a - b).slice(-tabs_max);
  const chosen = state.communicators.get(chosen_communicator) ?? state.communicators.get(ids[0]);
  for (const tab of [...tabs.children]) if (!ids.includes(Number(tab.dataset.id))) tab.remove();
  ids.forEach((id, at) => {
    let tab = [...tabs.children].find((known) => Number(known.dataset.id) === id);
    if (!tab) {
      tab = document.createElement("button");
      tab.type = "button";
      tab.role = "tab";
      tab.dataset.id = id;
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      tab.append(swatch, document.createElement("span"));
      tab.addEventListener("click", () => choose(id));
      tabs.insertBefore(tab, tabs.children[at] ?? null);
    }
    const communicator = state.communicators.get(id);
    tab.firstChild.style.background = colour_of(id);
    tab.lastChild.textContent = communicator.name ? `${id} ${communicator.name}` : String(id);
    tab.setAttribute("aria-selected", String(communicator === chosen));
  });
  communicator_view.show(chosen ?? null);
  animation.touch(communicator_view);
  const waits = element("waits");
  if (!chosen) {
    element("communicator-text").textContent = "There is none now.";
    waits.replaceChildren();
    return;
  }
  element("communicator-text").textContent =
    `Communicator ${chosen.id}: ${plural(chosen.ranks.length, "rank")}, epoch ${chosen.epoch}, ` +
    `${chosen.policy}, ${chosen.state}; ${count(chosen.succeeded + chosen.in_mailbox)} operations succeeded, ${chosen.failed} failed`;
  const sentences = wait_sentences(chosen, ranges);
  waits.replaceChildren(
    ...(sentences.length === 0
      ? [text_item("No rank is waited for.", "")]
      : sentences.slice(0, 20).map(({ text, tone, started_ms }) => text_item(text, tone, started_ms))),
  );
}

function show_totals() {
  const { coordinator, rates: now, queues } = state.sections;
  const free = [...state.devices.values()].filter((device) => device.free).length;
  element("total-devices").textContent = `${state.devices.size} (${free} free)`;
  element("total-operations").textContent = count(now.operations_per_s);
  element("total-bytes").textContent = `${bytes(now.bytes_per_s)}/s`;
  element("total-queued").textContent = count(queues.stream_commands);
  element("routes").textContent = now.routes
    .map(({ route, bytes: total }) => `${route === "joint" ? "shared memory" : route}: ${bytes(total)}`)
    .join(", ");
  rates.time.push(state.now());
  rates.operations.push(now.operations_per_s);
  rates.bytes.push(now.bytes_per_s);
  for (const values of Object.values(rates)) if (values.length > rate_points_max) values.shift();
  operation_rate.series = [{ name: "operations/s", colour: colour("accent"), x: rates.time, y: rates.operations }];
  byte_rate.series = [{ name: "received", colour: colour("accent"), x: rates.time, y: rates.bytes }];
  const notice = element("notice");
  const trouble = coordinator.reachable
    ? state.sections.journal.trouble
    : `The coordinator is not reachable: ${coordinator.error}. Last known state.`;
  notice.hidden = !trouble;
  notice.textContent = trouble;
}

function show_all() {
  document.documentElement.dataset.version = state.version;
  show_totals();
  show_communicators();
  operator_panel.refresh();
  for (const view of [cluster_view, timeline_view, operation_rate, byte_rate]) animation.touch(view);
}

function show_connection(text, tone) {
  const connection = element("connection");
  connection.textContent = text;
  connection.className = tone;
}

// What the stream does not repeat: called once for each connection.
async function load_documents() {
  try {
    const [info, timeline, trainings] = await Promise.all(
      ["info", "timeline", "trainings"].map((name) => client.get(`api/v1/${name}`)),
    );
    operator_panel.allowed = info.operators;
    operator_panel.refresh();
    journal_view.show_kinds(info.record_kinds);
    timeline_view.clear();
    timeline_view.add(timeline.events);
    training_view.replace(trainings.runs);
    training_view.touched();
    await journal_view.load();
  } catch (error) {
    show_connection(error.message, "bad");
  }
}

function every(selector, attribute, chosen) {
  const buttons = [...document.querySelectorAll(`${selector} button`)];
  for (const button of buttons)
    button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      chosen(button.dataset[attribute]);
    });
}

every("#timeline-range", "seconds", (seconds) => {
  timeline_view.range_s = Number(seconds);
  animation.touch(timeline_view);
});
every("#training-axis", "axis", (axis) => {
  training_view.axis = axis;
  training_view.refresh();
  training_view.touched();
});
element("trace").addEventListener("click", download_trace);
new ResizeObserver(() => animation.touch_all()).observe(document.querySelector("main"));
connect_theme_button(element("theme"), () => {
  training_view.refresh();
  if (state.version > 0) show_communicators();
  animation.touch_all();
});
// The time line moves even when nothing happens.
setInterval(() => animation.touch(timeline_view), 1000);

// A link sends no token, so a protected trace is fetched and saved from memory.
async function download_trace(event) {
  if (!token.value) return;
  event.preventDefault();
  try {
    const trace = await client.get("api/v1/trace");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(trace)], { type: "application/json" }));
    link.download = "ringmaster-trace.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  } catch (error) {
    show_connection(error.message, "bad");
  }
}

client.follow({
  connected: load_documents,
  lost: (reason) => show_connection(`not connected: ${reason}`, "bad"),
  snapshot: (status) => {
    state.replace(status);
    show_connection(`live: ${state.sections.coordinator.address}`, "good");
    show_all();
  },
  delta: (delta) => {
    if (!state.apply(delta)) return false;
    show_all();
    return true;
  },
  journal: (event) => {
    journal_view.add(event);
    event.records.forEach((record) => record.event === "operation_ended" && communicator_view.ended(record));
    animation.touch(communicator_view);
  },
  timeline: (document) => {
    timeline_view.add(document.events);
    animation.touch(timeline_view);
  },
  training: (document) => {
    training_view.add(document.runs);
    training_view.touched();
  },
});
