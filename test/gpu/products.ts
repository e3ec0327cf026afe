/** Products of the library on random formats, sizes, options and configurations, against float64. */
import type { Device } from "../../src/device/device.ts";
import type { Outcome } from "../matrix/case.ts";
import { randomProducts } from "../support/random-products.ts";

/** Option sets of a seed, and sizes of each. Kernels differ between them, so that most of the time is the assembler's. */
const [options, sizes] = [10, 4];
const most = { m: 300, n: 400, k: 700 };

export async function runProducts(
  device: Device,
  chosen: (name: string) => boolean,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let seed = 1; seed <= 8; seed += 1) {
    const name = `products from seed ${seed}`;
    if (!chosen(name)) continue;
    try {
      const [problem] = await randomProducts(device, { seed, options, sizes, most });
      outcomes.push({ name, problem });
    } catch (error) {
      outcomes.push({ name, problem: error instanceof Error ? error.message : String(error) });
    }
  }
  return outcomes;
}
