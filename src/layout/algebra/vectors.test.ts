import { describe, expect, test } from "vitest";
import { layoutOf, randomShape, randomSpelling, volume } from "../../../test/layout-oracle.ts";
import { Random } from "../../support/random.ts";
import { placeTable } from "./element-maps.ts";
import { namedLayouts, stridedLayout } from "./named-layouts.ts";
import { registersPerLane, splat } from "./register-layout.ts";
import type { RegisterLayout } from "./register-layout.ts";
import { contiguity, packing, vectorWidth, wordsPerLane } from "./vectors.ts";

/** The widest aligned runs along an axis whose places pass the test, by trying all. */
function widest(
  shape: readonly number[],
  axis: number,
  passes: (run: readonly number[]) => boolean,
): number {
  const stride = volume(shape.slice(axis + 1));
  const extent = shape[axis] ?? 1;
  let best = 1;
  for (let width = 2; extent % width === 0; width *= 2) {
    const all = Array.from({ length: volume(shape) }, (_, element) => element).every((element) => {
      if ((Math.floor(element / stride) % extent) % width !== 0) return true;
      return passes(Array.from({ length: width }, (_, step) => element + step * stride));
    });
    if (!all) break;
    best = width;
  }
  return best;
}

describe("runs of neighbours", () => {
  test("worked examples", () => {
    const { wgmma, wgmmaTransposed, tmemNative } = namedLayouts;
    const row = (layout: RegisterLayout, shape: readonly number[]) => [
      vectorWidth(layout, shape),
      contiguity(layout, shape, 0),
      contiguity(layout, shape, 1),
    ];
    expect(row(wgmma, [64, 128])).toEqual([2, 1, 2]);
    expect(row(wgmmaTransposed, [64, 128])).toEqual([1, 2, 1]);
    expect(row(tmemNative, [128, 48])).toEqual([16, 1, 48]);
    expect(row(splat, [128, 48])).toEqual([16, 128, 48]);
    expect(row(stridedLayout(8), [3, 12])).toEqual([4, 1, 4]);
  });

  test("against brute force", () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const random = new Random(seed);
      const rank = 1 + random.below(2);
      const layout = layoutOf(randomSpelling(random, rank, 3));
      const shape = randomShape(random, rank);
      const registers = registersPerLane(layout, shape);
      const places = placeTable(layout, shape);
      const lane = (element: number) => Math.floor((places[element] ?? 0) / registers);
      const message = `seed ${seed}: ${layout.text} on [${shape.join(", ")}]`;
      const consecutive = widest(shape, rank - 1, (run) => {
        const first = places[run[0] ?? 0] ?? 0;
        const inLane = run.every((element) => lane(element) === lane(run[0] ?? 0));
        return inLane && run.every((element, step) => places[element] === first + step);
      });
      expect(vectorWidth(layout, shape), message).toBe(consecutive);
      for (const axis of shape.keys()) {
        const together = widest(shape, axis, (run) =>
          run.every((element) => lane(element) === lane(run[0] ?? 0)),
        );
        const found = contiguity(layout, shape, axis);
        const limit = Math.min(found & -found, (shape[axis] ?? 1) & -(shape[axis] ?? 1));
        if (layout.kind === "axes") expect(limit, message).toBe(together);
        else expect(limit, message).toBeLessThanOrEqual(together);
      }
    }
  });

  test("words and packing", () => {
    const { wgmma, wgmmaTransposed, wgmmaLeft8 } = namedLayouts;
    expect(wordsPerLane(wgmma, [64, 128], 32)).toBe(64);
    expect(wordsPerLane(wgmma, [64, 128], 16)).toBe(32);
    expect(wordsPerLane(wgmma, [64, 8], 4)).toBe(1);
    expect(wordsPerLane(wgmma, [64, 8], 64)).toBe(8);
    expect(packing(wgmma, [64, 128], 16)).toBe(2);
    expect(packing(wgmma, [64, 128], 8)).toBe(2);
    expect(packing(wgmma, [64, 128], 32)).toBe(1);
    expect(packing(wgmma, [64, 128], 64)).toBe(1);
    expect(packing(wgmmaLeft8, [64, 32], 8)).toBe(4);
    expect(packing(wgmmaTransposed, [64, 8], 16)).toBe(1);
  });
});
