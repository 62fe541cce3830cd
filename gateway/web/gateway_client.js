// Requests to the gateway: documents, actions of operators, and the stream of events.

const token_key = "ringmaster-token";
const silence_max_ms = 25000; // The gateway sends a comment every 10 s.
const retry_ms = [250, 500, 1000, 2000, 5000];

// The token of this tab. A link can bring it after "#token=", which no server sees; it leaves the address bar at once.
export class Token {
  constructor() {
    const found = /^#token=([\x21-\x7e]{1,512})$/.exec(location.hash);
    if (found) {
      sessionStorage.setItem(token_key, decodeURIComponent(found[1]));
      history.replaceState(null, "", location.pathname + location.search);
    }
  }

  get value() {
    return sessionStorage.getItem(token_key) ?? "";
  }

  set value(text) {
    if (text) sessionStorage.setItem(token_key, text);
    else sessionStorage.removeItem(token_key);
  }

  headers() {
    return this.value ? { Authorization: `Bearer ${this.value}` } : {};
  }
}

async function message_of(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `the gateway answered with status ${response.status}`;
  }
}

export class GatewayClient {
  constructor(token) {
    this.token = token;
  }

  // The document at `path`. Throws an Error with the gateway's sentence.
  async get(path, signal) {
    const response = await fetch(path, { headers: this.token.headers(), signal });
    if (!response.ok) throw new Error(await message_of(response));
    return response.json();
  }

  async post(path, body) {
    const response = await fetch(path, {
      method: "POST",
      headers: { ...this.token.headers(), "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await message_of(response));
    return response.json();
  }

  // Reads events until the page closes, and connects again after each end. `handlers` has a function for each event,
  // and `connected` and `lost`. A handler that returns false wants a new snapshot. fetch and not EventSource: it sends the
  // token and reports the reason of a refusal.
  async follow(handlers) {
    for (let failures = 0; ; failures += 1) {
      let reason = "the gateway closed the connection";
      const control = new AbortController();
      try {
        const response = await fetch("api/v1/events", { headers: this.token.headers(), signal: control.signal });
        if (response.ok) {
          failures = 0;
          handlers.connected();
          reason = (await read_events(response.body, handlers, control)) ?? reason;
        } else {
          reason = await message_of(response);
        }
      } catch (error) {
        reason = error.name === "AbortError" ? "the gateway sent nothing for 25 s" : "the gateway does not answer";
      }
      control.abort();
      handlers.lost(reason);
      await new Promise((resume) => setTimeout(resume, retry_ms[Math.min(failures, retry_ms.length - 1)]));
    }
  }
}

// Returns the reason of an orderly end.
async function read_events(body, handlers, control) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let name = "message";
  for (;;) {
    const timer = setTimeout(() => control.abort(), silence_max_ms);
    const { value, done } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return null;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("event:")) {
        name = line.slice(6).trim();
      } else if (line.startsWith("data:")) {
        const document = JSON.parse(line.slice(5));
        if (name === "end" || handlers[name]?.(document) === false) {
          await reader.cancel();
          return document.reason ?? "changes were missing";
        }
        name = "message";
      }
    }
  }
}
