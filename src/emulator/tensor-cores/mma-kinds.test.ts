/** `mma.sync` with a `.kind`, held against exact integers that are cut as tensor cores cut them. */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { runPtx } from "../../../test/support/ptx-kernel.ts";

const seed = 50;
const [rows, columns] = [16, 8];

interface Format {
  readonly exponentBits: number;
  readonly mantissaBits: number;
  readonly bias: number;
  /** Codes that are numbers, without their signs. */
  readonly finite: number;
}

const formats: { readonly [name: string]: Format } = {
  e4m3: { exponentBits: 4, mantissaBits: 3, bias: 7, finite: 0x7f },
  e5m2: { exponentBits: 5, mantissaBits: 2, bias: 15, finite: 0x7c },
  e2m3: { exponentBits: 2, mantissaBits: 3, bias: 1, finite: 0x20 },
  e3m2: { exponentBits: 3, mantissaBits: 2, bias: 3, finite: 0x20 },
  e2m1: { exponentBits: 2, mantissaBits: 1, bias: 1, finite: 0x8 },
  ue4m3: { exponentBits: 4, mantissaBits: 3, bias: 7, finite: 0x7f },
};

/** A number as integer · 2^(exponent − bits), with the exponent that it is aligned by; none of zero. */
interface Term {
  readonly integer: bigint;
  readonly bits: number;
  readonly exponent: number | undefined;
}

function termOf(name: string, code: number): Term {
  const { exponentBits, mantissaBits, bias } = formats[name] as Format;
  const magnitude = code % 2 ** (exponentBits + mantissaBits);
  const field = magnitude >> mantissaBits;
  const fraction = magnitude % 2 ** mantissaBits;
  const integer = BigInt(field === 0 ? fraction : fraction + 2 ** mantissaBits);
  return {
    integer: magnitude === code ? integer : -integer,
    bits: mantissaBits,
    exponent: integer === 0n ? undefined : Math.max(field, 1) - bias,
  };
}

/** What is added, as an integer · 2^scale, and its exponent. */
interface Addend {
  readonly integer: bigint;
  readonly scale: number;
  readonly exponent: number | undefined;
}

/** The sum of what is left of each addend above `fraction` bits below the largest, cut to f32. */
function sumOf(addends: readonly Addend[], fraction: number): number {
  const exponents = addends.flatMap(({ exponent }) => (exponent === undefined ? [] : [exponent]));
  if (exponents.length === 0) return 0;
  const unit = Math.max(...exponents) - fraction;
  const total = addends.reduce((sum, { integer, scale }) => {
    const shift = BigInt(scale - unit);
    // Integers of BigInt divide towards zero.
    return sum + (shift >= 0n ? integer << shift : integer / (1n << -shift));
  }, 0n);
  const magnitude = total < 0n ? -total : total;
  const dropped = BigInt(Math.max(0, magnitude.toString(2).length - 24));
  const kept = Number((magnitude >> dropped) << dropped) * 2 ** unit;
  return total < 0n ? -kept : kept;
}

const word = new DataView(new ArrayBuffer(4));

function singleBits(value: number): number {
  word.setFloat32(0, value);
  return word.getUint32(0);
}

function addendOfSingle(value: number): Addend {
  const exponent = value === 0 ? undefined : Math.floor(Math.log2(Math.abs(value)));
  const scale = (exponent ?? 0) - 23;
  return { integer: BigInt(value * 2 ** -scale), scale, exponent };
}

interface Kind {
  readonly kind: string;
  readonly a: string;
  readonly b: string;
  readonly k: number;
  readonly scale?: "ue8m0" | "ue4m3";
  /** Scales of a row. */
  readonly count?: 1 | 2 | 4;
  readonly sparse?: boolean;
}

const isPacked = ({ kind }: Kind): boolean => kind.startsWith("mxf4");

/** Words of a lane that has rows of codes as fragments. */
function fragments(kind: Kind, format: string, codes: readonly (readonly number[])[]): Uint32Array {
  const depth = codes[0]?.length ?? 0;
  const bits = isPacked(kind) ? 4 : 8;
  const perLane = ((codes.length / 8) * depth * bits) / 128;
  const words = new Uint32Array(32 * perLane);
  const shift = !isPacked(kind) && format === "e2m1" ? 2 : 0;
  codes.forEach((line, row) =>
    line.forEach((code, at) => {
      const bit = at * bits;
      const lane = 4 * (row & 7) + ((bit >> 5) & 3);
      const register = codes.length === rows ? 2 * (bit >> 7) + (row >> 3) : bit >> 7;
      const index = lane * perLane + register;
      words[index] = (words[index] ?? 0) | ((code << shift) << (bit & 31));
    }),
  );
  return words;
}

