/** What the op table does not accept; the compiler checks these lines, running them shows only that nothing is hidden. */
import { expect, test } from "vitest";
import { acts, computes, defineOps, lanes } from "./define.ts";

const form = { summary: "", operands: { ref: "one" }, attributes: {}, regions: {} } as const;

test("traits name operands of their own op", () => {
  const good = defineOps({
    good: { ...form, traits: { ...acts, accesses: [lanes("write", "ref")] } },
  });
  expect(good.good.traits.accesses[0].of).toBe("ref");
  // @ts-expect-error there is no operand `window`
  defineOps({ bad: { ...form, traits: { ...acts, accesses: [lanes("write", "window")] } } });
  // @ts-expect-error there is no operand `source`
  defineOps({ bad: { ...form, traits: { ...computes, results: { same: "source" } } } });
});

test("every trait must be given", () => {
  const { synchronizes, ...rest } = acts;
  expect(synchronizes).toEqual([]);
  // @ts-expect-error without `synchronizes`
  defineOps({ bad: { ...form, traits: rest } });
  // @ts-expect-error without traits
  defineOps({ bad: form });
});
