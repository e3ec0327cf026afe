/**
 * Runs PTX of kernels that only compute addresses and move data: the lanes of one block in step, each with
 * its own program counter, the hindmost first. Independent of the emulator, so that both can be wrong apart.
 */
import { evaluateSize } from "../../src/ir/size.ts";
import type { DimensionValues } from "../../src/ir/size.ts";
import type { Executable, LaunchParameter } from "../../src/ptx/executable.ts";
import type { Instruction, Operand, Statement } from "../../src/ptx/module.ts";

export interface InterpretedLaunch {
  readonly arrays: ReadonlyMap<string, Uint8Array>;
  readonly dimensions: DimensionValues;
  /** Scalars as their bits. */
  readonly scalars?: ReadonlyMap<string, bigint>;
}

interface Width {
  readonly bits: number;
  readonly signed: boolean;
}

const spacing = 1 << 20;
const alignment = 256;

/** Runs all blocks one after the other and writes the arrays in place. */
export function interpret(executable: Executable, launch: InterpretedLaunch): void {
  const memory = new FlatMemory();
  const addresses = new Map<string, number>();
  for (const [name, bytes] of launch.arrays) addresses.set(name, memory.add(bytes));
  const parameters = executable.parameters.map((parameter) =>
    valueOf(parameter, launch, addresses, memory),
  );
  const entry = executable.module.declarations.find(
    (each) => each.kind === "function" && each.name === executable.entry,
  );
  if (entry?.kind !== "function" || entry.body === undefined) throw new Error("no entry");
  const names = new Map(entry.parameters.map(({ name }, index) => [name, parameters[index] ?? 0n]));
  const blocks = evaluateSize(executable.blocks, launch.dimensions);
  for (let block = 0; block < blocks; block += 1) {
    const shared = new Uint8Array(executable.sharedBytes);
    shared.fill(0xcd);
    new Block(entry.body, names, memory, shared, executable.lanes, block).run();
  }
  for (const [name, bytes] of launch.arrays) {
    const { bytes: own, index } = memory.locate(addresses.get(name) ?? 0, bytes.length);
    bytes.set(own.subarray(index, index + bytes.length));
  }
}

function valueOf(
  parameter: LaunchParameter,
  { dimensions, scalars }: InterpretedLaunch,
  addresses: ReadonlyMap<string, number>,
  memory: FlatMemory,
): bigint {
  switch (parameter.kind) {
    case "array":
      return BigInt(addresses.get(parameter.name) ?? 0);
    case "size":
      return BigInt(evaluateSize(parameter.size, dimensions));
    case "scratch":
      return BigInt(memory.add(new Uint8Array(evaluateSize(parameter.bytes, dimensions))));
    case "scalar":
      return scalars?.get(parameter.name) ?? 0n;
    default:
      throw new Error(`a parameter of ${parameter.kind}`);
  }
}

class FlatMemory {
  readonly #pieces: { readonly start: number; readonly bytes: Uint8Array }[] = [];
  #next = spacing;

  /** Allocations are whole words. */
  add(given: Uint8Array): number {
    const start = this.#next;
    const bytes = new Uint8Array(Math.ceil(given.length / 4) * 4);
    bytes.set(given);
    this.#pieces.push({ start, bytes });
    this.#next = Math.ceil((start + bytes.length + spacing) / alignment) * alignment;
    return start;
  }

  /** The array and the index in it; an access outside all arrays is an error. */
  locate(place: number, length: number): { readonly bytes: Uint8Array; readonly index: number } {
    const piece = this.#pieces.find(
      ({ start, bytes }) => place >= start && place + length <= start + bytes.length,
    );
    if (piece === undefined) throw new Error(`an access of ${length} bytes at ${place} is outside`);
    return { bytes: piece.bytes, index: place - piece.start };
  }
}

function widthOf(type: string): Width {
  return { bits: Number(/\d+/.exec(type)?.[0] ?? 32), signed: type.startsWith("s") };
}

function read(value: bigint, { bits, signed }: Width): bigint {
  return signed ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
}

class Block {
  readonly #body: readonly Statement[];
  readonly #labels = new Map<string, number>();
  readonly #parameters: ReadonlyMap<string, bigint>;
  readonly #memory: FlatMemory;
  readonly #shared: Uint8Array;
  readonly #lanes: number;
  readonly #block: number;
  readonly #registers = new Map<string, BigUint64Array>();
  readonly #counters: Int32Array;

