/** Runs a case of attention to a paged cache and holds it against float64. */
import type { Device } from "../../src/device/device.ts";
import { bf16 } from "../../src/formats/dtype.ts";
import { toNumbers } from "../../src/formats/hostarray.ts";
import { pagedAttention } from "../../src/kernels/paged/paged.ts";
import { closeTo } from "./attention-reference.ts";
import { expectedPaged, pagedInputs } from "./paged-reference.ts";
import type { PagedCase } from "./paged-reference.ts";

export async function checkPaged(device: Device, one: PagedCase, seed = 1): Promise<void> {
  const { dtype = bf16, causal, window, softCap, scale, scales, configuration } = one;
  const kept = one.kept ?? dtype;
  const given = pagedInputs(one, seed);
  const op = pagedAttention({
    ...{ q: dtype, pages: { k: kept, v: kept }, logSumExp: true },
    ...(causal !== undefined && { causal }),
    ...(window !== undefined && { window }),
    ...(softCap !== undefined && { softCap }),
    ...(scale !== undefined && { scale }),
    ...(scales !== undefined && { scales }),
    ...(configuration !== undefined && { configuration }),
  });
  const arrays = Object.fromEntries(
    Object.entries(given).map(([name, { array }]) => [name, array] as const),
  );
  const results = await device.run(op, arrays as never);
  const { out, logSumExp } = expectedPaged(one, given);
  closeTo(toNumbers(results.out), out, dtype === bf16 ? 2 ** -6 : 2 ** -9);
  closeTo(toNumbers(results.logSumExp), [...logSumExp], 2 ** -12);
}
