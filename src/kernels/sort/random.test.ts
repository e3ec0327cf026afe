/**
 * Sorts, best and distinct elements and histograms of random arrays; `npm run test:gpu -- --random 200 --only "random order"` runs
 * more.
 */
import { test } from "vitest";
import { checkRandomOrder } from "../../../test/support/random-order.ts";
import { open } from "../../runtime/open.ts";

test("order of random arrays, of seeds 1 and 2", { timeout: 600_000 }, async () => {
  const device = await open("emulator");
  for (let seed = 1; seed <= 2; seed += 1) await checkRandomOrder(device, seed, 300);
  device.dispose();
});
