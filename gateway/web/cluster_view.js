// The cluster as a picture: hosts contain nodes, nodes contain devices.

import { colour, colour_of } from "./colours.js";
import { Surface } from "./canvas.js";

const lost_shown_ms = 20000;
const margin = 8;
const title_height = 18;

// Side of a device's square, so that large clusters still fit on a screen.
function side_for(devices) {
  if (devices <= 64) return 30;
  return devices <= 256 ? 20 : devices <= 1024 ? 12 : 8;
}

function node_size(name, devices, side, gap, room) {
  const wanted = Math.max(4, Math.ceil(Math.sqrt(devices.length * 2)));
  const per_line = Math.max(1, Math.min(Math.floor(room / (side + gap)), wanted));
  return {
    name,
    devices,
    per_line,
    width: Math.max(64, Math.min(per_line, Math.max(1, devices.length)) * (side + gap) + gap),
    height: title_height + Math.max(1, Math.ceil(devices.length / per_line)) * (side + gap) + gap,
  };
}

// Adds the nodes of a host at (left, top), in lines, and their devices. Returns the host's height.
function place_nodes(boxes, sizes, left, top, host_width, side, gap) {
  let x = left + margin;
  let y = top + title_height;
  let line_height = 0;
  for (const { name, devices, per_line, width, height } of sizes) {
    if (x > left + margin && x + width > left + host_width - margin) {
      x = left + margin;
      y += line_height + gap;
      line_height = 0;
    }
    boxes.nodes.push({ name, title: name, x, y, width, height });
    devices.forEach((device, i) =>
      boxes.devices.push({
        ...device,
        side,
        node: name,
        x: x + gap + (i % per_line) * (side + gap),
        y: y + title_height + Math.floor(i / per_line) * (side + gap),
      }),
    );
    x += width + 2 * gap;
    line_height = Math.max(line_height, height);
  }
  return y + line_height + margin - top;
}

export class ClusterView {
  constructor(canvas, state, select) {
    this.surface = new Surface(canvas);
    this.state = state;
    this.select = select; // (device id or "", node name or "")
    this.selected = "";
    this.selected_node = "";
    this.boxes = { hosts: [], nodes: [], devices: [] };
    this.layout_of = "";
    canvas.addEventListener("click", (event) => this.#click(event));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  draw() {
    const { state, surface } = this;
    const lost = this.#lost();
    const layout_of = `${state.layout_version} ${surface.canvas.clientWidth} ${lost.length}`;
    if (layout_of !== this.layout_of) {
      this.#arrange(surface.canvas.clientWidth, lost);
      this.layout_of = layout_of;
    }
    const context = surface.begin();
    for (const box of this.boxes.hosts) this.#draw_box(context, box, colour("soft"), "line");
    for (const box of this.boxes.nodes) {
      const node = state.nodes.get(box.name);
      const edge = node?.silent_since_ms ? "bad" : node?.draining ? "warning" : "line";
      this.#draw_box(context, box, colour("ink"), box.name === this.selected_node ? "accent" : edge);
    }
    for (const box of this.boxes.devices) box.lost ? this.#draw_lost(context, box) : this.#draw_device(context, box);
    return lost.length > 0;
  }

  #lost() {
    const since = this.state.now() - lost_shown_ms;
    return this.state.lost.filter(
      (entry) =>
        entry.what === "device" && entry.time_ms > since && !entry.orderly && !this.state.devices.has(entry.id),
    );
  }

  // Hosts, nodes and devices flow into lines.
  #arrange(width, lost) {
    const side = side_for(this.state.devices.size + lost.length);
    const gap = side > 12 ? 4 : 2;
    const boxes = { hosts: [], nodes: [], devices: [] };
    const hosts = new Map();
    const node_named = (name, host) => {
      if (!hosts.has(host)) hosts.set(host, new Map());
      const nodes = hosts.get(host);
      if (!nodes.has(name)) nodes.set(name, []);
      return nodes.get(name);
    };
    for (const node of this.state.nodes.values()) node_named(node.name, node.host);
    for (const device of this.state.devices.values())
      node_named(device.node, device.host).push({ id: device.id, lost: false });
    for (const entry of lost)
      node_named(entry.name, this.state.nodes.get(entry.name)?.host ?? "gone").push({ id: entry.id, lost: true });

