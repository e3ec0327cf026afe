/** What a loop carries as a ring stays below its end; what only looks like one does not. */
import { expect, test } from "vitest";
import { kernelWith } from "../../../test/support/ir-text.ts";
import { walkOps } from "../traverse.ts";
import { Facts } from "./index.ts";

/** The fact of a carried value: begun at `start`, followed by what `round` makes of %at, compared with `end`. */
function carried(
  start: number,
  round: string,
): { readonly least: bigint; readonly greatest: bigint } {
  const kernel = kernelWith(`
    %zero = constant {value = 0, dtype = i32, shape = []} : i32
    %one = constant {value = 1, dtype = i32, shape = []} : i32
    %two = constant {value = 2, dtype = i32, shape = []} : i32
    %end = constant {value = 4, dtype = i32, shape = []} : i32
    %start = constant {value = ${start}, dtype = i32, shape = []} : i32
    %last = loop %zero, %b, %one initial(%start) body(%i: i32, %at: i32) {
      ${round}
      yield %after
    } : i32
    debug_print %last {format = "{}"}`);
  const facts = new Facts(kernel);
  let found: { readonly least: bigint; readonly greatest: bigint } | undefined;
  walkOps(kernel.body, (op) => {
    const [, value] = op.kind === "loop" ? op.regions.body.parameters : [];
    if (value === undefined) return;
    const [result] = op.results;
    found = facts.of(value);
    expect(result && facts.of(result)).toEqual(found);
  });
  return found ?? expect.fail();
}

const next = (step: string) => `
  %up = binary %at, ${step} {fn = add} : i32
  %wraps = compare %up, %end {predicate = eq} : bool`;

test("a slot that starts again at its end stays below it", () => {
  const fact = carried(
    0,
    `${next("%one")}
  %after = select %wraps, %zero, %up : i32`,
  );
  expect([fact.least, fact.greatest]).toEqual([0n, 3n]);
});

test("also where it only sometimes moves on", () => {
  const fact = carried(
    3,
    `${next("%one")}
  %turned = select %wraps, %zero, %up : i32
  %moves = compare %i, %two {predicate = lt} : bool
  %after = select %moves, %turned, %at : i32`,
  );
  expect([fact.least, fact.greatest]).toEqual([0n, 3n]);
});

test.each([
  ["steps past its end", 0, `${next("%two")}\n  %after = select %wraps, %zero, %up : i32`],
  ["begins at its end", 4, `${next("%one")}\n  %after = select %wraps, %zero, %up : i32`],
  ["begins below 0", -1, `${next("%one")}\n  %after = select %wraps, %zero, %up : i32`],
  ["does not start again", 0, `${next("%one")}\n  %after = select %wraps, %up, %up : i32`],
  ["starts again behind its end", 0, `${next("%one")}\n  %after = select %wraps, %end, %up : i32`],
  [
    "starts again for another value",
    0,
    `${next("%one")}\n  %after = select %wraps, %zero, %i : i32`,
  ],
])("a value that %s may be anything", (_, start, round) => {
  expect(carried(start, round).greatest).toBe(2n ** 31n - 1n);
});
