import { describe, expect, test } from "vitest";
import { flashAttention } from "../../test/support/placed-kernels.ts";
import { f32 } from "../formats/dtype.ts";
import { tensor, kernel, smem } from "../lang/index.ts";
import { placeKernel } from "../layout/plan/place.ts";
import { defaultTarget } from "../targets/target.ts";
import { placedTiles, placementDrawings } from "./placed-tiles.ts";

describe("placedTiles", () => {
  test("lists each value that has a layout once, carried ones under their loop", () => {
    const placement = placeKernel(flashAttention().kernel, defaultTarget);
    const tiles = placedTiles(placement);
    expect(tiles).toHaveLength(placement.layouts.size);
    expect(tiles.some(({ op }) => op === "carried by loop")).toBe(true);
    for (const { position, shape } of tiles) {
      expect(position).toBeDefined();
      expect(shape.length).toBeGreaterThan(0);
    }
  });
});

const turned = kernel(
  {
    name: "turned",
    inputs: { x: tensor(f32, [64, 64]) },
    outputs: { out: tensor(f32, [64, 64]) },
    scratch: { buffer: smem(f32, [64, 64]) },
  },
  ({ x, out, buffer }) => {
    buffer.store(x.load());
    const rows = buffer.load().layoutCast("(L2 L3 L4 R1 W0 W1 | R0 L0 L1)");
    const columns = rows.add(1).layoutCast("(R0 L3 L4 R1 W0 W1 | L2 L0 L1)");
    out.store(columns);
  },
);

describe("placementDrawings", () => {
  const placement = placeKernel(turned.kernel, defaultTarget);
  const drawings = placementDrawings("turned", placement);

  test("one for every distinct subject, with a file of its own", () => {
    expect(new Set(drawings.map(({ file }) => file)).size).toBe(drawings.length);
    const tiles = new Set(
      placedTiles(placement)
        .filter(({ layout }) => layout.kind !== "splat")
        .map(({ layout, shape }) => `${layout.text} ${shape.join()}`),
    );
    const ofTiles = drawings.filter(({ file }) => /^turned-\d+\.svg$/.test(file));
    expect(ofTiles).toHaveLength(tiles.size);
    expect(drawings.filter(({ subject }) => subject.endsWith("in splat"))).toEqual([]);
  });

  test("shows the layouts of shared memory and the conversions that are left", () => {
    const { conversions, shared } = placement;
    const named = (part: string) => drawings.filter(({ file }) => file.startsWith(part));
    expect([shared.size, conversions.length]).not.toContain(0);
    for (const { text } of shared.values())
      expect(named("turned-shared-").some(({ subject }) => subject.endsWith(text))).toBe(true);
    for (const { source, target } of conversions)
      expect(
        named("turned-conversion-").some(({ subject }) =>
          subject.endsWith(`from ${source.text} to ${target.text}`),
        ),
      ).toBe(true);
    for (const { svg } of drawings) expect(svg()).toMatch(/^<svg /);
  });
});