    // A host as wide as its nodes in one line, or as the picture. Small hosts share a line.
    const line = { x: 0, y: 0, height: 0 };
    for (const [host, nodes] of hosts) {
      const sizes = [...nodes].map(([name, devices]) => node_size(name, devices, side, gap, width - 4 * margin));
      const host_width = Math.min(width, 2 * margin + sizes.reduce((sum, size) => sum + size.width + 2 * gap, 0));
      if (line.x > 0 && line.x + host_width > width) {
        line.y += line.height + margin;
        line.x = line.height = 0;
      }
      const height = place_nodes(boxes, sizes, line.x, line.y, host_width, side, gap);
      boxes.hosts.push({ title: host, x: line.x + 0.5, y: line.y + 0.5, width: host_width - 1, height: height - 1 });
      line.x += host_width + margin;
      line.height = Math.max(line.height, height);
    }
    this.boxes = boxes;
    this.surface.set_height(Math.max(120, line.y + line.height + 1));
  }

  #draw_box(context, box, ink, edge) {
    context.strokeStyle = colour(edge);
    context.lineWidth = edge === "line" ? 1 : 2;
    context.beginPath();
    context.roundRect(box.x, box.y, box.width, box.height, 5);
    context.stroke();
    context.fillStyle = ink;
    context.save();
    context.beginPath();
    context.rect(box.x, box.y, box.width - 4, title_height);
    context.clip();
    context.fillText(box.title, box.x + 6, box.y + 13);
    context.restore();
  }

  #draw_device(context, box) {
    const device = this.state.devices.get(box.id);
    if (!device) return;
    const { x, y, side } = box;
    const communicator = device.communicators[0];
    const rank = communicator === undefined ? undefined : this.state.rank_of(box.id, communicator);
    if (communicator === undefined) {
      context.strokeStyle = colour("free");
      context.lineWidth = 1.5;
      context.strokeRect(x + 1, y + 1, side - 2, side - 2);
    } else {
      context.fillStyle = colour_of(communicator);
      context.fillRect(x, y, side, side);
      if (rank?.rounds) {
        context.fillStyle = colour("panel");
        context.globalAlpha = 0.75;
        context.fillRect(x + 2, y + side - 6, (side - 4) * Math.min(1, rank.round / rank.rounds), 4);
        context.globalAlpha = 1;
      }
      if (side >= 20 && rank) {
        context.fillStyle = colour("panel");
        context.textAlign = "center";
        context.fillText(String(rank.rank), x + side / 2, y + side / 2 + 3);
        context.textAlign = "left";
      }
    }
    const edge =
      rank?.silent_since_ms || rank?.lost ? "bad" : rank?.late ? "warning" : box.id === this.selected ? "ink" : "";
    if (edge) {
      context.strokeStyle = colour(edge);
      context.lineWidth = 2.5;
      context.strokeRect(x - 1, y - 1, side + 2, side + 2);
    }
  }

  #draw_lost(context, { x, y, side }) {
    context.strokeStyle = colour("bad");
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, side - 2, side - 2);
    context.beginPath();
    context.moveTo(x + 3, y + 3);
    context.lineTo(x + side - 3, y + side - 3);
    context.moveTo(x + side - 3, y + 3);
    context.lineTo(x + 3, y + side - 3);
    context.stroke();
  }

  #click(event) {
    const contains = (box, width, height) =>
      event.offsetX >= box.x &&
      event.offsetX <= box.x + width &&
      event.offsetY >= box.y &&
      event.offsetY <= box.y + height;
    const device = this.boxes.devices.find((box) => !box.lost && contains(box, box.side, box.side));
    const node = this.boxes.nodes.find((box) => contains(box, box.width, box.height));
    this.select(device?.id ?? "", device?.node ?? node?.name ?? "");
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const devices = this.boxes.devices.filter((box) => !box.lost);
    if (!step || devices.length === 0) return;
    event.preventDefault();
    const at = devices.findIndex((box) => box.id === this.selected);
    const next = devices[at < 0 ? 0 : (at + step + devices.length) % devices.length];
    this.select(next.id, next.node);
  }
}