function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.buffer);
}

interface Draw {
  readonly a: readonly (readonly number[])[];
  readonly b: readonly (readonly number[])[];
  readonly c: readonly number[];
  readonly scalesA: readonly (readonly number[])[];
  readonly scalesB: readonly (readonly number[])[];
  /** Of a sparse A, the k of each element. */
  readonly places: readonly (readonly number[])[];
  readonly metadata: readonly (readonly number[])[];
}

function draw(kind: Kind, random: Random): Draw {
  const codes = (name: string, count: number): number[] => {
    const { exponentBits, mantissaBits, finite } = formats[name] as Format;
    const sign = 2 ** (exponentBits + mantissaBits);
    return Array.from({ length: count }, () => random.below(finite) + random.below(2) * sign);
  };
  const scales = (): number[] =>
    Array.from({ length: kind.count ?? 0 }, () =>
      kind.scale === "ue4m3" ? random.below(0x7f) : 110 + random.below(34),
    );
  const depth = kind.sparse === true ? kind.k / 2 : kind.k;
  const list = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
  // Of four elements two are there; of eight nibbles two pairs.
  const metadata = list(rows, () =>
    list(kind.sparse === true ? 16 : 0, () =>
      random.pick([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110]),
    ),
  );
  const each = isPacked(kind) ? 2 : 1;
  const places = metadata.map((chunks) =>
    chunks.flatMap((bits, chunk) =>
      [bits & 3, bits >> 2].flatMap((index) =>
        list(each, () => 0).map((_, at) => 4 * each * chunk + index * each + at),
      ),
    ),
  );
  return {
    a: list(rows, () => codes(kind.a, depth)),
    b: list(columns, () => codes(kind.b, kind.k)),
    c: list(rows * columns, () => Math.fround((random.uniform() - 0.5) * 2 ** random.below(12))),
    scalesA: list(rows, scales),
    scalesB: list(columns, scales),
    ...{ places, metadata },
  };
}

function expected(kind: Kind, given: Draw, row: number, column: number): number {
  const [a = [], b = []] = [given.a[row], given.b[column]];
  const places = kind.sparse === true ? (given.places[row] ?? []) : a.map((_, at) => at);
  const products = a.map((code, at) => {
    const [left, right] = [termOf(kind.a, code), termOf(kind.b, b[places[at] ?? 0] ?? 0)];
    return { at, left, right };
  });
  const scaleOf = (list: readonly number[] | undefined, at: number, depth: number): number =>
    list?.[Math.floor((at * (kind.count ?? 1)) / depth)] ?? 127;
  const old = addendOfSingle(given.c[row * columns + column] ?? 0);
  if (!isPacked(kind)) {
    const addends = products.map(({ at, left, right }) => {
      const scale =
        kind.scale === undefined
          ? 0
          : scaleOf(given.scalesA[row], at, a.length) +
            scaleOf(given.scalesB[column], at, a.length) -
            254;
      const both = (left.exponent ?? 0) + (right.exponent ?? 0) + scale;
      const isZero = left.exponent === undefined || right.exponent === undefined;
      const integer = left.integer * right.integer;
      return { integer, scale: both - left.bits - right.bits, exponent: isZero ? undefined : both };
    });
    return sumOf([old, ...addends], 25);
  }
  const groups = Array.from({ length: a.length / 16 }, (_, group) => {
    const terms = products.slice(16 * group, 16 * group + 16);
    // Values of e2m1 are halves, so that products are quarters.
    const quarters = terms.reduce((sum, { left, right }) => {
      const [one, other] = [left, right].map(
        ({ integer, exponent = 0 }) => integer << BigInt(exponent),
      ) as [bigint, bigint];
      return sum + one * other;
    }, 0n);
    const [one, other] = [given.scalesA[row], given.scalesB[column]].map((list): Term => {
      const code = scaleOf(list, 16 * group, a.length);
      if (kind.scale === "ue4m3") return termOf("ue4m3", code);
      return { integer: 1n, bits: 0, exponent: code - 127 };
    }) as [Term, Term];
    const isZero = one.exponent === undefined || other.exponent === undefined;
    const exponent = (one.exponent ?? 0) + (other.exponent ?? 0);
    return {
      integer: quarters * one.integer * other.integer,
      scale: exponent - 2 - one.bits - other.bits,
      exponent: isZero ? undefined : exponent,
    };
  });
  return sumOf([old, ...groups], 35);
}

