/**
 * Runs straight-line PTX on the lanes of program threads in lockstep, from its statements: enough of the
 * instruction set for what is written between a tile and a tile. Registers hold unsigned numbers, BigInts
 * where they are 64 bits wide; predicates are 0 and 1. Most instructions are run with numbers, the rest
 * with BigInts.
 */
import type { Instruction, Operand, Register, Statement } from "../../src/ptx/module.ts";

const f32 = new Float32Array(1);
const u32 = new Uint32Array(f32.buffer);
const f64 = new Float64Array(1);
const u64 = new BigUint64Array(f64.buffer);

function toF32(bits: bigint): number {
  u32[0] = Number(bits & 0xffffffffn);
  return f32[0] as number;
}
function fromF32(value: number): bigint {
  f32[0] = value;
  return BigInt(u32[0] as number);
}
function toF64(bits: bigint): number {
  u64[0] = bits;
  return f64[0] as number;
}
function fromF64(value: number): bigint {
  f64[0] = value;
  return u64[0] as bigint;
}

function halfToNumber(bits: bigint): number {
  const value = Number(bits & 0xffffn);
  const sign = value & 0x8000 ? -1 : 1;
  const exponent = (value >> 10) & 31;
  const fraction = value & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

/** Nearest even, by trying the neighbours of the truncated code. */
function nearestCode(value: number, decode: (code: bigint) => number, infinity: bigint): bigint {
  if (Number.isNaN(value)) return 0x7fffn;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000n : 0n;
  const size = Math.abs(value);
  let low = 0n;
  let high = infinity;
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if (decode(middle) <= size) low = middle;
    else high = middle;
  }
  const below = decode(low);
  const above =
    high === infinity ? 2 * decode(infinity - 1n) - decode(infinity - 2n) : decode(high);
  const half = (below + above) / 2;
  const up = size > half || (size === half && (high & 1n) === 0n);
  return sign | (up ? high : low);
}

/** To nearest, ties to even, at bit 13. */
function toTf32(bits: bigint): bigint {
  if ((bits & 0x7fffffffn) > 0x7f800000n) return bits;
  return (bits + 0xfffn + ((bits >> 13n) & 1n)) & ~0x1fffn;
}

const bf16ToNumber = (bits: bigint): number => toF32((bits & 0xffffn) << 16n);

function floatStep(a: number, b: number, step: (x: number, y: number) => number): number {
  u32[0] = a;
  const x = f32[0] as number;
  u32[0] = b;
  f32[0] = step(x, f32[0] as number);
  return u32[0];
}

type Quick = (a: number, b: number, c: number) => number;

const quick: { readonly [opcode: string]: Quick } = {
  "mov.b32": (a) => a,
  "and.b32": (a, b) => a & b,
  "or.b32": (a, b) => a | b,
  "xor.b32": (a, b) => a ^ b,
  "not.b32": (a) => ~a,
  "and.pred": (a, b) => a & b,
  "or.pred": (a, b) => a | b,
  "xor.pred": (a, b) => a ^ b,
  "shl.b32": (a, b) => (b > 31 ? 0 : a << b),
  "shr.u32": (a, b) => (b > 31 ? 0 : a >>> b),
  "shr.s32": (a, b) => (a | 0) >> Math.min(b, 31),
  "add.u32": (a, b) => a + b,
  "add.s32": (a, b) => a + b,
  "selp.b32": (a, b, c) => (c === 1 ? a : b),
  "setp.eq.u32": (a, b) => Number(a === b),
  "setp.ne.u32": (a, b) => Number(a !== b),
  "setp.lt.u32": (a, b) => Number(a < b),
  "setp.gt.u32": (a, b) => Number(a > b),
  "setp.lt.s32": (a, b) => Number((a | 0) < (b | 0)),
  "min.u32": (a, b) => Math.min(a, b),
  "max.u32": (a, b) => Math.max(a, b),
  "min.s32": (a, b) => Math.min(a | 0, b | 0),
  "max.s32": (a, b) => Math.max(a | 0, b | 0),
  "mul.lo.s32": (a, b) => Math.imul(a, b),
  "mul.lo.u32": (a, b) => Math.imul(a, b),
  "add.rn.f32": (a, b) => floatStep(a, b, (x, y) => x + y),
  "mul.rn.f32": (a, b) => floatStep(a, b, (x, y) => x * y),
  "min.NaN.f32": (a, b) => floatStep(a, b, Math.min),
  "max.NaN.f32": (a, b) => floatStep(a, b, Math.max),
  "prmt.b32"(a, b, c) {
    let result = 0;
    for (let byte = 0; byte < 4; byte += 1) {
      const choice = (c >>> (4 * byte)) & 15;
      const word = choice & 4 ? b : a;
      const value = (word >>> (8 * (choice & 3))) & 255;
      result |= (choice & 8 ? (value & 128 ? 255 : 0) : value) << (8 * byte);
    }
    return result;
  },
};

