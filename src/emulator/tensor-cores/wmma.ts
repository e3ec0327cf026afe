/**
 * `wmma`: matrices that a warp loads, multiplies and stores as a whole. Which lane holds which element is
 * left to the implementation; programs may only treat all elements alike. Here element i of a matrix, counted
 * along k (along rows for C and D), is in lane i / perLane; where the registers hold more elements than
 * the matrix has, it is there several times.
 *
 *   wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {8 registers}, [p], stride;
 *   wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 d, a, b, c;      types of D and C; f16 operands
 *   wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32 …      types of D, A, B and C
 *   wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [p], {8 registers}, stride;
 */
import { bitsOfSingle, encodeHalf, halfNumbers, singleOfBits } from "../arithmetic/floats.ts";
import { recordOrdinary } from "../asynchronous.ts";
import type {
  AddressKind,
  Collective,
  CollectiveCall,
  CollectiveInstruction,
  CollectiveRule,
  OperandView,
  Place,
  WarpView,
} from "../collective.ts";
import { byteStates } from "../memory.ts";
import { checkWritten } from "../reports.ts";
import { multiplyDoubles, roundingOf } from "./doubles.ts";
import { isWmmaMatrix, isWmmaProduct } from "./forms.ts";
import type { ProductShape } from "./forms.ts";
import { multiplyBytes } from "./multiply.ts";
import { layoutsOf, parseShape, productForm, productTypes, registersOf } from "./operands.ts";
import type { Registers } from "./operands.ts";

const elementBits: ReadonlyMap<string, number> = new Map([
  ["f16", 16],
  ["bf16", 16],
  ["tf32", 32],
  ["f32", 32],
  ["f64", 64],
  ["s8", 8],
  ["u8", 8],
  ["s4", 4],
  ["u4", 4],
  ["b1", 1],
  ["s32", 32],
]);

/** A matrix in memory as lines of elements that lie side by side. */
interface Matrix {
  /** Rows of A, C and D, columns of B: what a line of elements along k (or of C's row) belongs to. */
  readonly outer: number;
  readonly inner: number;
  /** Bytes of an element; elements of less than a byte count by the byte, with so many in each. */
  readonly size: number;
  readonly perByte: number;
  /** Whether elements that lie side by side in memory are neighbours along the inner axis. */
  readonly innerFirst: boolean;
  readonly kind: AddressKind;
}

function matrixOf(modifiers: readonly string[]): Matrix | undefined {
  const shape = parseShape(modifiers);
  const type = modifiers.at(-1) ?? "";
  const bits = elementBits.get(type);
  const role = modifiers[1];
  if (shape === undefined || bits === undefined || role === undefined) return undefined;
  if (!isWmmaMatrix(role, type, shape)) return undefined;
  const { m, n, k } = shape;
  const rowMajor = modifiers.includes("row");
  const perByte = Math.max(1, 8 / bits);
  const common = { size: Math.max(1, bits / 8), perByte, kind: addressKind(modifiers) };
  const inner = (role === "a" || role === "b" ? k : n) / perByte;
  const innerFirst = role === "b" ? !rowMajor : rowMajor;
  if (perByte > 1 && !innerFirst) return undefined;
  return { ...common, outer: role === "b" ? n : m, inner, innerFirst };
}

function addressKind(modifiers: readonly string[]): AddressKind {
  if (modifiers.includes("global")) return "global";
  return modifiers.some((modifier) => modifier.startsWith("shared")) ? "shared" : "generic";
}

/** The places of a matrix's lines; every lane gives the same address and stride, so lane 0's count. */
function linePlaces(
  instruction: CollectiveInstruction,
  { machine, warp }: CollectiveCall,
  matrix: Matrix,
  address: OperandView,
  stride: OperandView | undefined,
  mode: "read" | "write",
): readonly Place[] {
  const { outer, inner, size, perByte, innerFirst, kind } = matrix;
  const [lines, length] = innerFirst ? [outer, inner] : [inner, outer];
  const step = (size * (stride?.word(warp, 0) ?? length * perByte)) / perByte;
  const start = address.address(warp, 0);
  return Array.from({ length: lines }, (_, line) => {
    const bytes = size * length;
    const request = { warp, instruction, lane: 0, kind, bytes, alignment: size };
    const place = machine.resolve({ ...request, address: start + line * step });
    recordOrdinary({ machine, warp, lane: 0, instruction }, place, bytes, mode);
    if (mode === "read") checkWritten(machine, warp, instruction, place, bytes);
    return place;
  });
}

