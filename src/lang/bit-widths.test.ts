/** Bitcasts to other widths: simulator and emulator against bytes, whatever the formats, shapes and layouts. */
import { afterAll, expect, test } from "vitest";
import { checkPlacement } from "../../test/support/placement-checker.ts";
import { takesAll } from "../../test/support/sample.ts";
import { dtypeNames, dtypes } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import { fromElements } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { packElements, unpackElements } from "../formats/packed.ts";
import { defaultTarget, open, placeKernel } from "../index.ts";
import { Random } from "../support/random.ts";
import { tensor } from "./arguments.ts";
import { kernel } from "./kernel.ts";

const seed = 11;
const formats = dtypeNames.map((name): DType => dtypes[name]).filter(({ kind }) => kind !== "bool");
const codes: { readonly [bits: number]: DType } = {
  4: dtypes.u4,
  8: dtypes.u8,
  16: dtypes.u16,
  32: dtypes.u32,
  64: dtypes.u64,
};

interface Case {
  readonly from: DType;
  readonly to: DType;
  readonly shape: readonly number[];
  readonly warps: 1 | 2 | 4 | 8;
  readonly transposed: boolean;
}

/** One of each pair of widths, or several. */
function drawCases(most: number): readonly Case[] {
  const random = new Random(seed);
  const shapes = [[64], [3, 16], [4, 32], [16, 128], [2, 5, 16], [128, 16], [7, 48], [1, 16]];
  const byWidths = new Map<string, Case[]>();
  for (const from of formats)
    for (const to of formats) {
      const key = `${from.bits} ${to.bits}`;
      const list = byWidths.get(key) ?? [];
      byWidths.set(key, list);
      if (from.bits === to.bits || list.length >= most) continue;
      if (list.length > 0 && random.below(3) > 0) continue;
      const shape = random.pick(shapes);
      const transposed = shape.length === 2 && random.below(2) === 0;
      list.push({ from, to, shape, warps: random.pick([1, 2, 4, 8]), transposed });
    }
  return [...byWidths.values()].flat();
}

function bytesOf({ data }: HostArray): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** The array whose transpose has these bytes. */
function transposedArray(
  from: DType,
  [rows = 1, columns = 1]: readonly number[],
  bytes: Uint8Array,
) {
  const code = codes[from.bits] ?? from;
  const elements = unpackElements(code, bytes, rows * columns);
  const turned = elements.slice();
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      turned[column * rows + row] = elements[row * columns + column] ?? 0;
  return packElements(code, turned);
}

const devices = [open("simulator"), open("emulator", { onNotes: () => undefined })];

afterAll(async () => {
  for (const device of devices) (await device).dispose();
});

const cases = drawCases(takesAll ? 12 : 1);

test("each pair of widths is drawn", () => {
  const widths = new Set(cases.map(({ from, to }) => `${from.bits} ${to.bits}`));
  expect(widths.size).toBe(5 * 4);
});

test.each(cases.map((one) => ({ ...one, text: `${one.from.name} as ${one.to.name}` })))(
  "$text, $shape, $warps warps, transposed: $transposed",
  async ({ from, to, shape, warps, transposed }) => {
    const count = shape.reduce((product, extent) => product * extent, 1);
    const random = new Random(seed);
    const bytes = Uint8Array.from({ length: (count * from.bits) / 8 }, () => random.below(256));
    const given = transposed ? transposedArray(from, shape, bytes) : bytes;
    const own = transposed ? shape.toReversed() : shape;
    const other = shape.with(-1, ((shape.at(-1) ?? 1) * from.bits) / to.bits);
    const made = kernel(
      {
        name: "other_width",
        warps,
        inputs: { x: tensor(from, own) },
        outputs: { y: tensor(to, other), z: tensor(from, shape) },
      },
      ({ x, y, z }) => {
        const tile = transposed ? x.load().transpose() : x.load();
        const bits = tile.bitcast(to);
        y.store(bits);
        z.store(bits.bitcast(from));
      },
    );
    checkPlacement(placeKernel(made.kernel, defaultTarget));
    const x = fromElements(from, own, unpackElements(from, given, count));
    for (const device of devices) {
      const { y, z } = await (await device).run(made, { x });
      expect(Buffer.compare(bytesOf(y), bytes)).toBe(0);
      expect(Buffer.compare(bytesOf(z), bytes)).toBe(0);
    }
  },
);
