/** f32 beside every number at which two of 4 or 6 bits are as near: rounded once, to even, wherever one more than the place kept decides. */
import { expect, test } from "vitest";
import { dtypes, f32 } from "../../../formats/dtype.ts";
import { decodeFloat, encodeFloat } from "../../../formats/floats.ts";
import { fromNumbers, toElements } from "../../../formats/hostarray.ts";
import { kernel, tensor } from "../../../lang/index.ts";
import { open } from "../../../runtime/open.ts";

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
