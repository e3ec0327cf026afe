/** What is said of a loop's counter, held against the counters of loops that are run here. */
import { expect, test } from "vitest";
import { kernelWith } from "../../../test/support/ir-text.ts";
import { walkOps } from "../traverse.ts";
import { allows } from "./fact.ts";
import { factsOf } from "./index.ts";
import type { Fact } from "./index.ts";

/** The fact of the counter of a loop from `2 · b` or `2 · b + 1` on, below 64, by steps. */
function counterOf(offset: number, step: number): Fact {
  const number = (id: string, value: number) =>
    `%${id} = constant {value = ${value}, dtype = i32, shape = []} : i32`;
  const kernel =
    kernelWith(`${[number("two", 2), number("o", offset), number("end", 64), number("s", step)].join("\n")}
    %m = binary %b, %two {fn = mul} : i32
    %from = binary %m, %o {fn = add} : i32
    loop %from, %end, %s body(%i: i32) {
      debug_print %i {format = "{}"}
      yield
    }`);
  const facts = factsOf(kernel);
  const counters: Fact[] = [];
  walkOps(kernel.body, (op) => {
    const [index] = op.kind === "loop" ? op.regions.body.parameters : [];
    if (index !== undefined) counters.push(facts.of(index));
  });
  return counters[0] ?? expect.fail();
}

test.each([
  [0, 8, 2n],
  [1, 8, 2n],
  [0, 3, 1n],
])("from 2 · b + %i by %i: equal modulo %i", (offset, step, modulus) => {
  const fact = counterOf(offset, step);
  expect(fact.modulus).toBe(modulus);
  for (let b = -40; b < 40; b += 1)
    for (let counter = 2 * b + offset; counter < 64; counter += step)
      expect(allows(fact, BigInt(counter), Number)).toBe(true);
});
