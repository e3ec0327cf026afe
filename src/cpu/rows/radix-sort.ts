/**
 * Sorting by digits, the least first: each pass counts the digits, sums the counts, and puts every record where its digit belongs, which
 * keeps the order of equal ones. All passes are counted in one walk, and a pass in which all digits are equal is left out.
 *
 *   f32      bits        ordered as unsigned numbers
 *   -1.5     bfc00000    403fffff      negative ones are inverted
 *   -0       80000000    7fffffff
 *   +0       00000000    80000000      others get the top bit
 *   NaN      7fc00000    ffc00000      every NaN is the one of its format, and last
 *
 * Descending order is that of the inverted bits. A record is the key, or the key above its index: 4, 8 or 16 bytes.
 */
import { isFloat } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { floatFormats } from "../../formats/floats.ts";
import { constant, i32, load, op, read, select } from "../loops/builder.ts";
import type { FunctionBuilder, ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression, Local } from "../loops/ir.ts";

export interface RadixSort {
  /** A number format, an element a slot. */
  readonly key: DType;
  readonly descending?: boolean;
  /** Whether indices of the sorted elements are given as well: i32. */
  readonly indices?: boolean;
  /** Bits of a digit: 11 for long rows, 8 for short ones, where counting 2,048 digits would take longer than sorting. */
  readonly digit?: 8 | 11;
}

interface Plan {
  readonly width: 8 | 16 | 32 | 64;
  readonly word: "i32" | "i64";
  readonly hasIndex: boolean;
  readonly recordBytes: number;
  /** Bits below the key in a record's word. */
  readonly below: number;
  readonly digit: number;
  readonly passes: number;
}

function planOf({ key, indices = false, digit = 11 }: RadixSort): Plan {
  const width = key.bits === 4 ? 8 : key.bits;
  const isWide = width === 64;
  return {
    width,
    word: isWide || indices ? "i64" : "i32",
    hasIndex: indices,
    recordBytes: isWide && indices ? 16 : isWide || indices ? 8 : 4,
    below: indices && !isWide ? 32 : 0,
    digit,
    passes: Math.ceil(width / digit),
  };
}

/** Bytes of scratch for so many elements: two lists of records, and the counts. */
export function radixSortScratchBytes(sort: RadixSort, count: number): number {
  const { recordBytes, passes, digit } = planOf(sort);
  return 2 * count * recordBytes + passes * 2 ** digit * 4 + 64;
}

/** Parameters: keys, sorted keys (may be the same memory), indices (where there are some), count, scratch aligned to 16. */
export function defineRadixSort(module: ModuleBuilder, sort: RadixSort): Callee {
  const plan = planOf(sort);
  const names = ["keys", "sorted", "indices", "count", "scratch"];
  return module.define(
    `sort_${sort.key.name}`,
    names.map(() => "i32" as const),
    [],
    (builder, keys, sorted, indices, count, scratch) => {
      if (!keys || !sorted || !indices || !count || !scratch)
        throw new Error(`a sort takes ${names.join(", ")}`);
      new Sort(builder, sort, plan, scratch, count).run(keys, sorted, indices);
    },
    { names },
  );
}

class Sort {
  readonly #builder: FunctionBuilder;
  readonly #sort: RadixSort;
  readonly #plan: Plan;
  readonly #count: Expression;
  readonly #counts: Expression;
  readonly #from: Local;
  readonly #to: Local;

  constructor(
    builder: FunctionBuilder,
    sort: RadixSort,
    plan: Plan,
    scratch: Expression,
    count: Expression,
  ) {
    this.#builder = builder;
    this.#sort = sort;
    this.#plan = plan;
    this.#count = count;
    this.#counts = scratch;
    const first = i32.add(scratch, i32.of(plan.passes * 2 ** plan.digit * 4));
    this.#from = builder.variable(first, "from");
    const listBytes = i32.mul(count, i32.of(plan.recordBytes));
    this.#to = builder.variable(i32.add(read(this.#from), listBytes), "to");
  }

