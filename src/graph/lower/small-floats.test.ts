/**
 * What programs do with the codes of FP8, on the evaluator and on a device, which lifts FP8 to f32 for everything else. The reference
 * is made of the numbers of all codes: steps are neighbours in their order, and rounding is a search for the nearest.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { open } from "../../runtime/open.ts";
import { evaluate, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { decodeElement } from "../ops/index.ts";
import { compilePlan } from "../plan/compile.ts";
import { Program } from "../plan/program.ts";
import { parseGraph } from "../text/index.ts";

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

/** The results of a program by the evaluator and on a device, as lanes. */
async function lanesOf(text: string, inputs: readonly Tensor[]): Promise<readonly number[][]> {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  const program = await Program.load(device, compilePlan(module, "main"));
  try {
    const both = [evaluate(module, "main", inputs), await program.run(inputs)];
    return both.map(([first]) => Array.from((first as Tensor).data as Uint8Array, Number));
  } finally {
    program.dispose();
  }
}

type Small = "f8E4M3FN" | "f8E5M2";
const codes = Array.from({ length: 256 }, (_, code) => code);
const tensorOf = (element: Small, lanes: readonly number[]): Tensor =>
  tensor(element, [lanes.length], Uint8Array.from(lanes));
const numberOf = (element: Small, code: number): number => decodeElement(element, code);
const isNumber = (element: Small, code: number): boolean => !Number.isNaN(numberOf(element, code));

/** Both sides of every pair of some codes. */
function pairsOf(all: readonly number[]): readonly [readonly number[], readonly number[]] {
  const pairs = all.flatMap((left) => all.map((right) => [left, right] as const));
  return [pairs.map(([left]) => left), pairs.map(([, right]) => right)];
}

