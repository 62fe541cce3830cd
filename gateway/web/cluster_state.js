// The state of the cluster as this page knows it: a snapshot, and the changes since.

export class ClusterState {
  constructor() {
    this.version = 0;
    this.nodes = new Map(); // by name
    this.devices = new Map(); // by id
    this.communicators = new Map(); // by id
    this.lost = [];
    this.sections = {}; // coordinator, journal, rates, queues, route
    this.layout_version = 0; // grows when nodes or devices come or go
    this.clock_offset_ms = 0; // the coordinator's clock minus ours
  }

  now() {
    return Date.now() + this.clock_offset_ms;
  }

  replace(status) {
    for (const map of [this.nodes, this.devices, this.communicators]) map.clear();
    this.#merge(status);
    this.version = status.version;
    this.layout_version += 1;
  }

  // False if changes between the two are missing: the page has to ask for a new snapshot.
  apply(delta) {
    if (delta.base !== this.version) return false;
    for (const name of delta.removed?.nodes ?? []) this.nodes.delete(name);
    for (const id of delta.removed?.devices ?? []) this.devices.delete(id);
    for (const id of delta.removed?.communicators ?? []) this.communicators.delete(id);
    this.#merge(delta);
    for (const part of delta.ranks ?? []) this.#merge_ranks(part);
    this.version = delta.version;
    if (delta.removed || delta.nodes || delta.devices || delta.lost) this.layout_version += 1;
    return true;
  }

  // The rank that `device` has in communicator `id`.
  rank_of(device, id) {
    return this.communicators.get(id)?.ranks.find((rank) => rank.device === device);
  }

  #merge(status) {
    this.clock_offset_ms = status.time_ms - Date.now();
    for (const key of ["coordinator", "journal", "rates", "queues", "route"])
      if (status[key] !== undefined) this.sections[key] = status[key];
    for (const node of status.nodes ?? []) this.nodes.set(node.name, node);
    for (const device of status.devices ?? []) this.devices.set(device.id, device);
    for (const communicator of status.communicators ?? [])
      this.communicators.set(communicator.id, {
        ...communicator,
        ranks: communicator.ranks ?? this.communicators.get(communicator.id)?.ranks ?? [],
      });
    if (status.lost) this.lost = status.lost;
  }

  #merge_ranks(part) {
    const communicator = this.communicators.get(part.communicator);
    if (!communicator) return;
    if (part.all) {
      communicator.ranks = part.ranks;
      return;
    }
    for (const rank of part.ranks) {
      const place = communicator.ranks.findIndex((known) => known.rank === rank.rank);
      if (place < 0) communicator.ranks.push(rank);
      else communicator.ranks[place] = rank;
    }
  }
}