export class StraightLine {
  readonly #registers = new Map<Register, (number | bigint)[]>();
  readonly shared: Uint8Array;
  readonly lanes: number;
  barriers = 0;

  constructor(lanes: number, sharedBytes: number) {
    this.lanes = lanes;
    this.shared = new Uint8Array(sharedBytes).fill(0xa5);
  }

  /** Fills a register, by lane. */
  fill(register: Register, values: readonly bigint[]): void {
    values.forEach((value, lane) => {
      this.#write(register, lane, value);
    });
  }

  /** What a lane's register holds; undefined where it was never written. */
  value(register: Register, lane: number): bigint | undefined {
    const value = this.#registers.get(register)?.[lane];
    return value === undefined ? undefined : BigInt(value);
  }

  run(statements: readonly Statement[]): void {
    for (const statement of statements) {
      if (statement.kind !== "instruction") throw new Error(`a ${statement.kind}`);
      this.#step(statement);
    }
  }

  #width(register: Register): number {
    return register.type === "pred" ? 1 : Number(register.type.slice(1));
  }

  #read(operand: Operand | undefined, lane: number, bits: number): bigint {
    switch (operand?.kind) {
      case "register": {
        const value = this.#registers.get(operand)?.[lane];
        if (value === undefined) throw new Error(`${operand.name} is not set in lane ${lane}`);
        return BigInt(value);
      }
      case "integer":
        return BigInt.asUintN(bits, BigInt(operand.value));
      case "float":
        return BigInt(operand.bits);
      case "symbol":
        if (operand.name === "%tid.x") return BigInt(lane);
        if (operand.name === "shared_memory") return 0n;
        throw new Error(operand.name);
      case "not":
        return 1n - this.#read(operand.operand, lane, 1);
      case "vector":
        return operand.elements.reduceRight((sum, each) => {
          const width =
            each.kind === "register" ? this.#width(each) : bits / operand.elements.length;
          return (sum << BigInt(width)) | this.#read(each, lane, width);
        }, 0n);
      default:
        throw new Error(`operand ${operand?.kind}`);
    }
  }

  #write(operand: Operand | undefined, lane: number, value: bigint): void {
    if (operand?.kind === "vector") {
      let rest = value;
      for (const each of operand.elements) {
        if (each.kind !== "register") continue;
        const width = this.#width(each);
        this.#write(each, lane, BigInt.asUintN(width, rest));
        rest >>= BigInt(width);
      }
      return;
    }
    if (operand?.kind !== "register") throw new Error("no register to write");
    let values = this.#registers.get(operand);
    if (values === undefined) this.#registers.set(operand, (values = []));
    const cut = BigInt.asUintN(this.#width(operand), value);
    values[lane] = operand.type === "b64" ? cut : Number(cut);
  }

  #active({ guard }: Instruction, lane: number): boolean {
    if (guard === undefined) return true;
    return (this.#read(guard.register, lane, 1) === 1n) !== guard.negated;
  }

  #step(instruction: Instruction): void {
    const { opcode, operands } = instruction;
    const parts = opcode.split(".");
    if (opcode.startsWith("bar.")) {
      this.barriers += 1;
      return;
    }
    if (parts[0] === "shfl" || parts[0] === "redux") return this.#together(instruction, parts);
    if (this.#quick(instruction)) return;
    const results: [number, bigint][] = [];
    for (let lane = 0; lane < this.lanes; lane += 1) {
      if (!this.#active(instruction, lane)) continue;
      if (parts[0] === "st" || parts[0] === "ld") this.#memory(instruction, parts, lane);
      else results.push([lane, this.#compute(parts, operands.slice(1), lane)]);
    }
    for (const [lane, value] of results) this.#write(operands[0], lane, value);
  }

  /** Instructions on numbers, in all lanes at once. */
  #quick({ opcode, operands: [target, ...sources], guard }: Instruction): boolean {
    const compute = quick[opcode];
    if (compute === undefined || guard !== undefined || target?.kind !== "register") return false;
    const [a, b, c] = sources.map((source) => this.#numbers(source));
    if (a === undefined) return false;
    const made: number[] = [];
    for (let lane = 0; lane < this.lanes; lane += 1)
      made.push(compute(a[lane] as number, b?.[lane] as number, c?.[lane] as number) >>> 0);
    this.#registers.set(target, made);
    return true;
  }

  #numbers(operand: Operand): readonly number[] | undefined {
    if (operand.kind === "integer")
      return Array<number>(this.lanes).fill(Number(BigInt.asUintN(32, BigInt(operand.value))));
    const values = operand.kind === "register" ? this.#registers.get(operand) : undefined;
    const known = values?.length === this.lanes && typeof values[0] === "number";
    return known && !values.includes(undefined as never) ? (values as number[]) : undefined;
  }

  #together({ operands }: Instruction, parts: readonly string[]): void {
    const [target, source, by] = operands;
    const held = source?.kind === "register" ? this.#numbers(source) : undefined;
    if (parts[2] === "bfly" && held !== undefined && by?.kind === "integer") {
      const mask = Number(by.value);
      if (target?.kind !== "register") throw new Error("no register to write");
      this.#registers.set(
        target,
        held.map((_, lane) => held[lane ^ mask] as number),
      );
      return;
    }
    const values = Array.from({ length: this.lanes }, (_, lane) => this.#read(source, lane, 32));
    for (let lane = 0; lane < this.lanes; lane += 1) {
      const warp = lane & ~31;
      if (parts[0] === "shfl") {
        const other = Number(this.#read(by, lane, 32));
        const from = parts[2] === "bfly" ? lane ^ other : warp + other;
        this.#write(target, lane, values[from] ?? 0n);
      } else {
        const own = values.slice(warp, warp + 32);
        const type = parts[3] ?? "b32";
        const result = own.reduce((a, b) => this.#integer(parts[2] ?? "", type, a, b));
        this.#write(target, lane, BigInt.asUintN(32, result));
      }
    }
  }

  #memory({ operands }: Instruction, parts: readonly string[], lane: number): void {
    const store = parts[0] === "st";
    const type = parts.at(-1) ?? "";
    const bytes = Number(type.slice(1)) / 8;
    const at = operands[store ? 0 : 1];
    if (at?.kind !== "address") throw new Error("no address");
    const data = operands[store ? 1 : 0];
    const elements = data?.kind === "vector" ? data.elements : [data];
    const start = Number(this.#read(at.base, lane, 32)) + at.offset;
    if (start % (bytes * elements.length) !== 0) throw new Error(`misaligned ${start}`);
    elements.forEach((element, index) => {
      const place = start + index * bytes;
      if (place < 0 || place + bytes > this.shared.length) throw new Error(`outside: ${place}`);
      if (store) {
        let value = this.#read(element, lane, 8 * bytes);
        for (let byte = 0; byte < bytes; byte += 1, value >>= 8n)
          this.shared[place + byte] = Number(value & 255n);
      } else {
        let value = 0n;
        for (let byte = bytes - 1; byte >= 0; byte -= 1)
          value = (value << 8n) | BigInt(this.shared[place + byte] ?? 0);
        this.#write(element, lane, value);
      }
    });
  }

  #integer(operation: string, type: string, a: bigint, b: bigint): bigint {
    const bits = Number(type.slice(1));
    const signed = (value: bigint): bigint =>
      type.startsWith("s") ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
    const [x, y] = [signed(a), signed(b)];
    switch (operation) {
      case "add":
        return x + y;
      case "sub":
        return x - y;
      case "mul":
        return x * y;
      case "min":
        return x < y ? x : y;
      case "max":
        return x > y ? x : y;
      case "and":
        return x & y;
      case "or":
        return x | y;
      case "xor":
        return x ^ y;
      case "div":
        return x / y;
      case "rem":
        return x % y;
      default:
        throw new Error(operation);
    }
  }

  #compute(parts: readonly string[], sources: readonly Operand[], lane: number): bigint {
    const type = parts.at(-1) ?? "";
    const bits = type === "pred" ? 1 : Number(type.replace(/^[a-z]+/, ""));
    const read = (index: number, width = bits): bigint => this.#read(sources[index], lane, width);
    const float = type.startsWith("f");
    const decode = bits === 64 ? toF64 : toF32;
    const encode = bits === 64 ? fromF64 : fromF32;
    switch (parts[0]) {
      case "mov":
        return read(0);
      case "selp":
        return read(2, 1) === 1n ? read(0) : read(1);
      case "not":
        return ~read(0);
      case "shl":
        return read(1, 32) >= BigInt(bits) ? 0n : read(0) << read(1, 32);
      case "shr": {
        const value = type.startsWith("s") ? BigInt.asIntN(bits, read(0)) : read(0);
        return value >> read(1, 32);
      }
      case "popc":
        return BigInt(read(0).toString(2).replaceAll("0", "").length);
      case "mad":
        return read(0) * read(1) + read(2);
      case "prmt": {
        const bytes = read(0) | (read(1) << 32n);
        let result = 0n;
        for (let byte = 0n; byte < 4n; byte += 1n) {
          const choice = (read(2) >> (4n * byte)) & 15n;
          let value = (bytes >> (8n * (choice & 7n))) & 255n;
          if (choice & 8n) value = value & 128n ? 255n : 0n;
          result |= value << (8n * byte);
        }
        return result;
      }
      case "bfe": {
        const [start, length] = [read(1, 32), Number(read(2, 32))];
        const value = BigInt.asUintN(length, read(0) >> start);
        return type.startsWith("s") ? BigInt.asIntN(length, value) : value;
      }
      case "bfi": {
        const [start, length] = [read(2, 32), read(3, 32)];
        const mask = ((1n << length) - 1n) << start;
        return (read(1) & ~mask) | ((read(0) << start) & mask);
      }
      case "setp":
        return this.#test(parts[1] ?? "", type, read(0), read(1)) ? 1n : 0n;
      case "cvt": {
        if (!parts[2]?.endsWith("x2")) return this.#convert(parts, sources[0], lane);
        const single = [parts[0], parts[1] ?? "", parts[2].slice(0, -2), "f32"];
        const high = this.#convert(single, sources[0], lane);
        return (high << 16n) | this.#convert(single, sources[1], lane);
      }
      case "min":
      case "max":
      case "add":
      case "mul":
      case "sub": {
        if (!float) return this.#integer(parts[0], type, read(0), read(1));
        const [x, y] = [decode(read(0)), decode(read(1))];
        const results: Record<string, number> = {
          add: x + y,
          sub: x - y,
          mul: x * y,
          min: Math.min(x, y),
          max: Math.max(x, y),
        };
        return encode(results[parts[0]] ?? NaN);
      }
      case "and":
      case "or":
      case "xor":
        return this.#integer(parts[0], `b${bits}`, read(0), read(1));
      case "div":
      case "rem":
        return this.#integer(parts[0], type, read(0), read(1));
      default:
        throw new Error(`cannot run ${parts.join(".")}`);
    }
  }

  #test(relation: string, type: string, a: bigint, b: bigint): boolean {
    const bits = Number(type.slice(1));
    const value = (raw: bigint): number | bigint => {
      if (type.startsWith("f")) return bits === 64 ? toF64(raw) : toF32(raw);
      return type.startsWith("s") ? BigInt.asIntN(bits, raw) : raw;
    };
    const [x, y] = [value(a), value(b)];
    switch (relation) {
      case "eq":
        return x === y;
      case "ne":
        return x !== y && x === x && y === y;
      case "neu":
        return x !== y;
      case "lt":
        return x < y;
      case "le":
        return x <= y;
      case "gt":
        return x > y;
      case "ge":
        return x >= y;
      case "nan":
        return x !== x || y !== y;
      default:
        throw new Error(relation);
    }
  }

  #convert(parts: readonly string[], source: Operand | undefined, lane: number): bigint {
    const [to = "", from = ""] = parts.slice(-2);
    const bits = Number(from.replace(/^[a-z]+/, ""));
    const raw = this.#read(source, lane, bits);
    const value =
      from === "f16"
        ? halfToNumber(raw)
        : from === "bf16"
          ? bf16ToNumber(raw)
          : from === "f32"
            ? toF32(raw)
            : from === "f64"
              ? toF64(raw)
              : from.startsWith("s")
                ? BigInt.asIntN(bits, raw)
                : BigInt.asUintN(bits, raw);
    if (to === "f32") return fromF32(Number(value));
    if (to === "tf32") return toTf32(fromF32(Number(value)));
    if (to === "f64") return fromF64(Number(value));
    if (to === "f16") return nearestCode(Number(value), halfToNumber, 0x7c00n);
    if (to === "bf16") return nearestCode(Number(value), bf16ToNumber, 0x7f80n);
    if (typeof value === "bigint") return value;
    if (to === "s32" && parts[1] === "rzi") return BigInt(Math.trunc(value));
    throw new Error(parts.join("."));
  }
}
