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
import { parseShape, productForm, productTypes, registersOf } from "./operands.ts";
import { multiplyBytes } from "./multiply.ts";

const elementBytes: ReadonlyMap<string, number> = new Map([
  ["f16", 2],
  ["bf16", 2],
  ["tf32", 4],
  ["f32", 4],
  ["s8", 1],
  ["u8", 1],
  ["s32", 4],
]);

/** A matrix in memory as lines of elements that lie side by side. */
interface Matrix {
  /** Rows of A, C and D, columns of B: what a line of elements along k (or of C's row) belongs to. */
  readonly outer: number;
  readonly inner: number;
  /** Bytes of an element. */
  readonly size: number;
  /** Whether elements that lie side by side in memory are neighbours along the inner axis. */
  readonly innerFirst: boolean;
  readonly kind: AddressKind;
}

function matrixOf(modifiers: readonly string[]): Matrix | undefined {
  const shape = parseShape(modifiers);
  const size = elementBytes.get(modifiers.at(-1) ?? "");
  const role = modifiers[1];
  if (shape === undefined || size === undefined || role === undefined) return undefined;
  const { m, n, k } = shape;
  const rowMajor = modifiers.includes("row");
  const kind = addressKind(modifiers);
  if (role === "a") return { outer: m, inner: k, size, innerFirst: rowMajor, kind };
  if (role === "b") return { outer: n, inner: k, size, innerFirst: !rowMajor, kind };
  return { outer: m, inner: n, size, innerFirst: rowMajor, kind };
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
  const { outer, inner, size, innerFirst, kind } = matrix;
  const [lines, length] = innerFirst ? [outer, inner] : [inner, outer];
  const step = size * (stride?.word(warp, 0) ?? length);
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
      spread(bytes, registersOf(target), call.warp);
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
      const bytes = collect(outer * inner * size, registersOf(source), call.warp);
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
function spread(bytes: Uint8Array, registers: readonly OperandView[], warp: WarpView): void {
  const view = new DataView(bytes.buffer);
  for (let lane = 0; lane < 32; lane++)
    for (const [index, register] of registers.entries()) {
      const at = (4 * (lane * registers.length + index)) % bytes.length;
      register.setWord(warp, lane, view.getUint32(at, true));
    }
}

function collect(
  length: number,
  registers: readonly OperandView[],
  warp: WarpView,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < length; at += 4) {
    const lane = Math.floor(at / 4 / registers.length);
    const register = registers[(at / 4) % registers.length];
    view.setUint32(at, register?.word(warp, lane) ?? 0, true);
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
  const [d, a, b, c] = instruction.operands.map(registersOf);
  const modifiers = completeTypes(instruction.modifiers);
  const shape = parseShape(modifiers);
  const form = productForm(modifiers, "mma");
  const [typeD, typeA, , typeC] = productTypes(modifiers);
  const size = elementBytes.get(typeA ?? "");
  if (shape === undefined || form === undefined || size === undefined) return undefined;
  if (d === undefined || a === undefined || b === undefined || c === undefined) return undefined;
  if (typeD !== typeC) return undefined;
  const { m, n, k } = shape;
  const isHalf = form.accumulator === "f16";
  return {
    aligned: true,
    run: ({ warp }) => {
      const rows = collect(m * k * size, a, warp);
      const columns = collect(n * k * size, b, warp);
      const old = collect(m * n * (isHalf ? 2 : 4), c, warp).buffer;
      const sums = isHalf ? Uint32Array.from(new Uint16Array(old)) : new Uint32Array(old);
      // tf32 comes in two steps of four along k, with a rounding between them.
      const steps = typeA === "tf32" ? 2 : 1;
      for (let step = 0; step < steps; step++)
        multiplyBytes(form, part(rows, m, step, steps), m, part(columns, n, step, steps), n, sums);
      const results = isHalf ? Uint16Array.from(sums) : sums;
      spread(new Uint8Array(results.buffer), d, warp);
      return "done";
    },
  };
};

const forms: { readonly [form: string]: CollectiveRule } = { load, store, mma: multiply };

export function wmma(instruction: CollectiveInstruction): Collective | undefined {
  return forms[instruction.modifiers[0] ?? ""]?.(instruction);
}
