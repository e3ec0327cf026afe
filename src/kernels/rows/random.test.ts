/** Operations on rows of random sizes, against float64; `npm run test:gpu -- --random 200 --only "random rows"` runs more. */
import { test } from "vitest";
import { checkRandomRows } from "../../../test/support/random-rows.ts";
import { open } from "../../runtime/open.ts";

test("rows of random sizes, of seeds 1 and 2", { timeout: 600_000 }, async () => {
  const device = await open("emulator");
  for (const seed of [1, 2]) await checkRandomRows(device, seed, false);
  device.dispose();
});
