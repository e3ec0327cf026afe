/** What the records of instructions say of themselves, and of targets. */
import { describe, expect, test } from "vitest";
import {
  columnGrain,
  hasInstruction,
  hasSumsInFlight,
  isInFlight,
  productInstruction,
  productInstructions,
  tensorMemoryInstruction,
} from "./product-instructions.ts";
import { targets } from "./target.ts";

describe("instructions of products", () => {
  test("are found by their names", () => {
    for (const [name, record] of Object.entries(productInstructions)) {
      expect(record.name).toBe(name);
      expect(productInstruction(name)).toBe(record);
    }
    expect(productInstruction("fma")).toBeUndefined();
    expect(productInstruction(undefined)).toBeUndefined();
  });

  test("leave sums in registers in flight if their groups are waited for", () => {
    expect(isInFlight("wgmma")).toBe(true);
    expect(isInFlight("mma.sync")).toBe(false);
    expect(isInFlight("tcgen05")).toBe(false);
    expect(isInFlight(undefined)).toBe(false);
  });

  // The manual's table of shapes: sums of integers have 8, 24 or a multiple of 16 columns.
  test("have columns by what they add up", () => {
    const { wgmma } = productInstructions;
    expect(columnGrain(wgmma, { name: "i32" }, 24)).toBe(8);
    expect(columnGrain(wgmma, { name: "i32" }, 40)).toBe(16);
    expect(columnGrain(wgmma, { name: "f32" }, 40)).toBe(8);
  });

  test("are those that a target has", () => {
    const had = Object.values(targets).map((target) => [
      target.name,
      Object.values(productInstructions)
        .filter((each) => hasInstruction(target, each))
        .map(({ name }) => name),
    ]);
    expect(Object.fromEntries(had)).toEqual({
      sm_80: ["mma.sync"],
      sm_86: ["mma.sync"],
      sm_89: ["mma.sync"],
      sm_90a: ["mma.sync", "wgmma"],
      sm_100a: ["mma.sync", "tcgen05"],
      sm_103a: ["mma.sync", "tcgen05"],
      sm_120a: ["mma.sync", "mma.sync.block_scale"],
      sm_121a: ["mma.sync", "mma.sync.block_scale"],
    });
  });

  test("need tensor memory where they add up in it", () => {
    for (const target of Object.values(targets)) {
      const found = tensorMemoryInstruction(target);
      expect(found?.name).toBe(target.tensorMemoryColumns > 0 ? "tcgen05" : undefined);
      expect(hasSumsInFlight(target)).toBe(target.name === "sm_90a");
    }
  });
});
