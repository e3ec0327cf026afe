/**
 * Whether registers of products in flight are left alone. Tensor cores read a left factor from registers and write the
 * accumulator's until a wait has seen the product end:
 *
 * | registers of          | are touched by                               | which needs                                |
 * |-----------------------|----------------------------------------------|--------------------------------------------|
 * | an accumulator        | the wait that makes a tile of them           | as many younger products as it leaves      |
 * | an accumulator        | a round that yields another in its place     | a `products_wait` before the yield, or none |
 * | a left factor's copy, | a round that comes again, a loop behind the  | likewise, before the round ends and before |
 * | metadata              | product, a branch that gives a tile as wide  | the loop or the branch                     |
 *
 * All other ops have registers of their own. Windows of shared memory that products read are the user's to keep, which
 * the simulator checks.
 */
import { followFlights, over } from "../../ir/flight.ts";
import type { Kernel } from "../../ir/node.ts";
import { reject } from "../../ir/verify/report.ts";
import { productsInFlight } from "../order/products.ts";

export function verifyFlight({ body }: Kernel): void {
  followFlights(body, {
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