  run(keys: Expression, sorted: Expression, indices: Expression): void {
    const { passes } = this.#plan;
    const builder = this.#builder;
    // Nothing is read of an empty list.
    builder.if(this.#count, () => {
      this.#read(keys);
      this.#countDigits();
      for (let pass = 0; pass < passes; pass++) this.#pass(pass);
      this.#write(sorted, indices);
    });
  }

  #word(name: WordOperation, left: Expression, right: Expression): Expression {
    const { word } = this.#plan;
    return wordOperation(word, name, left, right);
  }

  #number(value: bigint): Expression {
    return this.#plan.word === "i64"
      ? constant("i64", BigInt.asIntN(64, value))
      : i32.of(Number(BigInt.asIntN(32, value)));
  }

  /** A loop over records: their addresses. */
  #records(list: Expression, body: (at: Expression) => void): void {
    const { recordBytes } = this.#plan;
    const end = i32.add(list, i32.mul(this.#count, i32.of(recordBytes)));
    this.#builder.countedLoop(list, end, recordBytes, body, "record");
  }

  /** Keys as ordered bits, with their indices. */
  #read(keys: Expression): void {
    const { width, word, hasIndex, below } = this.#plan;
    const builder = this.#builder;
    const bytes = width / 8;
    const source = builder.variable(keys, "key");
    const index = builder.variable(i32.of(0), "index");
    const loads = { 8: "i32.load8_u", 16: "i32.load16_u", 32: "i32.load" } as const;
    this.#records(read(this.#from), (at) => {
      const loaded =
        width === 64
          ? load("i64.load", read(source))
          : word === "i64"
            ? op("i64.extend_i32_u", load(loads[width], read(source)))
            : load(loads[width], read(source));
      let record = this.#ordered(builder.keep(loaded));
      if (hasIndex && below > 0) {
        const place = op("i64.extend_i32_u", read(index));
        record = op("i64.or", op("i64.shl", record, constant("i64", BigInt(below))), place);
      }
      builder.store(`${word}.store`, at, record);
      if (hasIndex && below === 0) builder.store("i32.store", at, read(index), 8);
      builder.set(source, i32.add(read(source), i32.of(bytes)));
      if (hasIndex) builder.set(index, i32.add(read(index), i32.of(1)));
    });
  }

  /** Bits whose order as unsigned numbers is that of the keys. */
  #ordered(bits: Expression): Expression {
    const { width } = this.#plan;
    const { key, descending = false } = this.#sort;
    const builder = this.#builder;
    const all = (1n << BigInt(width)) - 1n;
    const top = 1n << BigInt(width - 1);
    let ordered = bits;
    if (key.kind === "signed") ordered = this.#word("xor", bits, this.#number(top));
    else if (isFloat(key)) {
      const { nan = 0, exponentBits, mantissaBits } = floatFormats[key.name];
      const place = key.name === "tf32" ? 23 : mantissaBits;
      const infinity = ((1n << BigInt(exponentBits)) - 1n) << BigInt(place);
      const magnitude = this.#word("and", bits, this.#number(top - 1n));
      const isNan = this.#word("gt_u", magnitude, this.#number(infinity));
      const known = builder.keep(select(isNan, this.#number(exactNan(nan, width)), bits));
      const sign = this.#word("and", known, this.#number(top));
      const isNegative = wordTest(this.#plan.word, sign, this.#number(0n));
      const mask = select(isNegative, this.#number(all), this.#number(top));
      ordered = this.#word("xor", known, mask);
    }
    return descending ? this.#word("xor", ordered, this.#number(all)) : ordered;
  }

  /** The keys again. */
  #original(ordered: Expression): Expression {
    const { width, word } = this.#plan;
    const { key, descending = false } = this.#sort;
    const builder = this.#builder;
    const all = (1n << BigInt(width)) - 1n;
    const top = 1n << BigInt(width - 1);
    const up = builder.keep(descending ? this.#word("xor", ordered, this.#number(all)) : ordered);
    if (key.kind === "signed") return this.#word("xor", up, this.#number(top));
    if (!isFloat(key)) return up;
    const isPositive = wordTest(word, this.#word("and", up, this.#number(top)), this.#number(0n));
    return this.#word("xor", up, select(isPositive, this.#number(top), this.#number(all)));
  }

  #digitOf(record: Expression, pass: number): Expression {
    const { word, below, digit } = this.#plan;
    const shifted = this.#word("shr_u", record, this.#number(BigInt(below + pass * digit)));
    const narrow = word === "i64" ? op("i32.wrap_i64", shifted) : shifted;
    return op("i32.and", narrow, i32.of(2 ** digit - 1));
  }

  /** The address of a digit's count. */
  #place(digit: Expression): Expression {
    return i32.add(this.#counts, op("i32.shl", digit, i32.of(2)));
  }

  #offset(pass: number): number {
    return pass * 2 ** this.#plan.digit * 4;
  }

  #countDigits(): void {
    const { passes, digit, word } = this.#plan;
    const builder = this.#builder;
    const bytes = i32.of(passes * 2 ** digit * 4);
    builder.run(op("memory.fill", this.#counts, i32.of(0), bytes));
    this.#records(read(this.#from), (at) => {
      const record = builder.keep(load(`${word}.load`, at));
      for (let pass = 0; pass < passes; pass++) {
        const place = builder.keep(this.#place(this.#digitOf(record, pass)));
        const more = i32.add(load("i32.load", place, this.#offset(pass)), i32.of(1));
        builder.store("i32.store", place, more, this.#offset(pass));
      }
    });
  }

  #pass(pass: number): void {
    const { word, digit, recordBytes, hasIndex, below } = this.#plan;
    const builder = this.#builder;
    const offset = this.#offset(pass);
    const first = this.#digitOf(load(`${word}.load`, read(this.#from)), pass);
    const ofFirst = load("i32.load", this.#place(first), offset);
    builder.if(op("i32.ne", ofFirst, this.#count), () => {
      // Counts become the addresses of the next records with their digits.
      const next = builder.variable(read(this.#to), "next");
      const end = i32.add(this.#counts, i32.of(2 ** digit * 4));
      builder.countedLoop(this.#counts, end, 4, (at) => {
        const size = i32.mul(load("i32.load", at, offset), i32.of(recordBytes));
        const kept = builder.keep(size);
        builder.store("i32.store", at, read(next), offset);
        builder.set(next, i32.add(read(next), kept));
      });
      this.#records(read(this.#from), (at) => {
        const record = builder.keep(load(`${word}.load`, at));
        const place = builder.keep(this.#place(this.#digitOf(record, pass)));
        const target = builder.keep(load("i32.load", place, offset));
        builder.store(`${word}.store`, target, record);
        if (hasIndex && below === 0) builder.store("i32.store", target, load("i32.load", at, 8), 8);
        builder.store("i32.store", place, i32.add(target, i32.of(recordBytes)), offset);
      });
      const done = builder.keep(read(this.#from));
      const swapped = builder.variable(done, "swapped");
      builder.set(this.#from, read(this.#to));
      builder.set(this.#to, read(swapped));
    });
  }

  #write(sorted: Expression, indices: Expression): void {
    const { width, word, hasIndex, below } = this.#plan;
    const builder = this.#builder;
    const stores = { 8: "i32.store8", 16: "i32.store16", 32: "i32.store" } as const;
    const target = builder.variable(sorted, "target");
    const index = builder.variable(indices, "index");
    this.#records(read(this.#from), (at) => {
      const record = builder.keep(load(`${word}.load`, at));
      const ordered = below === 0 ? record : op("i64.shr_u", record, this.#number(BigInt(below)));
      const key = this.#original(ordered);
      if (width === 64) builder.store("i64.store", read(target), key);
      else
        builder.store(stores[width], read(target), word === "i64" ? op("i32.wrap_i64", key) : key);
      builder.set(target, i32.add(read(target), i32.of(width / 8)));
      if (!hasIndex) return;
      const place = below === 0 ? load("i32.load", at, 8) : op("i32.wrap_i64", record);
      builder.store("i32.store", read(index), place);
      builder.set(index, i32.add(read(index), i32.of(4)));
    });
  }
}

/** The bits of a format's NaN; that of f64 has more digits than a number. */
function exactNan(nan: number, width: number): bigint {
  return width === 64 ? 0x7ff8_0000_0000_0000n : BigInt(nan);
}

const wordOperations = {
  i32: { xor: "i32.xor", and: "i32.and", gt_u: "i32.gt_u", shr_u: "i32.shr_u" },
  i64: { xor: "i64.xor", and: "i64.and", gt_u: "i64.gt_u", shr_u: "i64.shr_u" },
} as const;
type WordOperation = keyof (typeof wordOperations)["i32"];

function wordOperation(
  word: "i32" | "i64",
  name: WordOperation,
  left: Expression,
  right: Expression,
): Expression {
  return op(wordOperations[word][name], left, right);
}

/** Whether two words differ. */
function wordTest(word: "i32" | "i64", left: Expression, right: Expression): Expression {
  return op(`${word}.ne`, left, right);
}
