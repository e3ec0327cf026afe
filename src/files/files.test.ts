/**
 * Files of arrays against files that NumPy wrote (test/fixtures/files), against themselves, and against
 * damaged bytes: whatever is read, it is the right array or a report with a code.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { repositoryRoot } from "../../test/source-files.ts";
import {
  allocateElements,
  bf16,
  bool,
  dtypes,
  f32,
  f4e2m1fn,
  f6e2m3fn,
  i32,
  i4,
  tf32,
} from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import {
  fromElements,
  fromNumbers,
  toElements,
  toNested,
  toNumbers,
} from "../formats/hostarray.ts";
import { denseBits } from "../formats/packed.ts";
import { elementCount } from "../formats/shape.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { Random } from "../support/random.ts";
import {
  openNpy,
  openNpz,
  openSafetensors,
  readNpy,
  readNpz,
  readSafetensors,
  writeNpy,
  writeNpz,
  writeSafetensors,
} from "./index.ts";

const fixture = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(join(repositoryRoot, "test/fixtures/files", name)));

/** The numbers that every array of stored.npz and compressed.npz was made from. */
const numbers = Array.from({ length: 24 }, (_, i) => (7 * i) % 11);

const numpyNames = {
  bool: "bool",
  int8: "i8",
  int16: "i16",
  int32: "i32",
  int64: "i64",
  uint8: "u8",
  uint16: "u16",
  uint32: "u32",
  uint64: "u64",
  float16: "f16",
  float32: "f32",
  float64: "f64",
} as const;

async function codeOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
    return "fine";
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
}

describe("what NumPy wrote", () => {
  test.each(["stored.npz", "compressed.npz"])("%s has every array", async (name) => {
    const arrays = await readNpz(fixture(name));
    for (const [key, dtype] of Object.entries(numpyNames)) {
      const array = arrays[key] as HostArray;
      expect(array.dtype).toBe(dtypes[dtype]);
      expect(array.shape).toEqual([2, 3, 4]);
      expect([...toNumbers(array)]).toEqual(numbers.map((n) => (dtype === "bool" ? +(n > 0) : n)));
    }
    expect(arrays["complex64"]?.shape).toEqual([2, 3, 4, 2]);
    expect([...toNumbers(arrays["complex64"] as HostArray)]).toEqual(
      numbers.flatMap((n) => [n, 0]),
    );
    expect(arrays["empty"]?.shape).toEqual([0, 5]);
    expect(toNested(arrays["scalar"] as HostArray)).toBe(3.5);
  });

  test("compressed data of several blocks", async () => {
    const file = await openNpz(fixture("compressed.npz"));
    const ramp = await file.read("ramp");
    expect([...toNumbers(ramp)]).toEqual(Array.from({ length: 4000 }, (_, i) => i % 37));
    const rows = await (await file.open("text")).rows(10, 13);
    expect([...toNumbers(rows)]).toEqual([100, 121, 144]);
  });

  test("an archive with 64-bit sizes", async () => {
    const { x } = await readNpz(fixture("zip64.npz"));
    expect(x).toEqual(fromNumbers(f32, [2, 3], [0, 1, 2, 3, 4, 5]));
  });

  test("Fortran order becomes row-major", async () => {
    const stored = await openNpy(fixture("fortran.npy"));
    expect([...toNumbers(await stored.read())]).toEqual(Array.from({ length: 24 }, (_, i) => i));
    expect([...toNumbers(await stored.rows(1, 2))]).toEqual(
      Array.from({ length: 12 }, (_, i) => 12 + i),
    );
  });

  test("big-endian elements are turned round", async () => {
    expect(await readNpy(fixture("big-endian.npy"))).toEqual(
      fromNumbers(i32, [2, 3], [0, 1, 2, 3, 4, 5]),
    );
  });

  test("elements that NumPy knows by size need a format", async () => {
    expect(await codeOf(readNpy(fixture("opaque.npy")))).toBe("TW0104");
    expect(await codeOf(readNpy(fixture("opaque.npy"), { opaque: i4 }))).toBe("TW0104");
    const array = await readNpy(fixture("opaque.npy"), { opaque: bf16 });
    expect([...toNumbers(array)]).toEqual([1, 2, -3]);
  });

  test("records are refused", async () => {
    expect(await codeOf(readNpy(fixture("records.npy")))).toBe("TW0104");
  });
});

/** Random elements; the elements of bools are 0 and 1, those of 4 and 6 bits within their bits. */
function randomArray(dtype: DType, shape: readonly number[], random: Random): HostArray {
  const elements = allocateElements(dtype, elementCount(shape));
  for (let i = 0; i < elements.length; i++) {
    const bits =
      dtype.kind === "bool"
        ? random.below(2)
        : random.bits() >>> (32 - Math.min(31, denseBits(dtype)));
    const signed = dtype === i4 ? (bits << 28) >> 28 : bits;
    if (typeof elements[i] === "bigint") (elements as BigInt64Array)[i] = BigInt(signed);
    else (elements as Uint8Array)[i] = signed;
  }
  return fromElements(dtype, shape, elements);
}

