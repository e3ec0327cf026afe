/**
 * What is known of the behaviour of Blackwell's tensor memory and of what comes with it, by number, and the test that shows each: a row names a file and text in it that
 * stands in the test. A test that goes away is missed here. What has no test has a line in docs/blackwell.md.
 *
 *   38   a first product ignores what is there      order.test.ts, "38: what an accumulator holds does not matter …"
 */
import { expect, test } from "vitest";
import { readText } from "./source-files.ts";

type Shown = readonly [file: string, text: string];
interface Behaviour {
  readonly of: string;
  readonly shown: readonly Shown[];
}

const emulator = (file: string): string => `src/emulator/tensor-memory/${file}.test.ts`;
const products = (text: string): Shown => [emulator("products"), text];
const scaled = (text: string): Shown => [emulator("scaled"), text];
const access = (text: string): Shown => [emulator("access"), text];
const order = (text: string): Shown => [emulator("order"), text];
const language = (text: string): Shown => ["test/tensor-memory.test.ts", text];
const unions = (text: string): Shown => ["test/tensor-memory-unions.test.ts", text];
const pairs = (text: string): Shown => ["test/block-pairs.test.ts", text];
const faults = (text: string): Shown => ["test/pair-faults.test.ts", text];
const triton = (text: string): Shown => ["test/foreign/triton-tensor-memory.test.ts", text];
const random: Shown = [
  "test/fuzz/tensor-memory/tensor-memory.test.ts",
  "simulator and emulator agree",
];
const launches = (text: string): Shown => [
  "src/emulator/copies/cluster-launch-control.test.ts",
  text,
];

