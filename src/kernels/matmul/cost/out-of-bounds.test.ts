/** Which worker has how many of the last tiles, held against the order in which tiles are gone through. */
import { expect, test } from "vitest";
import { mostOfWorker, outsideOf } from "./out-of-bounds.ts";
import type { LastTiles, TilePlane } from "./out-of-bounds.ts";

/** The same by going through all tiles, each placed as the kernel places it. */
function counted({ batch, down, across, workers, group }: TilePlane, last: LastTiles): number {
  const counts = Array.from({ length: workers }, () => 0);
  for (let tile = 0; tile < batch * down * across; tile += 1) {
    const inPlane = tile % (down * across);
    const of = Math.floor(inPlane / (across * group));
    const size = Math.min(group, down - of * group);
    const within = inPlane - of * group * across;
    const j = Math.floor(within / size);
    const i = of * group + (within % size);
    const column = of % 2 === 0 ? j : across - 1 - j;
    const isLast = last === "column" ? column === across - 1 : i === down - 1;
    if (isLast) counts[tile % workers] = (counts[tile % workers] ?? 0) + 1;
  }
  return Math.max(...counts);
}

test.each([
  { batch: 1, down: 55, across: 6, workers: 66, group: 11 },
  { batch: 1, down: 7, across: 3, workers: 21, group: 8 },
  { batch: 3, down: 13, across: 4, workers: 10, group: 5 },
  { batch: 1, down: 40, across: 1, workers: 12, group: 3 },
])("workers have as many of the last tiles as come to them: %o", (plane) => {
  for (const last of ["row", "column"] as const)
    expect(mostOfWorker(plane, last), last).toBe(counted(plane, last));
});

test("boxes count where they reach beyond the end", () => {
  const side = { tile: 224, blocks: 1, box: 32, requests: 64 };
  expect(outsideOf({ ...side, extent: 672 })).toEqual({ part: 0, requests: 0 });
  expect(outsideOf({ ...side, extent: 650 })).toEqual({ part: 32 / 224, requests: 64 });
  expect(outsideOf({ ...side, extent: 480 })).toEqual({ part: 192 / 224, requests: 6 * 64 });
  // Windows end with the box in which the array does.
  expect(outsideOf({ ...side, extent: 480 }, 32)).toEqual({ part: 192 / 224, requests: 0 });
  expect(outsideOf({ ...side, extent: 460 }, 32)).toEqual({ part: 1, requests: 64 });
  // Of a pair of blocks the second one may have nothing but what lies outside.
  const rows = { tile: 64, blocks: 2, box: 1, requests: 1 };
  expect(outsideOf({ ...rows, extent: 1984 })).toEqual({ part: 1, requests: 64 });
  expect(outsideOf({ ...rows, extent: 2000 })).toEqual({ part: 48 / 64, requests: 48 });
});