const shapes = [[], [1], [5], [3, 4], [0, 4], [2, 3, 5]];

describe("what is written is read again", () => {
  const random = new Random(31);
  const all = Object.values(dtypes);

  test.each(all.filter((dtype) => dtype !== tf32).map(({ name }) => name))(
    "npy of %s",
    async (name) => {
      for (const shape of shapes) {
        const array = randomArray(dtypes[name], shape, random);
        expect(await readNpy(writeNpy(array), { opaque: dtypes[name] })).toEqual(array);
      }
    },
  );

  test("npz", async () => {
    const arrays = { x: randomArray(f32, [3, 4], random), "μ/w": randomArray(bool, [5], random) };
    expect(await readNpz(writeNpz(arrays))).toEqual(arrays);
    expect(await readNpz(writeNpz({}))).toEqual({});
  });

  test("safetensors of every format that it has", async () => {
    const arrays: Record<string, HostArray> = {};
    for (const dtype of all)
      for (const shape of shapes)
        if (
          !["tf32", "i4", "u4"].includes(dtype.name) &&
          (elementCount(shape) * denseBits(dtype)) % 8 === 0
        )
          arrays[`${dtype.name}[${shape.join()}]`] = randomArray(dtype, shape, random);
    const bytes = writeSafetensors(arrays, { step: "100" });
    expect(await readSafetensors(bytes)).toEqual(arrays);
    expect((await openSafetensors(bytes)).metadata).toEqual({ step: "100" });
  });

  test("what a file cannot hold is refused", () => {
    const array = fromNumbers(i4, [2], [1, 2]);
    expect(() => writeSafetensors({ array })).toThrow("TW0109");
    expect(() => writeNpy(fromNumbers(tf32, [1], [1]))).toThrow("TW0109");
    expect(() => writeSafetensors({ x: fromNumbers(f4e2m1fn, [3], [1, 2, 3]) })).toThrow("TW0109");
    expect(() => writeSafetensors({ x: fromNumbers(f6e2m3fn, [6], [1, 2, 3, 4, 5, 6]) })).toThrow(
      "TW0109",
    );
    expect(() => writeSafetensors({ __metadata__: fromNumbers(f32, [1], [1]) })).toThrow("TW0109");
  });
});

describe("ranges of large files", () => {
  const folder = mkdtempSync(join(tmpdir(), "tilewright-files-"));
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });
  const table = fromNumbers(
    f32,
    [64, 3],
    Array.from({ length: 192 }, (_, i) => i),
  );
  const rows = (from: number, to: number) =>
    Array.from({ length: 3 * (to - from) }, (_, i) => 3 * from + i);

  test("a Blob and a file handle serve as bytes do", async () => {
    const bytes = writeSafetensors({ table });
    const path = join(folder, "table.safetensors");
    writeFileSync(path, bytes);
    const handle = await open(path);
    for (const source of [bytes, new Blob([new Uint8Array(bytes)]), handle]) {
      const { arrays } = await openSafetensors(source);
      const part = await arrays.get("table")?.rows(10, 13);
      expect([...toNumbers(part as HostArray)]).toEqual(rows(10, 13));
    }
    await handle.close();
  });

  test("no more is read than was asked for", async () => {
    const bytes = writeNpz({ table, other: table });
    let read = 0;
    const counted = {
      size: bytes.length,
      slice(start: number, end: number) {
        read += end - start;
        return new Blob([new Uint8Array(bytes.subarray(start, end))]);
      },
    };
    const stored = await (await openNpz(counted)).open("table");
    read = 0;
    expect([...toNumbers(await stored.rows(63, 64))]).toEqual(rows(63, 64));
    expect(read).toBe(12);
  });

  test("rows of packed elements may begin within a byte", async () => {
    const packed = fromNumbers(f4e2m1fn, [4, 3], [0, 1, 2, 3, 4, 6, 0.5, 1.5, -1, -2, -3, -4]);
    const { arrays } = await openSafetensors(writeSafetensors({ packed }));
    const part = (await arrays.get("packed")?.rows(1, 3)) as HostArray;
    expect([...toNumbers(part)]).toEqual([3, 4, 6, 0.5, 1.5, -1]);
  });

  test("rows of six bits may begin within a byte", async () => {
    const numbers = Array.from({ length: 40 }, (_, index) => (index % 15) / 2);
    const x = fromNumbers(f6e2m3fn, [8, 5], numbers);
    const bytes = writeSafetensors({ x });
    const { arrays } = await openSafetensors(bytes);
    const part = (await arrays.get("x")?.rows(1, 4)) as HostArray;
    expect([...toNumbers(part)]).toEqual(numbers.slice(5, 20));
    // 0, 0.5, 1 and 1.5 are the codes 0, 4, 8 and 12, from the lowest bit on.
    expect([...bytes.slice(-30, -27)]).toEqual([0x00, 0x81, 0x30]);
  });

  test.each([
    [-1, 2],
    [0, 65],
    [3, 2],
    [0.5, 2],
  ])("rows %d to %d are refused", async (start, end) => {
    const stored = await openNpy(writeNpy(table));
    expect(await codeOf(stored.rows(start, end))).toBe("TW0108");
  });
});