const behaviours: { readonly [number: string]: Behaviour } = {
  1: {
    of: "f16, 64 and 128 rows, each swizzle",
    shown: [products(`{ a: "f16", m: 128, n: 64, swizzleA: "128" }`), random],
  },
  2: { of: "bf16", shown: [products(`{ a: "bf16", m: 64, n: 72, swizzleA: "64" }`), random] },
  3: { of: "e4m3", shown: [products(`{ a: "e4m3", m: 128, n: 136, swizzleA: "32" }`), random] },
  4: {
    of: "e5m2; more columns than an instruction has",
    shown: [
      products(`{ a: "e5m2", m: 64, n: 256, swizzleA: "128" }`),
      language(`["320 columns", {`),
    ],
  },
  5: {
    of: "sums in f16",
    shown: [products(`{ a: "f16", m: 128, n: 32, d: "f16" }`), language(`["f16 into f16", {`)],
  },
  6: {
    of: "factors along k and across it",
    shown: [
      products(`majorA: "mn", majorB: "mn", swizzleA: "none", steps: 2 }`),
      language(`["both across", {`),
    ],
  },
  7: { of: "a swizzle for each factor", shown: [products(`swizzleA: "128", swizzleB: "32" }`)] },
  8: { of: "tiles in the other order", shown: [products(`swizzleA: "64", turned: true }`)] },
  9: { of: "s8 into s32", shown: [products(`{ a: "s8", m: 128, n: 64 }`), random] },
  10: {
    of: "u8 with a in tensor memory",
    shown: [products(`{ a: "u8", m: 128, n: 64, aInTensorMemory: true }`), random],
  },
  11: {
    of: "f16 and bf16 with a in tensor memory",
    shown: [products(`{ a: "f16", m: 128, n: 160, aInTensorMemory: true }`), random],
  },
  12: {
    of: "64 rows, in either lanes",
    shown: [products(`{ a: "f16", m: 64, n: 64, lane: 16 }`), random],
  },
  13: {
    of: "pairs, each order of factors",
    shown: [
      products(`{ a: "f16", m: 128, n: 256, majorA: "mn" }`),
      pairs(`["160 columns, a by columns"`),
      pairs(`["128 rows, 160 columns"`),
      pairs(`["128 rows, both across"`),
    ],
  },
  14: {
    of: "pairs with a in tensor memory",
    shown: [
      products(`{ a: "f16", m: 256, n: 192, aInTensorMemory: true }`),
      pairs(`["128 rows, a in tensor memory"`),
      pairs(`["224 columns, a in tensor memory"`),
    ],
  },
  15: {
    of: "e5m2 with scales of blocks",
    shown: [scaled(`{ kind: "mxf8f6f4", a: "e5m2", m: 128, n: 32, vector: 1 }`)],
  },
  16: {
    of: "e4m3 with scales, also with a in tensor memory",
    shown: [scaled(`a: "e4m3", m: 128, n: 192, vector: 1, aInTensorMemory: true }`), random],
  },
  17: {
    of: "e2m1 with scales of e8m0 and e4m3",
    shown: [
      scaled(`{ kind: "mxf4", a: "e2m1", m: 128, n: 128, vector: 2, id: 2 }`),
      scaled(`{ kind: "mxf4nvf4", a: "e2m1", m: 128, n: 64, vector: 4, scale: "ue4m3" }`),
    ],
  },
  18: {
    of: "scales in pairs of 256 rows",
    shown: [
      scaled(`{ kind: "mxf8f6f4", a: "e4m3", m: 256, n: 64, vector: 1, pair: true }`),
      pairs("products of a pair with scales"),
    ],
  },
  19: {
    of: "scales in pairs of 128 rows, those of b by halves",
    shown: [
      scaled(`{ kind: "mxf8f6f4", a: "e4m3", m: 128, n: 128, vector: 1, pair: true }`),
      pairs("{ m: 128, n: 64, k: 160, collective: false }"),
    ],
  },
  20: {
    of: "e4m3 by e5m2 with scales",
    shown: [scaled(`a: "e4m3", b: "e5m2", m: 128, n: 64, vector: 1, id: 1, copied: true }`)],
  },
  21: {
    of: "sparse f16, i8 and FP8",
    shown: [scaled(`{ kind: "i8", a: "s8", m: 128, n: 32, sparse: true }`)],
  },
  22: {
    of: "sparse with a in tensor memory",
    shown: [scaled(`m: 128, n: 64, sparse: true, aInTensorMemory: true }`)],
  },
  23: {
    of: "sparse in pairs",
    shown: [scaled(`{ kind: "f16", a: "f16", m: 256, n: 64, sparse: true, pair: true }`)],
  },
  24: {
    of: "sparse FP8 with scales",
    shown: [scaled(`a: "e4m3", m: 128, n: 32, vector: 1, sparse: true }`)],
  },
  25: {
    of: "sparse FP4 with scales",
    shown: [scaled(`{ kind: "mxf4", a: "e2m1", m: 128, n: 32, vector: 2, sparse: true }`)],
  },
  26: {
    of: "stores and loads, plain and packed",
    shown: [access("26 to 28: round trips"), language(`describe("loads and stores"`)],
  },
  27: { of: "the same by rows", shown: [access(`["32x32b", 8, 8]`)] },
  28: {
    of: "columns at any place",
    shown: [access("[%r3+1]"), unions("28: slices of columns"), random],
  },
  29: { of: "a single register", shown: [access("29: a single register")] },
  30: { of: "loads that reduce", shown: [access("30: loads that reduce")] },
  31: { of: "copies to all quarters", shown: [access("32x128b.warpx4 replicates its rows")] },
  32: { of: "copies of every shape and swizzle", shown: [access("31, 32, 36: copies")] },
  33: {
    of: "copies in a pair",
    shown: [access("33: in a pair"), pairs("tcgen05Copy(first, aScales, { pair })")],
  },
  34: { of: "which cell each register is", shown: [access("34: loads of every shape")] },
  35: { of: "shifts", shown: [access("35: shifted down")] },
  36: { of: "copies without a swizzle", shown: [access("128x256b without a swizzle")] },
  37: {
    of: "columns used again",
    shown: [
      [emulator("forms"), "37: columns are used again"],
      unions("37: members of a union"),
      unions("37: buffers of scopes"),
      unions("37: tiles by their number"),
      random,
    ],
  },
  38: { of: "a first product ignores what is there", shown: [order("38: what an accumulator")] },
  39: { of: "whether it adds, by a predicate", shown: [order("39: whether it adds"), random] },
  40: { of: "each barrier has its own arrival", shown: [order("40, 41: each barrier")] },
  41: { of: "a commit of nothing", shown: [order("40, 41: each barrier")] },
  42: { of: "commits to both blocks", shown: [order("42: multicast"), faults("doneMulticast")] },
  43: { of: "one block more than there is room for", shown: [launches("43: one block more")] },
  44: { of: "persistent blocks in either order", shown: [launches("44: persistent blocks")] },
  45: {
    of: "copies of a pair that tell the leader",
    shown: [
      [emulator("pair"), "TW8094: a copy of one block does not tell"],
      pairs("scales of b by a collective copy"),
      faults("a wait for both blocks' copies"),
    ],
  },
  46: {
    of: "gathers and scatters of four rows",
    shown: [
      ["src/emulator/copies/gather.test.ts", "46: a gather of four rows"],
      ["src/emulator/copies/gather.test.ts", "46: a scatter to four rows"],
    ],
  },
  47: { of: "products of Triton", shown: [triton(`name: "f16",`), triton(`name: "f16-m64",`)] },
  48: {
    of: "products with scales of Triton, and of one warp",
    shown: [
      triton(`{ name: "mxfp8",`),
      ["src/emulator/tensor-cores/scaled-dot.test.ts", "48: mxfp8, scales at random"],
    ],
  },
  49: {
    of: "FP4 along k",
    shown: [
      triton(`{ name: "nvfp4",`),
      ["src/emulator/tensor-cores/scaled-dot.test.ts", "49: $kind with $scale"],
    ],
  },
  50: {
    of: "FP8 by FP4 in whole bytes",
    shown: [["src/emulator/tensor-cores/scaled-dot.test.ts", "50: mxfp8 by mxfp4"]],
  },
  51: {
    of: "scales in tiles",
    shown: [["src/emulator/tensor-cores/scaled-dot.test.ts", "with scales in tiles (51)"]],
  },
  52: { of: "a second product of what a first one gave", shown: [triton(`describe("attention"`)] },
  53: { of: "attention", shown: [triton(`describe("attention"`)] },
  63: { of: "store, then load", shown: [order("63: a store is over at wait::st")] },
  64: { of: "load, then store", shown: [order("64: a load is over at wait::ld")] },
  65: { of: "commits do not wait for loads and stores", shown: [order("65: a commit waits")] },
  66: { of: "store, then product", shown: [order("66: a store to what a product")] },
  67: { of: "load, then product or copy", shown: [order("67: a load of what a product")] },
  68: { of: "loads in any order", shown: [order("68: loads of one place")] },
  69: { of: "products in order", shown: [order("69: products on one accumulator")] },
  70: { of: "commits are for what comes before", shown: [order("70: a commit is for")] },
  71: { of: "nobody touches a live accumulator", shown: [order("71: nobody stores")] },
  72: { of: "products of two threads", shown: [order("72: products of two threads")] },
  73: { of: "stores to shared memory, then product", shown: [order("73: what threads write")] },
  74: { of: "live factors and sources", shown: [order("74: operands and sources")] },
  75: { of: "copy, then product", shown: [order("75: a copy stays before")] },
  76: { of: "copy, then load", shown: [order("76: what is copied")] },
  77: { of: "two copies to one place", shown: [order("77, 78: copies to one place")] },
  78: { of: "a copy to a live accumulator", shown: [order("77, 78: copies to one place")] },
  79: { of: "the commit of another thread", shown: [order("79: the commit of a thread")] },
  80: { of: "TMA and a commit on one barrier", shown: [order("80: a copy by TMA and a commit")] },
};

/** What there is no test of, as docs/blackwell.md says it. */
const untested = ["FP4 that lies along the rows"];

const numbers = [...Array.from({ length: 53 }, (_, at) => at + 1)];
for (let number = 63; number <= 80; number += 1) numbers.push(number);

test("each behaviour has a row", () => {
  expect(Object.keys(behaviours)).toEqual(numbers.map(String));
});

test.each(Object.entries(behaviours))("%s: has a test that is there", (_, { shown }) => {
  expect(shown.length).toBeGreaterThan(0);
  const missing = shown.filter(([file, text]) => !readText(file).includes(text));
  expect(missing).toEqual([]);
});

test("what has none is said", () => {
  const page = readText("docs/blackwell.md").replace(/\s+/g, " ");
  expect(untested.filter((text) => !page.includes(text))).toEqual([]);
});