/** Where the byte of an element lies. */
function byteAt({ inner, size, innerFirst }: Matrix, places: readonly Place[], byte: number) {
  const element = Math.floor(byte / size);
  const [across, along] = [Math.floor(element / inner), element % inner];
  const place = places[innerFirst ? across : along];
  if (place === undefined) throw new Error("an element outside of the matrix");
  return { place, offset: place.offset + (innerFirst ? along : across) * size + (byte % size) };
}

const load: CollectiveRule = (instruction) => {
  const [target, address, stride] = instruction.operands;
  const matrix = matrixOf(instruction.modifiers);
  if (target === undefined || address === undefined || matrix === undefined) return undefined;
  return {
    aligned: true,
    run: (call) => {
      const places = linePlaces(instruction, call, matrix, address, stride, "read");
      const bytes = Uint8Array.from(
        { length: matrix.outer * matrix.inner * matrix.size },
        (_, at) => {
          const { place, offset } = byteAt(matrix, places, at);
          return place.views.bytes[offset] as number;
        },
      );
      spread(bytes, registersOf(target), call.warp, matrix.size === 8);
      return "done";
    },
  };
};

const store: CollectiveRule = (instruction) => {
  const [address, source, stride] = instruction.operands;
  const matrix = matrixOf(instruction.modifiers);
  if (source === undefined || address === undefined || matrix === undefined) return undefined;
  return {
    aligned: true,
    run: (call) => {
      const places = linePlaces(instruction, call, matrix, address, stride, "write");
      const { outer, inner, size } = matrix;
      const bytes = collect(outer * inner * size, registersOf(source), call.warp, size === 8);
      for (const [at, byte] of bytes.entries()) {
        const { place, offset } = byteAt(matrix, places, at);
        place.views.bytes[offset] = byte;
        place.views.states[offset] = byteStates.written;
      }
      return "done";
    },
  };
};

/** Bytes to the registers of all lanes, from the start again where there are more registers. */
function spread(
  bytes: Uint8Array,
  registers: readonly OperandView[],
  warp: WarpView,
  isWide: boolean,
): void {
  const view = new DataView(bytes.buffer);
  const width = isWide ? 8 : 4;
  for (let lane = 0; lane < 32; lane++)
    for (const [index, register] of registers.entries()) {
      const at = (width * (lane * registers.length + index)) % bytes.length;
      if (isWide) register.setWide(warp, lane, view.getBigUint64(at, true));
      else register.setWord(warp, lane, view.getUint32(at, true));
    }
}

function collect(
  length: number,
  registers: readonly OperandView[],
  warp: WarpView,
  isWide: boolean,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  const width = isWide ? 8 : 4;
  for (let at = 0; at < length; at += width) {
    const lane = Math.floor(at / width / registers.length);
    const register = registers[(at / width) % registers.length];
    if (isWide) view.setBigUint64(at, register?.wide(warp, lane) ?? 0n, true);
    else view.setUint32(at, register?.word(warp, lane) ?? 0, true);
  }
  return bytes;
}

/** With the types of A and B in, where only those of D and C are written. */
function completeTypes(modifiers: readonly string[]): readonly string[] {
  const [d, c, ...others] = productTypes(modifiers);
  if (d === undefined || c === undefined || others.length > 0) return modifiers;
  return [...modifiers.filter((modifier) => modifier !== d && modifier !== c), d, "f16", "f16", c];
}

/** Of every row, the bytes of one step along k. */
function part(rows: Uint8Array, count: number, step: number, steps: number): Uint8Array {
  if (steps === 1) return rows;
  const rowBytes = rows.length / count;
  const bytes = rowBytes / steps;
  const cut = new Uint8Array(rows.length / steps);
  for (let row = 0; row < count; row++) {
    const from = row * rowBytes + step * bytes;
    cut.set(rows.subarray(from, from + bytes), row * bytes);
  }
  return cut;
}

