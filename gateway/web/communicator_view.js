// One communicator: its ranks, who sends to whom, and the round of the operation in flight.

import { colour, colour_of } from "./colours.js";
import { Surface } from "./canvas.js";
import { duration } from "./format.js";
import { place_ranks } from "./rank_graph.js";

const replay_round_ms = 450;
const labels_max = 64; // More ranks than this have marks without numbers, and no replay.

export class CommunicatorView {
  constructor(canvas, text, client) {
    this.surface = new Surface(canvas);
    this.text = text;
    this.client = client;
    this.communicator = null;
    this.schedules = new Map(); // "kind algorithm ranks" -> rounds, or null while it is not known
    this.places_of = "";
    this.places = [];
    this.replay = null; // the latest operation that ended: {key, label, started}
  }

  show(communicator) {
    if (communicator?.id !== this.communicator?.id) this.replay = null;
    this.communicator = communicator;
  }

  // An operation of the shown communicator that has ended. Most end between two updates, so it is replayed slowly.
  ended(record) {
    const operation = record.record.operation_ended;
    if (!this.communicator || record.communicator !== this.communicator.id || !operation) return;
    const now = performance.now();
    if (this.replay && now - this.replay.started < this.replay.length_ms) return;
    const kind = operation.kind.toLowerCase();
    const took = (Number(operation.ended_ns) - Number(operation.started_ns)) / 1e6;
    const rounds = this.#rounds(kind, operation.algorithm, Number(operation.world_size));
    const length_ms = rounds ? rounds.length * replay_round_ms : 900;
    const slowed = took > 0 && rounds ? `, slowed down ${Math.max(1, Math.round(length_ms / took))} times` : "";
    this.replay = {
      rounds,
      started: now,
      length_ms,
      label: `Replay of operation ${operation.sequence}: ${operation.algorithm} ${kind}, ${duration(took)}${slowed}`,
    };
  }

