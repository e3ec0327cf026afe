/**
 * Reductions and scans of random arrays over random axes, against float64; `npm run test:gpu -- --random 200 --only "random
 * reductions"` runs more.
 */
import { test } from "vitest";
import { checkRandomReductions } from "../../../test/support/random-reductions.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { open } from "../../runtime/open.ts";

const seeds = takesAll ? [1, 2, 3] : [1, 2];

test(`random reductions, of seeds ${seeds.join()}`, { timeout: 600_000 }, async () => {
  const device = await open("emulator");
  for (const seed of seeds) await checkRandomReductions(device, seed, 2 ** 14);
  device.dispose();
});
