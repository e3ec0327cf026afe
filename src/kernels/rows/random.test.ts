/** Operations on rows of random sizes, against float64; `npm run test:gpu -- --random 200 --only "random rows"` runs more. */
import { test } from "vitest";
import { checkRandomRows } from "../../../test/support/random-rows.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { open } from "../../runtime/open.ts";

const seeds = takesAll ? [1, 2] : [1];

test(`rows of random sizes, of seeds ${seeds.join()}`, { timeout: 600_000 }, async () => {
  const device = await open("emulator");
  for (const seed of seeds) await checkRandomRows(device, seed, false);
  device.dispose();
});
