/** f32 beside every number at which two of 4 or 6 bits are as near: rounded once, to even, wherever one more than the place kept decides. */
import { expect, test } from "vitest";
import { bf16, dtypes, f16, f32, f4e2m1fn, f8e8m0fnu } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { decodeFloat, encodeFloat } from "../../../formats/floats.ts";
import { fromElements, fromNumbers, toElements, toNumbers } from "../../../formats/hostarray.ts";
import { kernel, slice, tensor } from "../../../lang/index.ts";
import { lower } from "../../../lower/stages.ts";
import { open } from "../../../runtime/open.ts";
import { targets } from "../../../targets/target.ts";
import { printPtx } from "../../printer.ts";
import { hasPtxas } from "../../../../test/ptxas.ts";
import { assemble } from "../../../../test/support/accepted-assembly.ts";

const words = new DataView(new ArrayBuffer(4));

function moved(value: number, units: number): number {
  words.setFloat32(0, value);
  words.setUint32(0, words.getUint32(0) + units);
  return words.getFloat32(0);
}

test.each(["f4e2m1fn", "f6e2m3fn", "f6e3m2fn"] as const)("%s", async (name) => {
  const bits = dtypes[name].bits;
  const codes = Array.from({ length: 2 ** (bits - 1) }, (_, code) => code);
  const numbers = codes.map((code) => decodeFloat(name, code));
  const places = numbers.flatMap((number, at) => [
    number,
    (number + (numbers[at + 1] ?? number)) / 2,
  ]);
  const values = places
    .flatMap((place) =>
      [-2, -1, 0, 1, 2].map((units) => (place === 0 ? units * 2 ** -149 : moved(place, units))),
    )
    .flatMap((value) => [value, -value]);
  const given = [...values, 0, -0, 1e30, -1e30, Infinity, -Infinity, NaN];
  const count = Math.ceil(given.length / 128) * 128;
  const padded = Array.from({ length: count }, (_, at) => given[at] ?? 1);
  const cast = kernel(
    {
      ...{ name: "cast", warps: 1 },
      inputs: { x: tensor(f32, [count]) },
      outputs: { out: tensor(dtypes[name], [count]) },
    },
    ({ x, out }) => {
      out.store(x.load().cast(dtypes[name]));
    },
  );
  const device = await open("emulator");
  const { out } = await device.run(cast, { x: fromNumbers(f32, [count], padded) });
  device.dispose();
  const found = Array.from(toElements(out) as ArrayLike<number>);
  expect(found).toEqual(padded.map((value) => encodeFloat(name, value)));
});

/** A row of every lane's words, as tensor cores want their neighbours: `packed-conversions.ts` makes pairs of what lies half a word apart. */
const halfWords = "(L2 L3 L4 R5 | R0 R1 R2 R3 R4 L0 L1)";

test.each<DType<"bf16" | "f16">>([bf16, f16])(
  "every f4e2m1fn at every place of a word as $name",
  async (to) => {
    const shape = [16, 128] as const;
    const cast = kernel(
      {
        ...{ name: "cast", warps: 1 },
        inputs: { x: tensor(f4e2m1fn, shape) },
        outputs: { out: tensor(to, shape) },
      },
      ({ x, out }) => {
        out.store(x.load().layoutCast(halfWords).cast(to));
      },
    );
    const text = printPtx(lower(cast.kernel, targets.sm_90a).module);
    const counted = (pattern: RegExp): number => text.match(pattern)?.length ?? 0;
    // Eight words a lane: four rotations of each, two that put signs beside numbers, and a product a pair.
    expect([/shf\.l\.wrap/g, /lop3\.b32/g, /mul\.rn\.b?f16x2/g].map(counted)).toEqual([32, 16, 32]);
    // Of each lane's word neighbours and those half a word apart differ.
    const codes = Array.from({ length: 16 * 128 }, (_, at) => (at * 7 + (at >> 3) * 5) % 16);
    const device = await open("emulator");
    const { out } = await device.run(cast, {
      x: fromElements(f4e2m1fn, shape, Uint8Array.from(codes)),
    });
    device.dispose();
    const wanted = codes.map((code) => decodeFloat("f4e2m1fn", code));
    expect([...toNumbers(out)]).toEqual(wanted);
  },
);

test("every f8e8m0fnu as bf16, subnormal and NaN, whole words and fewer", async () => {
  const device = await open("emulator");
  for (const count of [256, 64, 32]) {
    const cast = kernel(
      {
        ...{ name: "cast", warps: 1 },
        inputs: { x: tensor(f8e8m0fnu, [256]) },
        outputs: { out: tensor(bf16, [256]) },
      },
      ({ x, out }) => {
        for (let from = 0; from < 256; from += count)
          out.at(slice(from, count)).store(x.at(slice(from, count)).load().cast(bf16));
      },
    );
    const ptx = printPtx(lower(cast.kernel, targets.sm_90a).module);
    if (hasPtxas) expect(assemble(ptx, "sm_90a")).toBe("");
    const codes = Array.from({ length: 256 }, (_, code) => code);
    const { out } = await device.run(cast, {
      x: fromElements(f8e8m0fnu, [256], Uint8Array.from(codes)),
    });
    expect([...toNumbers(out)]).toEqual(
      codes.map((code) => (code === 255 ? NaN : 2 ** (code - 127))),
    );
  }
  device.dispose();
});
