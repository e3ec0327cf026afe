/**
 * Whether registers of products in flight are left alone. Tensor cores read a left factor from registers and write the
 * accumulator's until a wait has seen the product complete:
 *
 * | registers of          | are touched by                               | which needs                                |
 * |-----------------------|----------------------------------------------|--------------------------------------------|
 * | an accumulator        | the wait that makes a tile of them           | as many younger products as it leaves      |
 * | an accumulator        | an iteration that yields another in its place | a `products_wait` before the yield, or none |
 * | a left factor's copy, | another iteration, a loop behind the product, | likewise, before the iteration ends and    |
 * | metadata              | a branch that yields a tile as wide          | before the loop or the branch              |
 *
 * All other ops have registers of their own. Windows of shared memory that products read are the user's to keep, which
 * the simulator checks.
 */
import { followInFlightProducts, over } from "../../ir/in-flight-products.ts";
import type { Kernel } from "../../ir/node.ts";
import { reject } from "../../ir/verify/report.ts";
import { productsInFlight } from "../barriers/wgmma-register-waits.ts";

export function verifyInFlightProducts({ body }: Kernel): void {
  followInFlightProducts(body, {
    lands(op, count) {
      if (count < over)
        reject(op, "TW6208", "a tile is made of registers that a product may still write", {
          expected: `at most ${count} products left running`,
          found: `${op.attributes.pending}`,
        });
    },
  });
  const [touched] = productsInFlight(body);
  if (touched === undefined) return;
  const [op, pending] = touched;
  reject(op, "TW6208", `${op.kind} touches registers of a product that may still run`, {
    expected: `products_wait {pending = ${pending}} before it`,
    found: "no such wait",
  });
}