describe("mistakes", () => {
  test("a path is no source", async () => {
    expect(await codeOf(readNpy("x.npy" as unknown as Uint8Array))).toBe("TW0110");
  });

  test("files of other kinds", async () => {
    const npy = writeNpy(fromNumbers(f32, [2], [1, 2]));
    expect(await codeOf(readNpz(npy))).toBe("TW0101");
    expect(await codeOf(readNpy(writeNpz({})))).toBe("TW0101");
    expect(await codeOf(readSafetensors(npy))).toBe("TW0101");
  });

  test("names that are not there", async () => {
    const array = fromNumbers(f32, [2], [1, 2]);
    expect(await codeOf((await openNpz(writeNpz({ array }))).read("arry"))).toBe("TW0107");
    expect(await codeOf((await openSafetensors(writeSafetensors({ array }))).read("arry"))).toBe(
      "TW0107",
    );
  });

  test("an encrypted entry", async () => {
    const bytes = fixture("stored.npz");
    const directory = bytes.findLastIndex(
      (_, i) => bytes[i] === 0x50 && bytes[i + 1] === 0x4b && bytes[i + 2] === 1,
    );
    bytes[directory + 8] = 1;
    expect(await codeOf(readNpz(bytes))).toBe("TW0105");
  });

  test("a changed byte of an array", async () => {
    const bytes = writeNpz({ x: fromNumbers(f32, [2], [1, 2]) });
    const at = 30 + "x.npy".length + 128 + 3;
    bytes[at] = 9;
    expect(await codeOf(readNpz(bytes))).toBe("TW0106");
  });

  const header = (text: string, elements = 8) => {
    const bytes = new Uint8Array(8 + text.length + elements);
    new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
    bytes.set(new TextEncoder().encode(text), 8);
    return bytes;
  };

  test.each([
    ["{", "TW0103"],
    ["[]", "TW0101"],
    ['{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "fine"],
    ['{"x":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}', "TW0103"],
    ['{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}', "TW0103"],
    ['{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', "TW0103"],
    ['{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', "TW0103"],
    ['{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}', "TW0102"],
    ['{"x":{"dtype":"F8_E4M3FNUZ","shape":[8],"data_offsets":[0,8]}}', "TW0104"],
    ['{"x":{"dtype":"F6_E2M3","shape":[2],"data_offsets":[0,8]}}', "TW0103"],
    ['{"__metadata__":{"a":1},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "TW0103"],
  ])("safetensors header %s", async (text, code) => {
    expect(await codeOf(readSafetensors(header(text)))).toBe(code);
  });
});

describe("damaged files end in a report", () => {
  const array = fromNumbers(f32, [3, 2], [1, 2, 3, 4, 5, 6]);
  const readers: {
    readonly [kind: string]: [Uint8Array, (bytes: Uint8Array) => Promise<unknown>];
  } = {
    npy: [writeNpy(array), readNpy],
    npz: [fixture("stored.npz").slice(), readNpz],
    "compressed npz": [fixture("compressed.npz").slice(), readNpz],
    safetensors: [writeSafetensors({ array, other: array }, { note: "x" }), readSafetensors],
  };

  test.each(Object.keys(readers))("%s cut short", async (kind) => {
    const [bytes, read] = readers[kind] as (typeof readers)[string];
    const step = Math.ceil(bytes.length / 50);
    for (let length = 0; length < bytes.length; length += step)
      expect(await codeOf(read(bytes.subarray(0, length)))).toMatch(/^TW01/);
  });

  test.each(Object.keys(readers))("%s with changed bytes", async (kind) => {
    const [bytes, read] = readers[kind] as (typeof readers)[string];
    const random = new Random(kind.length);
    for (let round = 0; round < 60; round++) {
      const changed = bytes.slice();
      for (let change = 0; change <= random.below(4); change++)
        changed[random.below(round % 2 === 0 ? Math.min(200, bytes.length) : bytes.length)] =
          random.below(256);
      expect(await codeOf(read(changed)), `round ${round}`).toMatch(/^(TW01|fine)/);
    }
  });
});

test("4-bit elements survive", async () => {
  const array = fromNumbers(i4, [3], [-8, 7, -1]);
  expect([...toElements(await readNpy(writeNpy(array), { opaque: i4 }))]).toEqual([-8, 7, -1]);
});