const multiply: CollectiveRule = (instruction) => {
  const registers = instruction.operands.map(registersOf);
  const modifiers = completeTypes(instruction.modifiers);
  const shape = parseShape(modifiers);
  const types = productTypes(modifiers);
  if (shape === undefined || registers.length !== 4 || !isWmmaProduct(types, shape))
    return undefined;
  const [d = [], a = [], b = [], c = []] = registers;
  if (types[0] === "f64") return multiplyWide(shape, modifiers, [d, a, b, c]);
  const [typeD = "", typeA = "", , typeC = ""] = types;
  // Where one of C and D is f32, the sums are.
  const sumType = typeC === "f16" ? typeD : typeC;
  const others = modifiers.filter((modifier) => !types.includes(modifier));
  const form = productForm([...others, sumType, ...types.slice(1)], "warp");
  const bits = elementBits.get(typeA);
  if (form === undefined || bits === undefined || !hasLayouts(modifiers, bits)) return undefined;
  const { m, n, k } = shape;
  return {
    aligned: true,
    run: ({ warp }) => {
      const rows = collect((m * k * bits) / 8, a, warp, false);
      const columns = collect((n * k * bits) / 8, b, warp, false);
      const sums = readSums(collect((m * n * sumBits(typeC)) / 8, c, warp, false), typeC, sumType);
      // tf32 comes in two steps of four along k, with a rounding between them.
      const steps = typeA === "tf32" ? 2 : 1;
      for (let step = 0; step < steps; step++)
        multiplyBytes(form, part(rows, m, step, steps), m, part(columns, n, step, steps), n, sums);
      spread(writeSums(sums, sumType, typeD), d, warp, false);
      return "done";
    },
  };
};

/** Elements of less than a byte come with A by rows and B by columns only. */
function hasLayouts(modifiers: readonly string[], bits: number): boolean {
  return bits >= 8 || layoutsOf(modifiers) === "row col";
}

function sumBits(type: string): number {
  return type === "f16" ? 16 : 32;
}

/** C as codes of the type of the sums. */
function readSums(bytes: Uint8Array<ArrayBuffer>, type: string, sumType: string): Uint32Array {
  if (type !== "f16") return new Uint32Array(bytes.buffer);
  const codes = new Uint16Array(bytes.buffer);
  if (sumType === "f16") return Uint32Array.from(codes);
  return Uint32Array.from(codes, (code) => bitsOfSingle(halfNumbers[code] as number));
}

function writeSums(sums: Uint32Array, sumType: string, type: string): Uint8Array {
  if (type !== "f16") return new Uint8Array(sums.buffer);
  const codes =
    sumType === "f16"
      ? Uint16Array.from(sums)
      : Uint16Array.from(sums, (bits) => encodeHalf(singleOfBits(bits)));
  return new Uint8Array(codes.buffer);
}

/** f64, in registers of 64 bits. */
function multiplyWide(
  shape: ProductShape,
  modifiers: readonly string[],
  [d, a, b, c]: readonly [Registers, Registers, Registers, Registers],
): Collective {
  const { m, n, k } = shape;
  const rounding = roundingOf(modifiers);
  return {
    aligned: true,
    run: ({ warp }) => {
      const [rows, columns, sums] = [
        collect(8 * m * k, a, warp, true),
        collect(8 * n * k, b, warp, true),
        collect(8 * m * n, c, warp, true),
      ].map(({ buffer }) => new BigUint64Array(buffer)) as [
        BigUint64Array,
        BigUint64Array,
        BigUint64Array,
      ];
      multiplyDoubles(shape, rounding, rows, columns, sums);
      spread(new Uint8Array(sums.buffer), d, warp, true);
      return "done";
    },
  };
}

const forms: { readonly [form: string]: CollectiveRule } = { load, store, mma: multiply };

export function wmma(instruction: CollectiveInstruction): Collective | undefined {
  return forms[instruction.modifiers[0] ?? ""]?.(instruction);
}