interface Ids {
  readonly byte: number;
  readonly threadA: number;
  readonly threadB: number;
}

/** Registers of scales: those of the lanes that have them, and noise elsewhere. */
function scaleWords(given: Draw, side: "a" | "b", { byte, threadA, threadB }: Ids, random: Random) {
  const words = Uint32Array.from({ length: 32 }, () => random.bits());
  const lines = side === "a" ? given.scalesA : given.scalesB;
  lines.forEach((codes, line) => {
    const quad = 4 * (line & 7);
    const lane = side === "a" ? quad + 2 * threadA + (line >> 3) : quad + threadB;
    codes.forEach((code, at) => {
      const shift = 8 * (byte + at);
      words[lane] = ((words[lane] ?? 0) & ~(0xff << shift)) | (code << shift);
    });
  });
  return words;
}

function load(array: string, prefix: string, count: number): string {
  return [
    `mul.wide.u32 %d1, %thread, ${4 * count}; add.u64 %d1, %d1, %${array};`,
    ...Array.from({ length: count }, (_, at) => `ld.global.b32 %r${prefix}${at}, [%d1+${4 * at}];`),
  ].join("\n");
}

const list = (prefix: string, count: number): string =>
  `{${Array.from({ length: count }, (_, at) => `%r${prefix}${at}`).join(", ")}}`;

function opcodeOf({ kind, a, b, k, scale, count, sparse }: Kind): string {
  const scaled = scale === undefined ? "" : `.block_scale.scale_vec::${count}X`;
  const name = sparse === true ? "mma.sp::ordered_metadata" : "mma";
  const end = scale === undefined ? "" : `.${scale}`;
  return `${name}.sync.aligned.kind::${kind}${scaled}.m16n8k${k}.row.col.f32.${a}.${b}.f32${end}`;
}

function metadataWords(given: Draw): Uint32Array {
  const words = new Uint32Array(32);
  given.metadata.forEach((chunks, row) =>
    chunks.forEach((bits, chunk) => {
      const lane = 4 * (row & 7) + 2 * (chunk >> 3) + (row >> 3);
      words[lane] = (words[lane] ?? 0) | (bits << (4 * (chunk & 7)));
    }),
  );
  return words;
}

function runKind(kind: Kind, given: Draw, ids: Ids, random: Random, target: "sm_100a" | "sm_120a") {
  const [a, b] = [fragments(kind, kind.a, given.a), fragments(kind, kind.b, given.b)];
  const c = new Uint32Array(128);
  given.c.forEach((value, index) => {
    const [row, column] = [index >> 3, index & 7];
    c[4 * (4 * (row & 7) + (column >> 1)) + 2 * (row >> 3) + (column & 1)] = singleBits(value);
  });
  const [countA, countB] = [a.length / 32, b.length / 32];
  const sparse = kind.sparse === true ? ", %r60, 0" : "";
  const scales =
    kind.scale === undefined ? "" : `, {%r70}, {${ids.byte}, ${ids.threadA}}, %r80, {%h0, %h1}`;
  const body = `${load("a", "1", countA)} ${load("b", "2", countB)} ${load("c", "3", 4)}
    ${load("m", "6", 1)} ${load("sa", "7", 1)} ${load("sb", "8", 1)}
    mov.b16 %h0, ${ids.byte}; mov.b16 %h1, ${ids.threadB};
    ${opcodeOf(kind)} ${list("4", 4)}, ${list("1", countA)}, ${list("2", countB)}, ${list("3", 4)}${sparse}${scales};
    mul.wide.u32 %d1, %thread, 16; add.u64 %d1, %d1, %out;
    st.global.v4.b32 [%d1], ${list("4", 4)};`;
  const { arrays, codes } = runPtx({
    body,
    target,
    arrays: {
      ...{ a: bytesOf(a), b: bytesOf(b), c: bytesOf(c), m: bytesOf(metadataWords(given)) },
      sa: bytesOf(scaleWords(given, "a", ids, random)),
      sb: bytesOf(scaleWords(given, "b", ids, random)),
      out: 512,
    },
  });
  const words = new Uint32Array(arrays["out"]?.buffer ?? new ArrayBuffer(512));
  const found = given.c.map((_, index) => {
    const [row, column] = [index >> 3, index & 7];
    return words[4 * (4 * (row & 7) + (column >> 1)) + 2 * (row >> 3) + (column & 1)] ?? 0;
  });
  return { found, codes };
}

