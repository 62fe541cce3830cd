// Where the ranks of a communicator are drawn: on a circle, or as a tree by levels.

// Positions in a box of width x height, with a border for the marks.
export function place_ranks(shape, ranks, edges, width, height) {
  const border = 30;
  if (shape === "tree") {
    const levels = levels_of(ranks, edges);
    if (levels) return place_levels(levels, ranks, width, height, border);
  }
  const places = [];
  for (let i = 0; i < ranks; ++i) {
    const angle = (i / ranks) * 2 * Math.PI - Math.PI / 2;
    places.push({
      x: width / 2 + (width / 2 - border) * Math.cos(angle),
      y: height / 2 + (height / 2 - border) * Math.sin(angle),
    });
  }
  return places;
}

// Ranks by distance from the middle of the tree; null if the edges do not connect all ranks.
function levels_of(ranks, edges) {
  const neighbours = Array.from({ length: ranks }, () => new Set());
  for (const [from, to] of edges) {
    if (from < ranks && to < ranks) {
      neighbours[from].add(to);
      neighbours[to].add(from);
    }
  }
  const from = (root) => {
    const levels = [[root]];
    const seen = new Set(levels[0]);
    while (levels.at(-1).length > 0) {
      const next = [];
      for (const rank of levels.at(-1))
        for (const other of neighbours[rank])
          if (!seen.has(other)) {
            seen.add(other);
            next.push(other);
          }
      levels.push(next);
    }
    levels.pop();
    return seen.size === ranks ? levels : null;
  };
  const longest = from(0);
  if (!longest) return null;
  // Rank 0 is the root of most trees; another root only if it makes the tree clearly lower.
  let best = longest;
  for (let rank = 1; rank < Math.min(ranks, 64); ++rank) {
    const levels = from(rank);
    if (levels.length * 2 < best.length) best = levels;
  }
  return best;
}

function place_levels(levels, ranks, width, height, border) {
  const places = new Array(ranks);
  levels.forEach((level, depth) => {
    const y = levels.length === 1 ? height / 2 : border + (depth / (levels.length - 1)) * (height - 2 * border);
    level.forEach((rank, i) => {
      places[rank] = { x: ((i + 0.5) / level.length) * width, y };
    });
  });
  return places;
}
