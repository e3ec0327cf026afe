/** Arrays in formats with scales in files: small files as checkpoints have them, made byte by byte, and back. */
import { describe, expect, test } from "vitest";
import { array, nn } from "tilewright/arrays";
import { f32, f8e4m3fn, u8 } from "../formats/dtype.ts";
import { fromNumbers, hostArray, toElements, toNumbers } from "../formats/hostarray.ts";
import { decodeFloat } from "../formats/floats.ts";
import { mxfp4, nvfp4, scaledFormats } from "../formats/scaled/formats.ts";
import type { ScaledFormatName } from "../formats/scaled/formats.ts";
import { formatScaledArray, scaledHostArray, scaledNumbers } from "../formats/scaled/host-array.ts";
import type { ScaledHostArray } from "../formats/scaled/host-array.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import {
  readNpz,
  readSafetensors,
  scaledArrayEntries,
  scaledArrayFrom,
  writeNpz,
  writeSafetensors,
} from "./index.ts";
import type { ScaledSchema } from "./index.ts";

/** Numbers of e2m1 by code. */
const fours = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6];

describe("checkpoints", () => {
  test("of GPT-OSS: two codes a byte, exponents of two", async () => {
    const bytes = Uint8Array.from({ length: 2 * 3 * 2 * 16 }, (_, index) => (index * 37) & 255);
    const exponents = Uint8Array.from({ length: 12 }, (_, index) => 120 + index);
    const file = writeSafetensors({
      mlp1_weight_blocks: hostArray(u8, [2, 3, 2, 16], bytes),
      mlp1_weight_scales: hostArray(u8, [2, 3, 2], exponents),
    });
    const read = scaledArrayFrom(await readSafetensors(file), "mlp1_weight");
    expect(read.format).toBe(mxfp4);
    expect(read.elements.shape).toEqual([2, 3, 64]);
    const wanted = Array.from({ length: 2 * 3 * 64 }, (_, index) => {
      const byte = bytes[index >> 1] ?? 0;
      const code = index % 2 === 0 ? byte & 15 : byte >> 4;
      return (fours[code] ?? NaN) * 2 ** ((exponents[index >> 5] ?? 0) - 127);
    });
    expect(Array.from(scaledNumbers(read))).toEqual(wanted);
    expect(writeSafetensors(scaledArrayEntries("mlp1_weight", read))).toEqual(file);
  });

  test("of ModelOpt: NVFP4, and FP8 with one scale", async () => {
    const bytes = Uint8Array.from({ length: 3 * 16 }, (_, index) => (index * 29) & 255);
    const scale = Uint8Array.from([0x38, 0x40, 0x30, 0x7e, 0x01, 0x3f]);
    const whole = Math.fround(0.0123);
    const file = writeSafetensors({
      "q.weight": hostArray(u8, [3, 16], bytes),
      "q.weight_scale": hostArray(f8e4m3fn, [3, 2], scale),
      "q.weight_scale_2": fromNumbers(f32, [], [whole]),
      "q.input_scale": fromNumbers(f32, [], [1]),
      "k.weight": fromNumbers(f8e4m3fn, [2, 2], [1, -2, 448, 0.5]),
      "k.weight_scale": fromNumbers(f32, [], [0.25]),
    });
    const arrays = await readSafetensors(file);
    const q = scaledArrayFrom(arrays, "q");
    expect(q.format).toBe(nvfp4);
    expect(Array.from(scaledNumbers(q))).toEqual(
      Array.from({ length: 96 }, (_, index) => {
        const byte = bytes[index >> 1] ?? 0;
        const code = index % 2 === 0 ? byte & 15 : byte >> 4;
        return (fours[code] ?? NaN) * decodeFloat("f8e4m3fn", scale[index >> 4] ?? 0) * whole;
      }),
    );
    const k = scaledArrayFrom(arrays, "k");
    expect(Array.from(scaledNumbers(k))).toEqual([0.25, -0.5, 112, 0.125]);
    const { "q.input_scale": _, "k.weight": _k, "k.weight_scale": _s, ...own } = arrays;
    expect(scaledArrayEntries("q", q)).toEqual(own);
  });

  test("of DeepSeek: squares of 128 × 128 with scales in f32", async () => {
    const codes = Uint8Array.from({ length: 130 * 200 }, (_, index) => (index * 11) % 127);
    const scales = [0.5, 1.5, 3, 0.1];
    const file = writeSafetensors({
      "o.weight": hostArray(f8e4m3fn, [130, 200], codes),
      "o.weight_scale_inv": fromNumbers(f32, [2, 2], scales),
    });
    const read = scaledArrayFrom(await readSafetensors(file), "o");
    expect(Array.from(scaledNumbers(read))).toEqual(
      Array.from(codes, (code, index) => {
        const [row, column] = [Math.floor(index / 200), index % 200];
        const own = scales[2 * (row >> 7) + (column >> 7)] ?? NaN;
        return decodeFloat("f8e4m3fn", code) * Math.fround(own);
      }),
    );
    expect(writeSafetensors(scaledArrayEntries("o", read))).toEqual(file);
  });
});

