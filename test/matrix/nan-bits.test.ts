import { describe, expect, test } from "vitest";
import { toBigInts, toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { openSimulator } from "./simulator.ts";
import { emulateCases } from "./emulated.ts";
import { forms, nanBitCases } from "./nan-bits.ts";

emulateCases(nanBitCases());

function elements(array: HostArray | undefined): readonly bigint[] {
  if (array === undefined) throw new Error("no such array");
  return array.dtype.bits === 64
    ? [...toBigInts(array as never)]
    : [...toNumbers(array)].map(BigInt);
}

/** What the language says of each element, computed on its bits. */
describe("the simulator", () => {
  test.each(nanBitCases())("$name", async (one) => {
    const form = forms.find(({ dtype }) => one.name.endsWith(` ${dtype.name}`)) ?? expect.fail();
    const sign = 2n ** BigInt(form.dtype.bits - 1);
    const isNan = (element: bigint): boolean => (element & (sign - 1n)) > form.infinity;
    const key = (element: bigint): bigint =>
      element >= sign ? 2n * sign - 1n - element : element + sign;
    const before = (left: bigint, right: bigint): number =>
      isNan(left) || isNan(right)
        ? Number(isNan(left)) - Number(isNan(right))
        : Number(key(left) - key(right) > 0n) - Number(key(left) - key(right) < 0n);
    const united = (element: bigint): bigint => (isNan(element) ? form.made : element);
    const expected: { readonly [name: string]: (given: readonly bigint[]) => readonly bigint[] } = {
      neg: (given) => given.map((element) => element ^ sign),
      abs: (given) => given.map((element) => element & (sign - 1n)),
      sort: (given) => given.toSorted(before).map(united),
      "sort descending": (given) => given.toSorted((a, b) => before(b, a)).map(united),
      sortWith: (given) => given.toSorted(before).map(united),
      payload: (given) => given.toSorted(before),
    };
    const name = one.name.replace("bits of NaN ", "").replace(` ${form.dtype.name}`, "");
    const { definition, inputs } = one.prepare();
    const device = await openSimulator();
    const { out } = (await device.run(definition, inputs)) as { readonly out: HostArray };
    device.dispose();
    expect(elements(out)).toEqual(expected[name]?.(elements(inputs["x"])));
  });
});