function expectKind(kind: Kind, ids: Ids, target: "sm_100a" | "sm_120a" = "sm_120a"): void {
  const random = new Random(seed);
  const given = draw(kind, random);
  const { found, codes } = runKind(kind, given, ids, random, target);
  expect(codes).toEqual([]);
  const wanted = given.c.map((_, index) =>
    singleBits(expected(kind, given, index >> 3, index & 7)),
  );
  expect(found, `seed ${seed}`).toEqual(wanted);
}

const first: Ids = { byte: 0, threadA: 0, threadB: 0 };

describe("f8f6f4", () => {
  test.each([
    ["e4m3", "e4m3", 32],
    ["e5m2", "e4m3", 16],
    ["e2m3", "e3m2", 32],
    ["e2m1", "e4m3", 32],
    ["e2m1", "e2m1", 32],
  ] as const)("%s by %s, k %i", (a, b, k) => {
    expectKind({ kind: "f8f6f4", a, b, k }, first);
  });

  test("of eight bits also on sm_100a", () => {
    expectKind({ kind: "f8f6f4", a: "e4m3", b: "e5m2", k: 32 }, first, "sm_100a");
  });

  test("sparse", () => {
    expectKind({ kind: "f8f6f4", a: "e4m3", b: "e2m1", k: 64, sparse: true }, first);
  });
});

/** Every byte and thread that scales may come from. */
describe("with scales of blocks", () => {
  test.each([
    ["e4m3", "e4m3", first],
    ["e5m2", "e2m1", { byte: 1, threadA: 1, threadB: 3 }],
    ["e3m2", "e2m3", { byte: 3, threadA: 0, threadB: 2 }],
  ] as const)("mxf8f6f4: %s by %s", (a, b, ids) => {
    expectKind({ kind: "mxf8f6f4", a, b, k: 32, scale: "ue8m0", count: 1 }, ids);
  });

  test.each([
    ["mxf4", "ue8m0", 2, first],
    ["mxf4", "ue8m0", 2, { byte: 2, threadA: 1, threadB: 1 }],
    ["mxf4nvf4", "ue8m0", 2, { byte: 2, threadA: 0, threadB: 3 }],
    ["mxf4nvf4", "ue4m3", 4, { byte: 0, threadA: 1, threadB: 2 }],
  ] as const)("%s with %s, %i a row", (kind, scale, count, ids) => {
    expectKind({ kind, a: "e2m1", b: "e2m1", k: 64, scale, count }, ids);
  });

  test.each([
    [{ kind: "mxf8f6f4", a: "e4m3", b: "e5m2", k: 64, scale: "ue8m0", count: 1 }],
    [{ kind: "mxf4", a: "e2m1", b: "e2m1", k: 128, scale: "ue8m0", count: 2 }],
    [{ kind: "mxf4nvf4", a: "e2m1", b: "e2m1", k: 128, scale: "ue4m3", count: 4 }],
  ] as const)("sparse: %o", (kind) => {
    expectKind({ ...kind, sparse: true }, { byte: 0, threadA: 1, threadB: 1 });
  });

  test("a scale that is NaN makes its row and column NaN", () => {
    const random = new Random(seed);
    const kind: Kind = { kind: "mxf8f6f4", a: "e4m3", b: "e4m3", k: 32, scale: "ue8m0", count: 1 };
    const given = draw(kind, random);
    const scalesA = given.scalesA.map((codes, row) => (row === 9 ? [255] : codes));
    const scalesB = given.scalesB.map((codes, column) => (column === 2 ? [255] : codes));
    const { found } = runKind(kind, { ...given, scalesA, scalesB }, first, random, "sm_120a");
    const nans = found.flatMap((bits, index) => (bits === 0x7fffffff ? [index] : []));
    const wanted = given.c.flatMap((_, index) =>
      index >> 3 === 9 || (index & 7) === 2 ? [index] : [],
    );
    expect(nans).toEqual(wanted);
  });

  test("threads that disagree on a byte, and bytes that have no scales, are reported", () => {
    const run = (id: string) =>
      runPtx({
        body: `${Array.from({ length: 20 }, (_, at) => `mov.b32 %r${at}, 0;`).join(" ")} mov.b32 %r20, 127; mov.b16 %h1, 0; ${id}
          mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0
            {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, {%r10,%r11,%r12,%r13}, %r20, {%h0,%h1}, %r20, {%h1,%h1};`,
        target: "sm_120a",
      }).codes;
    expect(run("mov.b16 %h0, 0;")).toEqual([]);
    expect(run("cvt.u16.u32 %h0, %thread;")).toEqual(["TW8074"]);
    expect(run("mov.b16 %h0, 1;")).toEqual(["TW8090"]);
  });
});