async function quantised(
  name: ScaledFormatName,
  shape: readonly number[],
  axis?: number,
): Promise<ScaledHostArray> {
  const count = shape.reduce((all, each) => all * each, 1);
  const values = Array.from({ length: count }, (_, index) => Math.sin(index) * (1 + (index % 17)));
  const made = nn.quantizeBlocks(array(fromNumbers(f32, shape, values)), name, { axis });
  return scaledHostArray(
    scaledFormats[name],
    await made.elements.read(),
    await made.scales.read(),
    {
      axis,
      globalScale: made.globalScale === null ? undefined : Number(await made.globalScale.values()),
    },
  );
}

describe.each(Object.keys(scaledFormats) as ScaledFormatName[])("%s", (name) => {
  test("comes back from npz and safetensors, along any axis", async () => {
    for (const [shape, axis] of [
      [[4, 64], 1],
      [[48, 4], 0],
      [[2, 5, 12], 2],
    ] as const) {
      const made = await quantised(name, shape, axis);
      const entries = scaledArrayEntries("layer.w", made, { schema: "tilewright" });
      expect(scaledArrayFrom(await readNpz(writeNpz(entries)), "layer.w")).toEqual(made);
      expect(scaledArrayFrom(await readSafetensors(writeSafetensors(entries)), "layer.w")).toEqual(
        made,
      );
      const again = nn.scaledArray(made);
      expect(Array.from(toNumbers(await nn.dequantizeBlocks(again, "f64").read()))).toEqual(
        Array.from(scaledNumbers(made)),
      );
    }
  });
});

const codeOf = (attempt: () => unknown): string => {
  try {
    attempt();
    return "fine";
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
};

test("is printed with its blocks, and its numbers", async () => {
  const made = await quantised("mxfp4", [1, 40]);
  expect(formatScaledArray(made)).toMatch(
    /^mxfp4\[1, 40\], blocks of 32 along axis 1, plain scales f8e8m0fnu\[1, 2\]\n\[\[0, 2, /,
  );
  const global = scaledHostArray(
    nvfp4,
    (await quantised("nvfp4", [1, 16])).elements,
    fromNumbers(f8e4m3fn, [1, 1], [1]),
    { globalScale: 0.5 },
  );
  expect(formatScaledArray(global)).toContain("times 0.5\n");
  const [, ...lines] = formatScaledArray(made, { whole: true, parts: true }).split("\n");
  expect(lines.filter((line) => line.includes("…"))).toEqual([]);
  expect(lines[1]).toBe("elements f4e2m1fn[1, 40]");
  expect(lines[3]).toMatch(/^scales f8e8m0fnu\[1, 2\]$/);
  expect(codeOf(() => formatScaledArray(made, { all: true } as never))).toBe("TW1033");
});

describe("what does not belong together is refused", () => {
  const elements = fromNumbers(mxfp4.element, [2, 64], new Float32Array(128));
  const scales = fromNumbers(mxfp4.scale, [2, 2], [1, 1, 1, 1]);

  test("elements and scales", () => {
    expect(codeOf(() => scaledHostArray(mxfp4, elements, scales))).toBe("fine");
    expect(codeOf(() => scaledHostArray(mxfp4, elements, scales, { axis: 0 }))).toBe("TW0010");
    expect(codeOf(() => scaledHostArray(mxfp4, elements, scales, { axis: 2 }))).toBe("TW0010");
    expect(codeOf(() => scaledHostArray(mxfp4, scales, scales))).toBe("TW0010");
    expect(codeOf(() => scaledHostArray(nvfp4, elements, scales))).toBe("TW0010");
    expect(codeOf(() => scaledHostArray(mxfp4, elements, scales, { globalScale: 2 }))).toBe(
      "TW0010",
    );
    expect(codeOf(() => scaledHostArray(mxfp4, elements, scales, { layout: "tiled" }))).toBe(
      "TW0010",
    );
    expect(codeOf(() => scaledHostArray("mxfp4" as never, elements, scales))).toBe("TW0010");
  });

  test("names and schemas", () => {
    const whole = scaledHostArray(mxfp4, elements, scales);
    expect(codeOf(() => scaledArrayFrom({ "x.weight": elements }, "x"))).toBe("TW0112");
    expect(codeOf(() => scaledArrayEntries("x", whole, { schema: "deepseek" }))).toBe("TW0109");
    expect(codeOf(() => scaledArrayEntries("x", whole, { schema: "torch" as ScaledSchema }))).toBe(
      "TW0109",
    );
    const odd = scaledHostArray(
      mxfp4,
      fromNumbers(mxfp4.element, [1, 33], new Float32Array(33)),
      fromNumbers(mxfp4.scale, [1, 2], [1, 1]),
    );
    expect(Object.keys(scaledArrayEntries("x", odd))).toEqual(["x.mxfp4.axis1", "x.scales"]);
    expect(codeOf(() => scaledArrayEntries("x", odd, { schema: "gpt-oss" }))).toBe("TW0109");
    expect(toElements(elements)).toHaveLength(128);
  });
});
