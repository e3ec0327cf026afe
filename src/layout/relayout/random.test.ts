import { expect, test } from "vitest";
import { layoutOf, randomShape, randomSpelling, volume } from "../../../test/layout-oracle.ts";
import { checkPlans } from "../../../test/relayout-checks.ts";
import { isTaken, sampleOf } from "../../../test/support/sample.ts";
import { bf16, f32, f64, i4, i8 } from "../../formats/dtype.ts";
import { Random } from "../../support/random.ts";
import type { RelayoutKind } from "./steps.ts";

const formats = [i4, i8, bf16, f32, f64];
const pairsPerPart = 150;

test.each(sampleOf([0, 1, 2, 3, 4, 5, 6, 7], 4))(
  "random layouts and shapes, replication and padding included: part %i",
  (part) => {
    const kinds = new Map<RelayoutKind, number>();
    for (let index = 0; index < pairsPerPart; index += 1) {
      const seed = part * pairsPerPart + index;
      const random = new Random(seed);
      const rank = 1 + random.below(3);
      // Small tiles for most, as a lane may hold all of it.
      const most = index % 32 === 0 ? 256 : 32;
      let shape = randomShape(random, rank);
      while (volume(shape) > most) shape = randomShape(random, rank);
      const source = layoutOf(randomSpelling(random, rank));
      const target = layoutOf(randomSpelling(random, rank));
      const dtype = random.pick(formats);
      const about = `seed ${seed}: ${source.text} to ${target.text} on [${shape.join()}] ${dtype.name}`;
      const kind = checkPlans(source, target, shape, dtype, about);
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    expect([...kinds.keys()].sort()).toEqual(["none", "registers", "shared", "shuffle"]);
  },
);

test.each([1, 2, 8, 16, 32])("random layouts of %i warps", (warps) => {
  for (let seed = 0; seed < 400 / warps; seed += 1) {
    if (!isTaken(seed, 3)) continue;
    const random = new Random(seed);
    const rank = 1 + random.below(2);
    let shape = randomShape(random, rank);
    while (volume(shape) > 32) shape = randomShape(random, rank);
    const source = layoutOf(randomSpelling(random, rank, 3, warps));
    const target = layoutOf(randomSpelling(random, rank, 3, warps));
    const dtype = random.pick(formats);
    const about = `seed ${seed}: ${source.text} to ${target.text} on [${shape.join()}] ${dtype.name}`;
    checkPlans(source, target, shape, dtype, about, warps);
  }
});
