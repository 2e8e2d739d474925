// The cluster as boxes in boxes: leaf domains (racks) with their workers in a grid, at a place each.
import * as as from "../format.js";

export const CELL = { width: 34, height: 42 };
const PAD = 12;
const MOST = 64; // workers that are drawn

const linkText = (link) =>
  link?.bandwidth ? `${as.seconds(link.latency)}, ${as.rate(link.bandwidth)}` : null;

// [{name, uplink, workers: [rank]}], in order of the first worker; one nameless rack where there is no tree.
export function racksOf(topology, workers) {
  const racks = new Map();
  const domains = topology?.domains ?? [];
  const listed = topology?.workers ?? [];
  const count = Math.min(listed.length || workers || 0, MOST);
  for (let rank = 0; rank < count; ++rank) {
    const domain = listed[rank]?.domain ?? 0;
    if (!racks.has(domain))
      racks.set(domain, {
        name: domain > 0 ? domains[domain]?.name : null,
        uplink: linkText(domains[domain]),
        ranks: [],
      });
    racks.get(domain).ranks.push(rank);
  }
  return { racks: [...racks.values()], left: (listed.length || workers || 0) - count };
}

export function workerLinks(topology) {
  return [...new Set((topology?.workers ?? []).map(linkText).filter(Boolean))];
}

// Places of boxes and workers in a drawing of at most `width`: {width, height, boxes, at: Map rank -> {x, y}}.
export function placed(racks, width) {
  const most = Math.max(...racks.map((rack) => rack.ranks.length), 1);
  const columns = Math.max(1, Math.min(most, 8, Math.floor((width - 2 * PAD) / CELL.width)));
  const at = new Map();
  const boxes = [];
  let y = 0;
  for (const rack of racks) {
    const title = rack.name ? 18 : 4;
    const rows = Math.ceil(rack.ranks.length / columns);
    const height = title + rows * CELL.height + 6;
    rack.ranks.forEach((rank, i) =>
      at.set(rank, {
        x: PAD + ((i % columns) + 0.5) * CELL.width,
        y: y + title + Math.floor(i / columns) * CELL.height + 18,
      }),
    );
    boxes.push({
      name: rack.name,
      x: 0.5,
      y: y + 0.5,
      width: columns * CELL.width + 2 * PAD - 1,
      height: height - 1,
    });
    y += height + 10;
  }
  return { width: columns * CELL.width + 2 * PAD, height: y - 10, boxes, at };
}
