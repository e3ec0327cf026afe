/**
 * Calls of the functions that NumPy has too, each beside NumPy's own expression for it. `record.py` writes what NumPy answers to
 * `test/fixtures/numpy-results.json`; `numpy.test.ts` holds values, batches and gradients against that.
 *
 *   roll: [[({ m }) => a.roll(m, 2), "np.roll(m, 2)"]],
 */
import { elementCases } from "./element-cases.ts";
import type { Case } from "./inputs.ts";
import { shapeCases } from "./shape-cases.ts";

export const cases: { readonly [name: string]: readonly Case[] } = {
  ...elementCases,
  ...shapeCases,
};
