/**
 * Archives of arrays read by the rules of Python's zipfile, on archives made byte by byte here; and compressed entries,
 * which are expanded as far as they are asked for, held against what Node's zlib compressed.
 */
import { deflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { f32, u8 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { Random } from "../support/random.ts";
import { openNpz, readNpz, writeNpy, writeNpz } from "./index.ts";
import type { SlicedSource } from "./index.ts";

interface Entry {
  readonly name: Uint8Array;
  readonly data: Uint8Array;
  /** What lies in the file for the data; compressed by default where the method says so. */
  readonly stored?: Uint8Array;
  readonly method?: number;
  readonly flags?: number;
  readonly version?: number;
  readonly size?: number;
  readonly compressed?: number;
  readonly checksum?: number;
  /** What the entry's own header calls it. */
  readonly localName?: Uint8Array;
  /** Where the directory says that it lies. */
  readonly offset?: number;
  readonly extra?: Uint8Array;
}

interface Archive {
  readonly entries: readonly Entry[];
  /** Bytes between the entries and the directory. */
  readonly gap?: number;
  readonly comment?: string;
  /** What follows the end record and its comment. */
  readonly trailing?: string;
}

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

function fields(...values: readonly (readonly [value: number, bytes: number])[]): Uint8Array {
  const bytes: number[] = [];
  for (const [value, count] of values)
    for (let i = 0; i < count; i++) bytes.push(Math.floor(value / 2 ** (8 * i)) % 256);
  return Uint8Array.from(bytes);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** By the definition, a bit at a time. */
function checksumOf(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return ~value >>> 0;
}

const deflated = (bytes: Uint8Array): Uint8Array => new Uint8Array(deflateRawSync(bytes));

function archive({ entries, gap = 0, comment = "", trailing = "" }: Archive): Uint8Array {
  const parts: Uint8Array[] = [];
  const records: Uint8Array[] = [];
  let at = 0;
  for (const entry of entries) {
    const { name, data, method = 0, flags = 0, version = 20, localName = name } = entry;
    const usual = method === 8 ? deflated(data) : data;
    const { stored = usual } = entry;
    const common = fields(
      [version, 2],
      [flags, 2],
      [method, 2],
      [0, 4],
      [entry.checksum ?? checksumOf(data), 4],
      [entry.compressed ?? stored.length, 4],
      [entry.size ?? data.length, 4],
    );
    const extra = entry.extra ?? new Uint8Array(0);
    const local = joined([
      fields([0x04034b50, 4]),
      common,
      fields([localName.length, 2], [0, 2]),
      localName,
      stored,
    ]);
    records.push(
      fields([0x02014b50, 4], [20, 2]),
      common,
      fields([name.length, 2], [extra.length, 2], [0, 10], [entry.offset ?? at, 4]),
      name,
      extra,
    );
    parts.push(local);
    at += local.length;
  }
  const directory = joined(records);
  const count: readonly [number, number] = [entries.length, 2];
  return joined([
    ...parts,
    new Uint8Array(gap),
    directory,
    fields([0x06054b50, 4], [0, 4], count, count, [directory.length, 4], [at, 4]),
    fields([comment.length, 2]),
    text(comment + trailing),
  ]);
}

async function codeOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
    return "fine";
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
}

const npy = (numbers: ArrayLike<number>): Uint8Array =>
  writeNpy(fromNumbers(u8, [numbers.length], Array.from(numbers)));
const named = (name: string, data: Uint8Array): Entry => ({ name: text(`${name}.npy`), data });
const entry = (name: string, ...numbers: readonly number[]): Entry => named(name, npy(numbers));

async function numbersOf(bytes: Uint8Array): Promise<Record<string, number[]>> {
  const arrays = Object.entries(await readNpz(bytes));
  return Object.fromEntries(arrays.map(([name, array]) => [name, [...toNumbers(array)]]));
}

describe("what zipfile reads", () => {
  test.each<[string, Archive, Record<string, number[]>]>([
    ["two entries", { entries: [entry("a", 1), entry("b", 2, 3)] }, { a: [1], b: [2, 3] }],
    ["no entry", { entries: [] }, {}],
    ["a comment", { entries: [entry("a", 1)], comment: "of an archive" }, { a: [1] }],
    ["bytes behind the end", { entries: [entry("a", 1)], trailing: "behind" }, { a: [1] }],
    ["two of one name", { entries: [entry("a", 1), entry("a", 2)] }, { a: [2] }],
    [
      "a compressed entry",
      { entries: [{ ...entry("a", 5, 5, 5, 5, 5, 5), method: 8 }] },
      { a: [5, 5, 5, 5, 5, 5] },
    ],
    [
      "names of code page 437",
      { entries: [{ ...entry("x", 1), name: Uint8Array.of(0x81, ...text(".npy")) }] },
      { ü: [1] },
    ],
    ["names in UTF-8", { entries: [{ ...entry("μ", 1), flags: 0x800 }] }, { μ: [1] }],
    [
      "bytes behind an array",
      { entries: [{ ...entry("a", 1), data: joined([npy([1]), text("behind")]) }] },
      { a: [1] },
    ],
    [
      "sizes of 64 bits",
      {
        entries: [
          {
            ...entry("a", 1),
            size: 2 ** 32 - 1,
            compressed: 2 ** 32 - 1,
            extra: fields([7, 2], [2, 2], [0, 2], [1, 2], [16, 2], [129, 8], [129, 8]),
          },
        ],
      },
      { a: [1] },
    ],
  ])("%s", async (_, parts, expected) => {
    expect(await numbersOf(archive(parts))).toEqual(expected);
  });
});

describe("what zipfile or NumPy refuses", () => {
  const a = entry("a", 1);
  test.each<[string, Uint8Array, string]>([
    ["bytes before the archive", joined([text("before"), archive({ entries: [a] })]), "TW0101"],
    ["another's header", archive({ entries: [a, { ...entry("b", 2), offset: 0 }] }), "TW0103"],
    ["another name", archive({ entries: [{ ...a, localName: text("b.npy") }] }), "TW0103"],
    ["a directory that lies elsewhere", archive({ entries: [a], gap: 1 }), "TW0103"],
    ["encryption", archive({ entries: [{ ...a, flags: 1 }] }), "TW0105"],
    ["strong encryption", archive({ entries: [{ ...a, flags: 0x40 }] }), "TW0105"],
    ["patches", archive({ entries: [{ ...a, flags: 0x20 }] }), "TW0105"],
    ["another compression", archive({ entries: [{ ...a, method: 12 }] }), "TW0105"],
    ["a newer version", archive({ entries: [{ ...a, version: 64 }] }), "TW0105"],
    ["another checksum", archive({ entries: [{ ...a, checksum: 1 }] }), "TW0106"],
    [
      "another checksum, with bytes behind the array",
      archive({ entries: [{ ...a, data: joined([npy([1]), text("x")]), checksum: 1 }] }),
      "TW0106",
    ],
    [
      "a name that is no UTF-8",
      archive({ entries: [{ ...a, name: Uint8Array.of(0xff), flags: 0x800 }] }),
      "TW0103",
    ],
    [
      "an extra field beyond its end",
      archive({ entries: [{ ...a, extra: fields([1, 2], [9, 2]) }] }),
      "TW0103",
    ],
    [
      "a 64-bit size that is not there",
      archive({ entries: [{ ...a, size: 2 ** 32 - 1, extra: fields([1, 2], [0, 2]) }] }),
      "TW0103",
    ],
    [
      "an array that goes on behind its entry",
      archive({ entries: [{ ...a, data: npy([1, 2, 3]).subarray(0, 130) }, entry("b", 1)] }),
      "TW0102",
    ],
    [
      "an end record that is cut off",
      joined([archive({ entries: [a] }), text("PK\x05\x06")]),
      "TW0101",
    ],
  ])("%s", async (_, bytes, code) => {
    expect(await codeOf(readNpz(bytes))).toBe(code);
  });

  test("an entry that lies within another", async () => {
    const inner = archive({ entries: [entry("b", 7)] });
    const outer = named("a", npy(inner));
    const within = 30 + outer.name.length + 128;
    const bytes = archive({ entries: [outer, { ...entry("b", 7), offset: within }] });
    expect(await codeOf((await openNpz(bytes)).read("b"))).toBe("fine");
    expect(await codeOf((await openNpz(bytes)).read("a"))).toBe("TW0103");
  });
});

/** A source that counts the bytes read from it. */
function counted(bytes: Uint8Array): SlicedSource & { read: number } {
  return {
    read: 0,
    size: bytes.length,
    slice(start, end) {
      this.read += end - start;
      return new Blob([bytes.slice(start, end)]);
    },
  };
}

describe("compressed entries", () => {
  test("expand to what was compressed", async () => {
    const random = new Random(7);
    for (let round = 0; round < 30; round++) {
      const alphabet = 1 + random.below(256);
      const count = random.below(round === 0 ? 200_000 : 5000);
      const numbers = Uint8Array.from({ length: count }, () => random.below(alphabet));
      const bytes = archive({ entries: [{ ...named("a", npy(numbers)), method: 8 }] });
      expect(await readNpz(bytes), `round ${round}`).toEqual({
        a: fromNumbers(u8, [count], numbers),
      });
    }
  });

  /** 64 MiB of zeros behind a header that asks for four bytes. */
  const bomb = (): Uint8Array => {
    const data = new Uint8Array(2 ** 26);
    data.set(writeNpy(fromNumbers(f32, [1], [1.5])));
    const lie = { stored: deflated(data), size: data.length, method: 8 };
    return archive({ entries: [{ ...entry("a"), ...lie }] });
  };

  test("no more is expanded than the array takes", async () => {
    const source = counted(bomb());
    const file = await openNpz(source);
    source.read = 0;
    expect([...toNumbers(await file.read("a"))]).toEqual([1.5]);
    expect(source.read).toBeLessThan(source.size / 2);
  });

  test("an array beyond the limit is refused before it is expanded", async () => {
    const zeros = fromNumbers(f32, [1 << 16], new Float32Array(1 << 16));
    const bytes = archive({ entries: [{ ...named("a", writeNpy(zeros)), method: 8 }] });
    expect(await codeOf(readNpz(bytes, { expandedLimit: 1000 }))).toBe("TW0111");
    expect(await codeOf(readNpz(bytes, { expandedLimit: 128 + 4 * (1 << 16) }))).toBe("fine");
    const opened = await openNpz(bytes, { expandedLimit: 1000 });
    const stored = await opened.open("a");
    expect(await codeOf(stored.rows(0, 10))).toBe("fine");
    expect(await codeOf(stored.read())).toBe("TW0111");
    expect(await codeOf(readNpz(writeNpz({ zeros }), { expandedLimit: 1000 }))).toBe("fine");
  });

  test("several parts may be asked for at once", async () => {
    const numbers = Array.from({ length: 100_000 }, (_, i) => (i * i) % 251);
    const bytes = archive({ entries: [{ ...named("a", npy(numbers)), method: 8 }] });
    const stored = await (await openNpz(bytes)).open("a");
    const parts = await Promise.all(
      [90_000, 10, 50_000].map((start) => stored.rows(start, start + 100)),
    );
    expect(parts.map((part) => [...toNumbers(part)])).toEqual(
      [90_000, 10, 50_000].map((start) => numbers.slice(start, start + 100)),
    );
  });
});

test("equal arrays make equal archives", () => {
  const x = fromNumbers(f32, [2], [1, 2]);
  expect(writeNpz({ x })).toEqual(writeNpz({ x }));
  expect(() =>
    writeNpz(Object.fromEntries(Array.from({ length: 65535 }, (_, i) => [`${i}`, x]))),
  ).toThrow("TW0109");
});