  constructor(
    body: readonly Statement[],
    parameters: ReadonlyMap<string, bigint>,
    memory: FlatMemory,
    shared: Uint8Array,
    lanes: number,
    block: number,
  ) {
    this.#body = body;
    this.#parameters = parameters;
    this.#memory = memory;
    this.#shared = shared;
    this.#lanes = lanes;
    this.#block = block;
    this.#counters = new Int32Array(lanes);
    body.forEach((statement, index) => {
      if (statement.kind === "label") this.#labels.set(statement.name, index);
    });
  }

  run(): void {
    for (let steps = 0; steps < 1_000_000; steps += 1) {
      const counter = this.#counters.reduce((least, each) => Math.min(least, each), 2 ** 30);
      if (counter >= this.#body.length) return;
      const active: number[] = [];
      for (let lane = 0; lane < this.#lanes; lane += 1)
        if (this.#counters[lane] === counter) active.push(lane);
      const statement = this.#body[counter];
      for (const lane of active) this.#counters[lane] = counter + 1;
      if (statement?.kind === "instruction") this.#execute(statement, active);
    }
    throw new Error("the kernel does not end");
  }

  #execute(instruction: Instruction, lanes: readonly number[]): void {
    const { guard, opcode, operands } = instruction;
    const active = lanes.filter(
      (lane) =>
        guard === undefined || this.#get(guard.register, lane) === (guard.negated ? 0n : 1n),
    );
    const [root = "", ...modifiers] = opcode.split(".");
    if (root === "shfl") {
      this.#shuffle(operands, active);
      return;
    }
    if (root === "ldmatrix" || root === "stmatrix") {
      this.#matrices(root, modifiers, operands, active);
      return;
    }
    for (const lane of active) this.#step(root, modifiers, operands, lane);
  }

  /** Lane l has row l / 4 and columns 2 (l % 4), + 1, or the transposed; lane 8 i + r the row's address. */
  #matrices(
    root: string,
    modifiers: readonly string[],
    operands: readonly Operand[],
    lanes: readonly number[],
  ): void {
    const place = operands[root === "ldmatrix" ? 1 : 0];
    const words = operands[root === "ldmatrix" ? 0 : 1];
    if (words?.kind !== "vector") throw new Error("no matrices");
    for (const lane of lanes)
      words.elements.forEach((word, matrix) => {
        let value = 0n;
        for (let half = 0; half < 2; half += 1) {
          const [row, column] = [(lane % 32) >> 2, 2 * (lane & 3) + half];
          const [line, along] = modifiers.includes("trans") ? [column, row] : [row, column];
          const teller = (lane & ~31) + 8 * matrix + line;
          const { bytes, index } = this.#place(["shared"], place, teller, 16);
          const at = index + 2 * along;
          if (root === "ldmatrix") value |= readBytes(bytes, at, 2) << BigInt(16 * half);
          else writeBytes(bytes, at, 2, this.#get(word, lane) >> BigInt(16 * half));
        }
        if (root === "ldmatrix") this.#set(word, lane, value);
      });
  }

  #shuffle([target, value, source]: readonly Operand[], lanes: readonly number[]): void {
    if (target === undefined || value === undefined || source === undefined) return;
    const values = lanes.map((lane) => {
      const other = (lane & ~31) | Number(this.#get(source, lane));
      return this.#get(value, other);
    });
    lanes.forEach((lane, index) => {
      this.#set(target, lane, values[index] ?? 0n);
    });
  }

  #step(
    root: string,
    modifiers: readonly string[],
    operands: readonly Operand[],
    lane: number,
  ): void {
    const last = modifiers.at(-1) ?? "b32";
    const [a, b, c, d, e] = operands;
    const get = (operand: Operand | undefined): bigint => {
      if (operand === undefined) throw new Error(`${root} lacks an operand`);
      return this.#get(operand, lane);
    };
    const set = (value: bigint): void => {
      if (a === undefined) throw new Error(`${root} lacks a result`);
      this.#set(a, lane, value);
    };
    const width = widthOf(last);
    const typed = (operand: Operand | undefined): bigint => read(get(operand), width);
    const wide = modifiers.includes("wide");
    switch (root) {
      case "mov":
        this.#move(a, b, lane, width.bits);
        return;
      case "cvta":
        set(get(b));
        return;
      case "add":
        set(typed(b) + typed(c));
        return;
      case "sub":
        set(typed(b) - typed(c));
        return;
      case "neg":
        set(-typed(b));
        return;
      case "mul":
        set(typed(b) * typed(c));
        return;
      case "mad":
        set(typed(b) * typed(c) + (wide ? get(d) : typed(d)));
        return;
      case "div":
        set(typed(b) / typed(c));
        return;
      case "rem":
        set(typed(b) % typed(c));
        return;
      case "min":
        set(typed(b) < typed(c) ? typed(b) : typed(c));
        return;
      case "max":
        set(typed(b) > typed(c) ? typed(b) : typed(c));
        return;
      case "and":
        set(get(b) & get(c));
        return;
      case "or":
        set(get(b) | get(c));
        return;
      case "xor":
        set(get(b) ^ get(c));
        return;
      case "not":
        set(~get(b));
        return;
      case "shl":
        set(typed(b) << get(c));
        return;
      case "shr":
        set(typed(b) >> get(c));
        return;
      case "popc":
        set(BigInt(typed(b).toString(2).replaceAll("0", "").length));
        return;
      case "setp":
        set(compare(modifiers[0] ?? "", typed(b), typed(c)) ? 1n : 0n);
        return;
      case "selp":
        set(get(d) === 1n ? get(b) : get(c));
        return;
      case "cvt":
        set(read(get(b), widthOf(last)));
        return;
      case "lop3":
        set(lookUp(get(b), get(c), get(d), Number(get(e))));
        return;
      case "prmt":
        set(permute(get(b), get(c), get(d)));
        return;
      case "bfe": {
        const bits = { bits: Number(get(d)), signed: width.signed };
        set(read(typed(b) >> get(c), bits));
        return;
      }
      case "bfi": {
        const mask = ((1n << get(e)) - 1n) << get(d);
        set((get(c) & ~mask) | ((get(b) << get(d)) & mask));
        return;
      }
      case "ld":
        this.#load(modifiers, a, b, lane);
        return;
      case "st":
        this.#store(modifiers, a, b, lane);
        return;
      case "red":
        this.#atomic(modifiers, undefined, [a, b, c], lane);
        return;
      case "atom":
        this.#atomic(modifiers, a, [b, c, d], lane);
        return;
      case "bra": {
        const target = a?.kind === "symbol" ? this.#labels.get(a.name) : undefined;
        if (target === undefined) throw new Error("a jump to nowhere");
        this.#counters[lane] = target;
        return;
      }
      case "bar":
        return;
      case "ret":
        this.#counters[lane] = 2 ** 29;
        return;
      default:
        throw new Error(`no interpretation of ${root}.${modifiers.join(".")}`);
    }
  }

  #move(
    target: Operand | undefined,
    source: Operand | undefined,
    lane: number,
    bits: number,
  ): void {
    if (target === undefined || source === undefined) return;
    if (source.kind === "vector") {
      const part = bits / source.elements.length;
      const sum = source.elements.reduce(
        (total, element, index) =>
          total | (BigInt.asUintN(part, this.#get(element, lane)) << BigInt(index * part)),
        0n,
      );
      this.#set(target, lane, sum);
    } else if (target.kind === "vector") {
      const part = bits / target.elements.length;
      target.elements.forEach((element, index) => {
        this.#set(element, lane, this.#get(source, lane) >> BigInt(index * part));
      });
    } else this.#set(target, lane, this.#get(source, lane));
  }

  #place(
    modifiers: readonly string[],
    operand: Operand | undefined,
    lane: number,
    length: number,
  ): { readonly bytes: Uint8Array; readonly index: number } {
    if (operand?.kind !== "address") throw new Error("no address");
    const place = Number(BigInt.asIntN(64, this.#get(operand.base, lane))) + operand.offset;
    if (place % length !== 0) throw new Error(`${length} bytes at ${place} are not aligned`);
    if (modifiers.includes("global")) return this.#memory.locate(place, length);
    if (place < 0 || place + length > this.#shared.length)
      throw new Error(`byte ${place} of shared memory`);
    return { bytes: this.#shared, index: place };
  }

  #load(
    modifiers: readonly string[],
    target: Operand | undefined,
    source: Operand | undefined,
    lane: number,
  ): void {
    if (target === undefined) return;
    if (modifiers.includes("param") && source?.kind === "address") {
      const name = source.base.kind === "symbol" ? source.base.name : "";
      this.#set(target, lane, this.#parameters.get(name) ?? 0n);
      return;
    }
    const width = widthOf(modifiers.at(-1) ?? "");
    const targets = target.kind === "vector" ? target.elements : [target];
    const length = (width.bits / 8) * targets.length;
    const { bytes, index } = this.#place(modifiers, source, lane, length);
    targets.forEach((element, position) => {
      const value = readBytes(bytes, index + (position * width.bits) / 8, width.bits / 8);
      this.#set(element, lane, read(value, width));
    });
  }

  #store(
    modifiers: readonly string[],
    target: Operand | undefined,
    source: Operand | undefined,
    lane: number,
  ): void {
    if (source === undefined) return;
    const { bits } = widthOf(modifiers.at(-1) ?? "");
    const sources = source.kind === "vector" ? source.elements : [source];
    const { bytes, index } = this.#place(modifiers, target, lane, (bits / 8) * sources.length);
    sources.forEach((element, position) => {
      writeBytes(bytes, index + (position * bits) / 8, bits / 8, this.#get(element, lane));
    });
  }

  #atomic(
    modifiers: readonly string[],
    result: Operand | undefined,
    [place, operand, replacement]: readonly (Operand | undefined)[],
    lane: number,
  ): void {
    const fn = modifiers.find((each) => each in updates) ?? "";
    const width = widthOf(modifiers.at(-1) ?? "");
    const { bytes, index } = this.#place(modifiers, place, lane, width.bits / 8);
    const old = read(readBytes(bytes, index, width.bits / 8), width);
    const given = operand === undefined ? 0n : read(this.#get(operand, lane), width);
    const other = replacement === undefined ? 0n : read(this.#get(replacement, lane), width);
    const update = updates[fn];
    if (update === undefined) throw new Error(`no atomic ${modifiers.join(".")}`);
    writeBytes(bytes, index, width.bits / 8, update(old, given, other));
    if (result !== undefined) this.#set(result, lane, old);
  }

  #get(operand: Operand, lane: number): bigint {
    switch (operand.kind) {
      case "register":
        return this.#file(operand.name)[lane] ?? 0n;
      case "integer":
        return BigInt.asUintN(64, BigInt(operand.value));
      case "symbol":
        if (operand.name === "%tid.x") return BigInt(lane);
        if (operand.name === "%ctaid.x") return BigInt(this.#block);
        if (operand.name === "shared_memory") return 0n;
        throw new Error(`no value of ${operand.name}`);
      default:
        throw new Error(`an operand of ${operand.kind}`);
    }
  }

  #set(operand: Operand, lane: number, value: bigint): void {
    if (operand.kind === "discard") return;
    if (operand.kind !== "register") throw new Error(`a result in ${operand.kind}`);
    const bits = operand.type === "pred" ? 1 : Number(/\d+/.exec(operand.type)?.[0] ?? 64);
    this.#file(operand.name)[lane] = BigInt.asUintN(bits, value);
  }

  #file(name: string): BigUint64Array {
    const known = this.#registers.get(name);
    if (known !== undefined) return known;
    const made = new BigUint64Array(this.#lanes);
    this.#registers.set(name, made);
    return made;
  }
}

type Update = (old: bigint, given: bigint, other: bigint) => bigint;

const updates: { readonly [fn: string]: Update } = {
  add: (old, given) => old + given,
  min: (old, given) => (given < old ? given : old),
  max: (old, given) => (given > old ? given : old),
  and: (old, given) => old & given,
  or: (old, given) => old | given,
  xor: (old, given) => old ^ given,
  exch: (_, given) => given,
  cas: (old, given, other) => (old === given ? other : old),
};

function compare(relation: string, left: bigint, right: bigint): boolean {
  switch (relation) {
    case "lt":
      return left < right;
    case "le":
      return left <= right;
    case "gt":
      return left > right;
    case "ge":
      return left >= right;
    case "eq":
      return left === right;
    default:
      return left !== right;
  }
}

/** Bit by bit, the entry of the table that the three bits number. */
function lookUp(a: bigint, b: bigint, c: bigint, table: number): bigint {
  let result = 0n;
  for (let entry = 0; entry < 8; entry += 1) {
    if (((table >> entry) & 1) === 0) continue;
    const pick = (value: bigint, bit: number): bigint =>
      ((entry >> bit) & 1) === 1 ? value : ~value;
    result |= pick(a, 2) & pick(b, 1) & pick(c, 0);
  }
  return result;
}

function permute(low: bigint, high: bigint, selector: bigint): bigint {
  const both = BigInt.asUintN(32, low) | (BigInt.asUintN(32, high) << 32n);
  let result = 0n;
  for (let byte = 0n; byte < 4n; byte += 1n) {
    const choice = (selector >> (4n * byte)) & 15n;
    const value = (both >> (8n * (choice & 7n))) & 255n;
    const taken = choice >= 8n ? (value >= 128n ? 255n : 0n) : value;
    result |= taken << (8n * byte);
  }
  return result;
}

function readBytes(bytes: Uint8Array, index: number, length: number): bigint {
  let value = 0n;
  for (let byte = length - 1; byte >= 0; byte -= 1)
    value = (value << 8n) | BigInt(bytes[index + byte] ?? 0);
  return value;
}

function writeBytes(bytes: Uint8Array, index: number, length: number, value: bigint): void {
  for (let byte = 0; byte < length; byte += 1)
    bytes[index + byte] = Number((value >> BigInt(8 * byte)) & 255n);
}
