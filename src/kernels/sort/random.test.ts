/**
 * Sorts, best and distinct elements and histograms of random arrays; `npm run test:gpu -- --random 200 --only "random order"` runs
 * more.
 */
import { test } from "vitest";
import { checkRandomOrder } from "../../../test/support/random-order.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { open } from "../../runtime/open.ts";

const seeds = takesAll ? [1, 2] : [1];

test(`order of random arrays, of seeds ${seeds.join()}`, { timeout: 600_000 }, async () => {
  const device = await open("emulator");
  for (const seed of seeds) await checkRandomOrder(device, seed, 300);
  device.dispose();
});
