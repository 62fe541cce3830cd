// Colours of the style sheet, for canvases, and one colour for each communicator and run.

const names = ["page", "panel", "ink", "soft", "line", "accent", "good", "warning", "bad", "free"];
const hues = [215, 25, 150, 285, 345, 185, 50, 250, 100, 320];
let values = {};
let is_dark = false;

export function read_colours() {
  const style = getComputedStyle(document.documentElement);
  values = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(values.panel.slice(at, at + 2), 16));
  is_dark = red + green + blue < 384;
}

export function colour(name) {
  return values[name];
}

export function colour_of(number) {
  const hue = hues[number % hues.length];
  return `hsl(${hue} ${is_dark ? "70% 62%" : "62% 45%"})`;
}

const modes = ["system", "light", "dark"];

// The button goes through the modes; the choice stays in this browser.
export function connect_theme_button(button, changed) {
  const show = () => {
    const mode = localStorage.getItem("ringmaster-theme") ?? "system";
    if (mode === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = mode;
    button.textContent = `theme: ${mode}`;
    read_colours();
    changed();
  };
  button.addEventListener("click", () => {
    const mode = localStorage.getItem("ringmaster-theme") ?? "system";
    localStorage.setItem("ringmaster-theme", modes[(modes.indexOf(mode) + 1) % modes.length]);
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}
