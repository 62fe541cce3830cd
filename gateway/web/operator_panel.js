// The selected device or node, and what an operator can do to it.

import { bytes, clock } from "./format.js";

export class OperatorPanel {
  constructor(state, client, token) {
    this.state = state;
    this.client = client;
    this.token = token;
    this.allowed = false; // the gateway has operators
    this.device = "";
    this.node = "";
    this.changed = () => {};
    const element = (id) => document.getElementById(id);
    this.elements = {
      input: element("device"),
      text: element("device-text"),
      result: element("action-text"),
      operator: element("operator"),
      dialog: element("token-dialog"),
      token: element("token"),
      confirm: element("confirm-dialog"),
      title: element("confirm-title"),
      question: element("confirm-text"),
      value: element("confirm-value"),
      label: element("confirm-label"),
    };
    this.buttons = Object.fromEntries(["kill", "hang", "slow", "restore", "drain"].map((id) => [id, element(id)]));
    for (const [action, button] of Object.entries(this.buttons))
      button.addEventListener("click", () => this.#act(action));
    this.elements.input.addEventListener("change", () => this.select(this.elements.input.value.trim(), ""));
    this.elements.operator.addEventListener("click", () => this.#ask_token());
    this.elements.dialog.addEventListener("close", () => this.#take_token());
    this.refresh();
  }

  select(device, node) {
    this.device = device;
    this.node = node || (this.state.devices.get(device)?.node ?? "");
    this.elements.input.value = device;
    this.refresh();
    this.changed();
  }

  refresh() {
    const device = this.state.devices.get(this.device);
    const node = this.state.nodes.get(this.node);
    this.elements.text.textContent = this.#describe(device, node);
    const may = this.allowed && this.token.value !== "";
    for (const action of ["kill", "hang", "slow", "restore"]) this.buttons[action].disabled = !may || !device;
    this.buttons.drain.disabled = !may || !node || node.draining;
    const { operator } = this.elements;
    operator.textContent = this.token.value ? "operator: token set" : "operator";
    operator.classList.toggle("set", this.token.value !== "");
    operator.hidden = !this.allowed;
  }

  #describe(device, node) {
    if (!device && !node) return this.device ? `There is no device ${this.device}.` : "Select a device or a node.";
    const parts = [];
    if (device) {
      parts.push(`${device.id} on ${device.node}, ${bytes(device.memory_bytes)}`);
      for (const id of device.communicators) {
        const rank = this.state.rank_of(device.id, id);
        if (rank)
          parts.push(
            `rank ${rank.rank} of communicator ${id}: ${rank.doing || "idle"}` +
              (rank.late ? `, ${rank.late} of ${rank.answers} answers late` : ""),
          );
      }
      if (device.free) parts.push("free");
    } else {
      parts.push(`${node.name} on ${node.host}, process ${node.pid}, joined ${clock(node.joined_ms)}`);
    }
    if (node?.draining) parts.push("its node drains");
    if (node?.silent_since_ms) parts.push(`its node is silent since ${clock(node.silent_since_ms)}`);
    return `${parts.join("; ")}.`;
  }

  async #act(action) {
    const { result } = this.elements;
    const what = action === "drain" ? `node ${this.node}` : `device ${this.device}`;
    const answer = await this.#confirm(action, what);
    if (answer === null) return;
    const [path, body] =
      action === "drain"
        ? [`nodes/${encodeURIComponent(this.node)}/drain`, {}]
        : action === "slow"
          ? [`devices/${this.device}/slow`, { delay_ms: answer }]
          : action === "restore"
            ? [`devices/${this.device}/slow`, { delay_ms: 0 }]
            : [`devices/${this.device}/${action}`, {}];
    result.classList.remove("bad");
    result.textContent = `${action} ${what} ...`;
    try {
      const done = await this.client.post(`api/v1/${path}`, body);
      result.textContent = [done.text, ...done.details].join("; ");
    } catch (error) {
      result.classList.add("bad");
      result.textContent = `${action} ${what}: ${error.message}`;
    }
  }

  // Asks before anything is lost. The delay for "slow"; else 0; null: no.
  #confirm(action, what) {
    if (action === "restore") return Promise.resolve(0);
    const { confirm, title, question, value, label } = this.elements;
    title.textContent = `${action[0].toUpperCase()}${action.slice(1)} ${what}?`;
    question.textContent = {
      kill: "It ends at once, and its memory is lost. Its communicators open a new epoch.",
      hang: "It stops answering until it is declared dead.",
      slow: "It sleeps before each round.",
      drain: "Its devices leave their communicators, then the node exits.",
    }[action];
    label.hidden = action !== "slow";
    confirm.returnValue = "no";
    confirm.showModal();
    return new Promise((resolve) =>
      confirm.addEventListener(
        "close",
        () => resolve(confirm.returnValue !== "yes" ? null : action === "slow" ? Number(value.value) : 0),
        { once: true },
      ),
    );
  }

  #ask_token() {
    this.elements.token.value = this.token.value;
    this.elements.dialog.returnValue = "cancel";
    this.elements.dialog.showModal();
  }

  #take_token() {
    const { dialog, token } = this.elements;
    if (dialog.returnValue === "save") this.token.value = token.value.trim();
    else if (dialog.returnValue === "forget") this.token.value = "";
    token.value = "";
    this.refresh();
  }
}