  draw(now) {
    const context = this.surface.begin();
    const communicator = this.communicator;
    if (!communicator) {
      this.text.textContent = "";
      return false;
    }
    const ranks = communicator.ranks.length;
    const topology = communicator.topology;
    const places_of = `${topology.shape} ${topology.algorithm} ${ranks} ${topology.edges.length} ${this.surface.width}`;
    if (places_of !== this.places_of) {
      this.places = place_ranks(topology.shape, ranks, topology.edges, this.surface.width, this.surface.height);
      this.places_of = places_of;
    }
    this.#draw_edges(context, topology.edges, "line", ranks > labels_max ? 0.35 : 1);
    const moves = this.#draw_operation(context, communicator, now);
    this.#draw_waits(context, communicator);
    communicator.ranks.forEach((rank, i) => this.#draw_rank(context, communicator, rank, this.places[i]));
    return moves;
  }

  // Draws the round in flight, or the replay of the latest operation. True if something moves.
  #draw_operation(context, communicator, now) {
    const running = communicator.operations.find((operation) => operation.phase === "running");
    const lowest = running && Math.min(...communicator.ranks.filter((rank) => rank.rounds).map((rank) => rank.round));
    if (running && Number.isFinite(lowest)) {
      const rounds = this.#rounds(running.kind, running.algorithm, running.world_size);
      const most = Math.max(...communicator.ranks.map((rank) => rank.rounds));
      this.text.textContent =
        `Operation ${running.sequence}: ${running.algorithm} ${running.kind}, slowest rank in round ` +
        `${Math.min(lowest + 1, most)} of ${most}`;
      this.#draw_round(context, rounds?.[lowest] ?? communicator.topology.edges, (now % 900) / 900);
      return true;
    }
    if (running?.shared_memory) {
      this.text.textContent =
        `Operation ${running.sequence}: ${running.kind} in shared memory, ` +
        `${running.ranks_done} of ${running.world_size} ranks have arrived`;
      this.#draw_hub(context, (now % 900) / 900);
      return true;
    }
    if (this.replay) {
      // A frame's time is that of its begin: an operation that ends in between is a little later.
      const past = Math.max(0, now - this.replay.started);
      this.text.textContent = this.replay.label;
      if (past < this.replay.length_ms) {
        if (this.replay.rounds)
          this.#draw_round(
            context,
            this.replay.rounds[Math.floor(past / replay_round_ms)],
            (past % replay_round_ms) / replay_round_ms,
          );
        else this.#draw_hub(context, past / this.replay.length_ms);
        return true;
      }
      return false;
    }
    this.text.textContent = communicator.operations_in_flight
      ? `${communicator.operations_in_flight} operations in flight`
      : "Idle";
    return false;
  }

  #draw_edges(context, edges, name, alpha) {
    context.strokeStyle = colour(name);
    context.globalAlpha = alpha;
    context.lineWidth = 1.2;
    context.beginPath();
    for (const [from, to] of edges) {
      if (this.places[from] && this.places[to]) {
        context.moveTo(this.places[from].x, this.places[from].y);
        context.lineTo(this.places[to].x, this.places[to].y);
      }
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  // Blocks on their way from rank to rank; `part` of the way is done.
  #draw_round(context, edges, part) {
    this.#draw_edges(context, edges, "accent", 0.9);
    context.fillStyle = colour("accent");
    for (const [from, to] of edges) {
      const [a, b] = [this.places[from], this.places[to]];
      if (!a || !b) continue;
      context.beginPath();
      context.arc(
        a.x + (b.x - a.x) * part,
        a.y + (b.y - a.y) * part,
        this.places.length > labels_max ? 2 : 4.5,
        0,
        2 * Math.PI,
      );
      context.fill();
    }
  }

  // Shared memory has no rounds: every rank's data goes to one place and back.
  #draw_hub(context, part) {
    const middle = { x: this.surface.width / 2, y: this.surface.height / 2 };
    const way = part < 0.5 ? part * 2 : 2 - part * 2;
    context.fillStyle = colour("accent");
    context.strokeStyle = colour("accent");
    context.lineWidth = 1;
    context.strokeRect(middle.x - 16, middle.y - 10, 32, 20);
    for (const place of this.places) {
      context.beginPath();
      context.arc(
        place.x + (middle.x - place.x) * way * 0.9,
        place.y + (middle.y - place.y) * way * 0.9,
        3,
        0,
        2 * Math.PI,
      );
      context.fill();
    }
  }

  #draw_waits(context, communicator) {
    const late = communicator.causes.length > 0;
    if (!late) return;
    context.strokeStyle = colour("bad");
    context.setLineDash([4, 4]);
    context.lineWidth = 1.5;
    communicator.ranks.forEach((rank, i) => {
      for (const other of rank.waits_for) {
        const [a, b] = [this.places[i], this.places[other]];
        if (a && b) {
          context.beginPath();
          context.moveTo(a.x, a.y);
          context.lineTo(b.x, b.y);
          context.stroke();
        }
      }
    });
    context.setLineDash([]);
  }

  #draw_rank(context, communicator, rank, place) {
    if (!place) return;
    const small = communicator.ranks.length > labels_max;
    const room = (2.4 * Math.min(this.surface.width, this.surface.height)) / communicator.ranks.length; // on the circle
    const radius = small ? 4 : Math.max(7, Math.min(14, room / 2));
    context.beginPath();
    context.arc(place.x, place.y, radius, 0, 2 * Math.PI);
    context.fillStyle = rank.lost ? colour("free") : colour_of(communicator.id);
    context.fill();
    const is_bad = communicator.causes.includes(rank.rank) || rank.silent_since_ms || rank.lost;
    if (is_bad || rank.slow_factor) {
      context.strokeStyle = colour(is_bad ? "bad" : "warning");
      context.lineWidth = 3;
      context.stroke();
    }
    if (small) return;
    if (rank.rounds) {
      context.strokeStyle = colour("ink");
      context.lineWidth = 2.5;
      context.beginPath();
      context.arc(
        place.x,
        place.y,
        radius + 4,
        -Math.PI / 2,
        -Math.PI / 2 + 2 * Math.PI * Math.min(1, rank.round / rank.rounds),
      );
      context.stroke();
    }
    context.fillStyle = colour("panel");
    context.textAlign = "center";
    if (radius < 10) context.font = context.font.replace("12px", "9px");
    context.fillText(String(rank.rank), place.x, place.y + (radius < 10 ? 3 : 4));
    context.textAlign = "left";
  }

  // Rounds of an algorithm; null until the gateway has answered, and for what it cannot draw.
  #rounds(kind, algorithm, ranks) {
    if (ranks > labels_max || ranks < 2) return null;
    const key = `${kind} ${algorithm} ${ranks}`;
    if (!this.schedules.has(key)) {
      this.schedules.set(key, null);
      if (this.schedules.size > 64) this.schedules.delete(this.schedules.keys().next().value);
      const query = new URLSearchParams({ kind, algorithm, ranks });
      this.client
        .get(`api/v1/schedule?${query}`)
        .then((schedule) => this.schedules.set(key, schedule.rounds.length > 0 ? schedule.rounds : null))
        .catch(() => {}); // Such as shared memory, which has no schedule.
    }
    return this.schedules.get(key) ?? null;
  }
}

// Sentences about the ranks that others wait for: [{text, tone}].
export function wait_sentences(communicator, ranges) {
  const sentences = [];
  const waiting_for = new Map();
  for (const rank of communicator.ranks)
    for (const other of rank.waits_for) waiting_for.set(other, [...(waiting_for.get(other) ?? []), rank.rank]);
  for (const cause of communicator.causes) {
    const victims = new Set();
    const open = [cause];
    while (open.length > 0)
      for (const victim of waiting_for.get(open.pop()) ?? [])
        if (victim !== cause && !victims.has(victim)) {
          victims.add(victim);
          open.push(victim);
        }
    const rank = communicator.ranks.find((known) => known.rank === cause);
    const numbers = [...victims].sort((a, b) => a - b);
    sentences.push({
      tone: "bad",
      text:
        `Rank ${cause} (device ${rank?.device ?? "?"}) is waited for by ` +
        `${numbers.length === 1 ? "rank" : "ranks"} ${ranges(numbers)}: ${rank?.doing || "it does nothing"}.`,
    });
  }
  for (const call of communicator.waiting_calls)
    sentences.push({ tone: "warning", text: call.waits_for, started_ms: call.started_ms });
  for (const verdict of communicator.verdicts) sentences.push({ text: verdict.text, tone: "warning" });
  const has_ended = communicator.state === "ending" || communicator.state === "ended";
  for (const [text, tone] of [
    [communicator.silent, "bad"],
    [communicator.verdicts.length === 0 || has_ended ? communicator.async_error : "", "bad"],
    [communicator.error, "bad"],
  ])
    if (text) sentences.push({ text, tone });
  return sentences;
}
