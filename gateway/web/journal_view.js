// The journal: the newest records, a search, and older pages.

import { clock } from "./format.js";

const shown_max = 1000;
const page = 200;

export class JournalView {
  constructor(elements, client) {
    this.elements = elements; // list, text, search, kind, follow, older, form
    this.client = client;
    this.pending = null;
    this.oldest = 0;
    elements.form.addEventListener("submit", (event) => event.preventDefault());
    elements.search.addEventListener("input", () => this.#search_soon());
    elements.kind.addEventListener("change", () => this.load());
    elements.follow.addEventListener("change", () => elements.follow.checked && this.load());
    elements.older.addEventListener("click", () => this.#load_older());
    elements.list.addEventListener("scroll", () => {
      const { list } = elements;
      if (list.scrollTop + list.clientHeight < list.scrollHeight - 40) elements.follow.checked = false;
    });
  }

  show_kinds(kinds) {
    const known = new Set([...this.elements.kind.options].map((option) => option.value));
    for (const kind of kinds) if (!known.has(kind)) this.elements.kind.append(new Option(kind, kind));
  }

  // New records from the stream of events. With a search, those that match.
  add(event) {
    const { follow, kind, search } = this.elements;
    if (!follow.checked) return;
    const wanted = search.value.toLowerCase();
    const records = event.records.filter(
      (record) =>
        (!kind.value || record.kind === kind.value) && (!wanted || record.text.toLowerCase().includes(wanted)),
    );
    if (event.skipped > 0 && !wanted)
      this.elements.text.textContent = `${event.skipped} records came too fast to show; a search finds them.`;
    this.#append(records);
  }

  async load() {
    const answer = await this.#get({});
    if (!answer) return;
    this.elements.list.replaceChildren();
    this.oldest = answer.records[0]?.index ?? 0;
    this.#append(answer.records);
    this.#describe(answer);
  }

  async #load_older() {
    this.elements.follow.checked = false;
    const answer = await this.#get(this.oldest > 1 ? { before: this.oldest } : {});
    if (!answer) return;
    const { list } = this.elements;
    const height = list.scrollHeight;
    list.prepend(...answer.records.map(item_of));
    while (list.children.length > shown_max) list.lastChild.remove();
    list.scrollTop += list.scrollHeight - height;
    this.oldest = answer.records[0]?.index ?? this.oldest;
    this.#describe(answer);
  }

  #search_soon() {
    clearTimeout(this.delay);
    this.delay = setTimeout(() => this.load(), 250);
  }

  // A later request replaces an earlier one that is not answered yet.
  async #get(query) {
    this.pending?.abort();
    const control = (this.pending = new AbortController());
    const { kind, search, text } = this.elements;
    const all = { limit: page, ...query };
    if (kind.value) all.kind = kind.value;
    if (search.value) all.text = search.value;
    try {
      return await this.client.get(`api/v1/journal?${new URLSearchParams(all)}`, control.signal);
    } catch (error) {
      if (error.name !== "AbortError") text.textContent = error.message;
      return null;
    }
  }

  #describe(answer) {
    const { kind, search, text } = this.elements;
    const filtered = search.value || kind.value;
    text.textContent =
      answer.records.length === 0
        ? filtered
          ? "No record matches."
          : "The journal is empty."
        : `Records ${answer.records[0].index} to ${answer.records.at(-1).index} of ${answer.last}${filtered ? " that match" : ""}` +
          `${answer.more ? "; there are older ones" : ""}`;
  }

  #append(records) {
    const { follow, list } = this.elements;
    list.append(...records.slice(-shown_max).map(item_of));
    while (list.children.length > shown_max) list.firstChild.remove();
    if (follow.checked) list.scrollTop = list.scrollHeight;
  }
}

function item_of(record) {
  const item = document.createElement("li");
  item.className = record.tone;
  const time = document.createElement("time");
  time.textContent = clock(record.time_ms, true);
  item.append(time, record.text); // Text, never markup: names in it come from clients.
  item.title = `record ${record.index}, ${record.event}`;
  return item;
}