describe.each<Small>(["f8E4M3FN", "f8E5M2"])("codes of %s", (element) => {
  test("next_after goes to a neighbour among the numbers of the format", async () => {
    const finite = codes.filter((code) => isNumber(element, code) && code !== 0x80);
    const rising = [...finite].sort((a, b) => numberOf(element, a) - numberOf(element, b));
    const some = finite.filter((code, i) => i % 5 === 0 || (code & 0x7f) < 2);
    const [left, right] = pairsOf(some);
    const type = `tensor<${left.length}x${element}>`;
    const text = `func.func @main(%x: ${type}, %y: ${type}) -> ${type} {
      %r = chlo.next_after %x, %y : ${type}, ${type} -> ${type}
      return %r : ${type}
    }`;
    const wanted = left.map((code, i) => {
      const step = Math.sign(numberOf(element, right[i] as number) - numberOf(element, code));
      const next = rising[rising.indexOf(code) + step] as number;
      return numberOf(element, next);
    });
    for (const found of await lanesOf(text, [tensorOf(element, left), tensorOf(element, right)]))
      expect(found.map((code) => numberOf(element, code) + 0)).toEqual(wanted.map((x) => x + 0));
  });

  test("atan2 is rounded once, also next to the middle of two numbers", async () => {
    const some = codes.filter(
      (code) => Number.isFinite(numberOf(element, code)) && (code % 4 === 0 || (code & 0x7f) < 8),
    );
    const [left, right] = pairsOf(some);
    const type = `tensor<${left.length}x${element}>`;
    const text = `func.func @main(%x: ${type}, %y: ${type}) -> ${type} {
      %r = stablehlo.atan2 %x, %y : ${type}
      return %r : ${type}
    }`;
    const rising = codes.slice(0, 0x78);
    const wanted = left.map((code, i) => {
      const exact = Math.atan2(numberOf(element, code), numberOf(element, right[i] as number));
      const distance = (each: number): number =>
        Math.abs(numberOf(element, each) - Math.abs(exact));
      const near = rising.reduce((best, each) => {
        const [a, b] = [distance(each), distance(best)];
        return a < b || (a === b && each % 2 === 0) ? each : best;
      });
      return Math.sign(exact) * numberOf(element, near) + 0;
    });
    for (const found of await lanesOf(text, [tensorOf(element, left), tensorOf(element, right)]))
      expect(found.map((code) => numberOf(element, code) + 0)).toEqual(wanted);
  });

  test("TOTALORDER is that of the codes: NaNs by their sign, -0 below +0", async () => {
    const some = codes.filter((code) => code % 7 === 0 || (code & 0x7f) % 0x7f < 2);
    const [left, right] = pairsOf(some);
    const type = `tensor<${left.length}x${element}>`;
    const text = `func.func @main(%x: ${type}, %y: ${type}) -> tensor<${left.length}xi1> {
      %r = stablehlo.compare LT, %x, %y, TOTALORDER : (${type}, ${type}) -> tensor<${left.length}xi1>
      return %r : tensor<${left.length}xi1>
    }`;
    const place = (code: number): number => (code < 0x80 ? code : 0x7f - code);
    const wanted = left.map((code, i) => Number(place(code) < place(right[i] as number)));
    const [, found] = await lanesOf(text, [tensorOf(element, left), tensorOf(element, right)]);
    expect(found).toEqual(wanted);
  });

  const own = element === "f8E5M2" ? ([5, 2] as const) : ([4, 3] as const);
  test.each([
    [own[0], own[1]],
    [8, 7],
    [own[0], 1],
    [own[0], 0],
    [3, 1],
    [2, 3],
  ])("reduce_precision to %i bits of exponent and %i of mantissa", async (exponent, mantissa) => {
    const type = `tensor<256x${element}>`;
    const text = `func.func @main(%x: ${type}) -> ${type} {
      %r = stablehlo.reduce_precision %x, format = e${exponent}m${mantissa} : ${type}
      return %r : ${type}
    }`;
    const isNarrower = exponent < own[0];
    const largest = 2 ** (exponent - 1) - 1;
    // Codes that are left: their last bits are 0. Beyond the last of them is what would be the next.
    const unit = 2 ** Math.max(0, own[1] - mantissa);
    const beyond = element === "f8E5M2" ? 0x7c : 0x80;
    const kept = codes.filter((code) => code <= beyond && code % unit === 0);
    const magnitude = (code: number): number =>
      code === 0x80 ? 512 : element === "f8E5M2" && code === 0x7c ? 65536 : numberOf(element, code);
    const wanted = codes.map((code) => {
      const value = numberOf(element, code);
      // Without mantissa bits there is no NaN, where the format has an infinity in its place.
      if (value !== value) return mantissa === 0 && element === "f8E5M2" ? Infinity : NaN;
      if (!Number.isFinite(value) || value === 0) return value;
      const size = Math.abs(value);
      const distance = (each: number): number => Math.abs(magnitude(each) - size);
      const near = kept.reduce((best, each) => {
        const [a, b] = [distance(each), distance(best)];
        return a < b || (a === b && (each / unit) % 2 === 0) ? each : best;
      });
      const rounded = magnitude(near);
      const limit = element === "f8E5M2" ? 57344 : 448;
      const special = element === "f8E5M2" ? Infinity : NaN;
      const isBeyond = rounded > limit || (isNarrower && rounded >= 2 ** (largest + 1));
      if (isBeyond) return Math.sign(value) * special;
      return isNarrower && rounded < 2 ** (1 - largest) ? value * 0 : Math.sign(value) * rounded;
    });
    for (const found of await lanesOf(text, [tensorOf(element, codes)]))
      expect(found.map((code) => numberOf(element, code))).toEqual(wanted);
  });
});

describe("counts beyond the numbers of an element", () => {
  test.each([
    ["i2", 2, true],
    ["ui2", 2, false],
    ["i4", 4, true],
    ["ui4", 4, false],
  ] as const)("of %s wrap", async (element, bits, signed) => {
    const text = `func.func @main() -> tensor<40x${element}> {
      %0 = stablehlo.iota dim = 0 : tensor<40x${element}>
      return %0 : tensor<40x${element}>
    }`;
    const wanted = Array.from({ length: 40 }, (_, i) =>
      Number((signed ? BigInt.asIntN : BigInt.asUintN)(bits, BigInt(i))),
    );
    for (const found of await lanesOf(text, [])) expect(found).toEqual(wanted);
  });

  test("of f8E4M3FN are NaN", async () => {
    const text = `func.func @main() -> tensor<500xf8E4M3FN> {
      %0 = stablehlo.iota dim = 0 : tensor<500xf8E4M3FN>
      return %0 : tensor<500xf8E4M3FN>
    }`;
    for (const found of await lanesOf(text, [])) {
      expect(numberOf("f8E4M3FN", found[448] as number)).toBe(448);
      // Above the tie between 448 and what would be 480 there is no number.
      expect(numberOf("f8E4M3FN", found[464] as number)).toBe(448);
      expect(numberOf("f8E4M3FN", found[465] as number)).toBeNaN();
    }
  });
});
