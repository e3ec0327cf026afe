/** Products of the library on random formats, sizes, options and configurations, against float64. */
import type { Check } from "./check.ts";
import { randomProducts } from "../support/random-products.ts";

/** Option sets of a seed, and sizes of each. Kernels differ between them, so that most of the time is the assembler's. */
const [options, sizes] = [10, 4];
const most = { m: 300, n: 400, k: 700 };

export const productChecks: readonly Check[] = Array.from({ length: 8 }, (_, index) => ({
  name: `products from seed ${index + 1}`,
  run: async (device) => {
    const [problem] = await randomProducts(device, { seed: index + 1, options, sizes, most });
    if (problem !== undefined) throw new Error(problem);
  },
}));
