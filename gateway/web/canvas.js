// A canvas in CSS pixels that is as sharp as the screen, and the page's one animation loop.

export class Surface {
  #height;

  // `height` in CSS pixels is that of the style sheet, unless set_height is called.
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.width = 0;
    this.height = 0;
  }

  set_height(height) {
    if (height !== this.#height) {
      this.#height = height;
      this.canvas.style.height = `${height}px`;
    }
  }

  // Clears it and returns the context; draws in CSS pixels.
  begin() {
    const ratio = devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    const width = Math.round(this.width * ratio);
    const height = Math.round(this.height * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.context.font = "12px system-ui, 'Segoe UI', 'Liberation Sans', sans-serif";
    return this.context;
  }
}

// Draws views that asked for it, once a frame. Nothing is drawn while the page is hidden or nothing changes.
export class Animation {
  #views = new Map(); // view -> is dirty
  #pending = false;

  add(view) {
    this.#views.set(view, true);
    this.#schedule();
  }

  touch(view) {
    this.#views.set(view, true);
    this.#schedule();
  }

  touch_all() {
    for (const view of this.#views.keys()) this.#views.set(view, true);
    this.#schedule();
  }

  #schedule() {
    if (this.#pending) return;
    this.#pending = true;
    requestAnimationFrame((now) => {
      this.#pending = false;
      for (const [view, dirty] of this.#views) if (dirty) this.#views.set(view, view.draw(now) === true); // true: it moves and wants the next frame
      if ([...this.#views.values()].some(Boolean)) this.#schedule();
    });
  }
}
