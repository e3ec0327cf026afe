/** Runs a product whose operands have been checked: reads them, multiplies, and writes D of each block. */
import {
  decodeNibbles,
  multiplyBytesExactly,
  multiplyNibbles,
  multiplyTerms,
  scaledTerms,
} from "../../formats/arithmetic/tensor-core-terms.ts";
import { decodeTensorOperand, multiplyAccumulate } from "../../formats/arithmetic/tensor-core.ts";
import type { BlockScales, Terms } from "../../formats/arithmetic/tensor-core-terms.ts";
import { tmemBanks, tmemRowLane } from "../../layout/algebra/tensor-memory-products.ts";
import type { TmemPlacement } from "../../layout/algebra/tensor-memory-products.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { BlockView } from "../collective.ts";
import { reportOnce } from "../reports.ts";
import type {
  ElementFormat,
  InstructionDescriptor,
  ProductOpcode,
} from "./instruction-descriptor.ts";
import type { MatrixShape } from "./matrix-descriptor.ts";
import type { TensorIssuer } from "./order.ts";
import {
  integersOf,
  isFourBit,
  readMetadata,
  readScales,
  sharedCodes,
  tensorCodes,
  termsOf,
} from "./product-operands.ts";
import type { Codes, ReadScales, TensorPlace, Undefined } from "./product-operands.ts";
import { addressText, columns as allColumns, halves, tensorMemoryOf } from "./state.ts";
import type { ZeroColumns } from "./zero-columns.ts";

export interface SharedMatrix {
  readonly chunks: Int32Array;
  readonly shape: MatrixShape;
}

/** A product with everything that its registers told. */
export interface ProductCall {
  readonly opcode: ProductOpcode;
  readonly descriptor: InstructionDescriptor;
  readonly placement: TmemPlacement;
  /** Of A and D, in each block. */
  readonly rows: number;
  readonly blocks: readonly BlockView[];
  readonly d: TensorPlace;
  readonly a: SharedMatrix | undefined;
  readonly tensorA: TensorPlace | undefined;
  readonly b: SharedMatrix;
  readonly metadata: TensorPlace | undefined;
  readonly scalesA: TensorPlace | undefined;
  readonly scalesB: TensorPlace | undefined;
  /** Whether each half of the lanes has the scales of half of B's columns. */
  readonly isSplit: boolean;
  readonly accumulates: boolean;
  readonly scaleD: number;
  readonly zeros: ZeroColumns | undefined;
  readonly shiftsA: boolean;
  readonly disabled: Uint32Array;
}

/** B of all blocks, as its codes: rows of k. */
function codesOfB({ blocks, b, opcode, descriptor, zeros }: ProductCall): Codes {
  const parts = blocks.map((block) =>
    sharedCodes(block, opcode.kind, descriptor.b, b.chunks, b.shape),
  );
  const [first = new Uint8Array()] = parts;
  const whole = parts.length === 1 ? first : joined(parts);
  if (zeros === undefined || zeros.shift === 0) return whole;
  return whole.subarray((whole.length / b.shape.rows) * zeros.shift);
}

function joined(parts: readonly Codes[]): Codes {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const [first] = parts;
  const whole =
    first instanceof Uint32Array
      ? new Uint32Array(length)
      : first instanceof Uint16Array
        ? new Uint16Array(length)
        : new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function multiplyInTensorMemory(issuer: TensorIssuer, product: ProductCall): void {
  const missing: Undefined = { cell: undefined };
  const codesB = codesOfB(product);
  const scalesB = scalesOfB(issuer, product, missing);
  for (const [rank, block] of product.blocks.entries())
    multiplyInBlock(issuer, product, block, rank, codesB, scalesB, missing);
  const { cell } = missing;
  if (cell === undefined || !issuer.machine.checks) return;
  const { machine, warp, instruction } = issuer;
  reportOnce(machine, instruction, {
    code: "TW8087",
    message: `${instruction.instruction.opcode} of ${warp.title} reads tensor memory that nothing has written`,
    location: instruction.location,
    expected: "cells that tcgen05.st, tcgen05.cp or a product has written",
    found: addressText(cell.lane, cell.column),
  });
}

function checkScales(issuer: TensorIssuer, name: string, { disagreement }: ReadScales): void {
  const { machine, warp, instruction } = issuer;
  if (disagreement === undefined || !machine.checks) return;
  reportOnce(machine, instruction, {
    code: "TW8090",
    message: `${instruction.instruction.opcode} of ${warp.title}: copies of the scales of ${name} differ`,
    location: instruction.location,
    expected:
      "the same scales in every quarter of the lanes, such as tcgen05.cp with .warpx4 makes",
    found: disagreement,
  });
}

/** The scales of all columns of B, which both blocks of a pair have. */
function scalesOfB(
  issuer: TensorIssuer,
  { blocks, scalesB, opcode, descriptor, isSplit }: ProductCall,
  missing: Undefined,
): BlockScales | undefined {
  if (scalesB === undefined) return undefined;
  const perRow = opcode.scales;
  const all = blocks.map((block) =>
    readScales(block, scalesB, descriptor.n, perRow, descriptor.idB, isSplit, missing),
  );
  for (const read of all) checkScales(issuer, "B", read);
  const [first, second] = all;
  const other = second?.codes.findIndex((code, at) => code !== first?.codes[at]) ?? -1;
  if (other >= 0)
    checkScales(issuer, "B", {
      codes: new Uint8Array(),
      disagreement: `column ${Math.floor(other / perRow)}: ${first?.codes[other]} in the even block, ${second?.codes[other]} in the odd one`,
    });
  return { format: descriptor.scaleFormat, codes: first?.codes ?? new Uint8Array(), perRow };
}

const noCodes = new Uint8Array();

function multiplyInBlock(
  issuer: TensorIssuer,
  product: ProductCall,
  block: BlockView,
  rank: number,
  codesB: Codes,
  scalesB: BlockScales | undefined,
  missing: Undefined,
): void {
  const { opcode, descriptor, placement, rows, a, tensorA, metadata, zeros } = product;
  const { kind, scales } = opcode;
  const indices = indicesOf(issuer, product, block, missing);
  const readA =
    product.scalesA &&
    readScales(block, product.scalesA, rows, scales, descriptor.idA, false, missing);
  if (readA !== undefined) checkScales(issuer, "A", readA);
  const scalesA = readA && { format: descriptor.scaleFormat, codes: readA.codes, perRow: scales };
  const banks = tmemBanks(placement);
  const perBank = descriptor.n / banks;
  const depth = codesB.length / descriptor.n;
  const shared = a && sharedCodes(block, kind, descriptor.a, a.chunks, a.shape);
  const inTensor = tensorA && {
    ...{ place: tensorA, kind, format: descriptor.a, placement, rows },
    shifts: product.shiftsA,
  };
  for (let bank = 0; bank < banks; bank++) {
    const codesA = shared ?? (inTensor ? tensorCodes(block, inTensor, bank, missing) : noCodes);
    const ownB = codesB.slice(bank * perBank * depth, (bank + 1) * perBank * depth);
    const zero = zeros?.zero.subarray(bank * perBank, (bank + 1) * perBank);
    if (zero !== undefined)
      for (const [column, isZero] of zero.entries())
        if (isZero === 1) ownB.fill(0, column * depth, (column + 1) * depth);
    const ownScales = scalesB && {
      ...scalesB,
      codes: scalesB.codes.subarray(bank * perBank * scales, (bank + 1) * perBank * scales),
    };
    const sums = readSums(product, block, bank, missing);
    multiply(product, codesA, ownB, scalesA, ownScales, sums, indices);
    writeSums(product, block, rank, bank, sums);
  }
  if (metadata !== undefined && indices === undefined)
    throw new Error("a sparse A without indices");
}

function indicesOf(
  { instruction }: TensorIssuer,
  { metadata, opcode, placement, rows, descriptor }: ProductCall,
  block: BlockView,
  missing: Undefined,
): Uint16Array | undefined {
  if (metadata === undefined) return undefined;
  const selector = opcode.kind === "f16" || opcode.kind === "tf32" ? descriptor.selector : 0;
  const indices = readMetadata(block, metadata, opcode.kind, placement, rows, selector, missing);
  if (typeof indices !== "string") return indices;
  throw new TilewrightError({
    code: "TW8090",
    message: `${instruction.instruction.opcode}: metadata ${indices}`,
    location: instruction.location,
    expected:
      opcode.kind === "tf32"
        ? "0b0100 or 0b1110 for each group"
        : "two different indices of two bits for each group, the lower one first",
    found: indices,
  });
}

/** Formats of 16 bits and more, which every tensor core multiplies by one rule. */
function isOrdinary(format: ElementFormat): format is "f16" | "bf16" | "tf32" {
  return format === "f16" || format === "bf16" || format === "tf32";
}

function bytesOf(codes: Codes): Uint8Array {
  return new Uint8Array(codes.buffer, codes.byteOffset, codes.byteLength);
}

function multiply(
  { opcode, descriptor, rows, scaleD }: ProductCall,
  codesA: Codes,
  codesB: Codes,
  scalesA: BlockScales | undefined,
  scalesB: BlockScales | undefined,
  sums: Uint32Array,
  indices: Uint16Array | undefined,
): void {
  const { a, b, negatesA, negatesB, accumulator, saturates } = descriptor;
  const depth = descriptor.k;
  const columns = codesB.length / depth;
  if (accumulator === "s32") {
    const [left, right] = [integersOf(a, codesA), integersOf(b, codesB)];
    multiplyBytesExactly(left, right, rows, columns, sums, saturates, indices);
    return;
  }
  if (isFourBit(opcode.kind) && scalesA !== undefined && scalesB !== undefined) {
    const left = decodeNibbles(Uint8Array.from(codesA), rows, scalesA, negatesA ? -1 : 1);
    const right = decodeNibbles(Uint8Array.from(codesB), columns, scalesB, negatesB ? -1 : 1);
    multiplyNibbles(left, right, sums, indices);
    return;
  }
  if (isOrdinary(a) && isOrdinary(b) && accumulator === "f32" && scaleD === 0 && !indices) {
    // The same rule, four columns at a time.
    const left = decodeTensorOperand(a, bytesOf(codesA), rows, negatesA ? -1 : 1);
    const right = decodeTensorOperand(b, bytesOf(codesB), columns, negatesB ? -1 : 1);
    multiplyAccumulate("warp", accumulator, left, right, sums);
    return;
  }
  const scaled = (terms: Terms, scales: BlockScales | undefined): Terms =>
    scales === undefined ? terms : scaledTerms(terms, scales);
  multiplyTerms({
    a: scaled(termsOf(a, codesA, rows, negatesA), scalesA),
    b: scaled(termsOf(b, codesB, columns, negatesB), scalesB),
    c: sums,
    ...{ accumulator, scaleD, indices },
  });
}

/** D of a bank as codes, rows of columns; zeros where the product begins anew. */
function readSums(
  { descriptor, placement, rows, d, accumulates, disabled }: ProductCall,
  block: BlockView,
  bank: number,
  missing: Undefined,
): Uint32Array {
  const perBank = descriptor.n / tmemBanks(placement);
  const sums = new Uint32Array(rows * perBank);
  if (!accumulates) return sums;
  const { words, states } = tensorMemoryOf(block);
  const isHalf = descriptor.accumulator === "f16";
  const needed = isHalf ? halves.low : halves.both;
  for (let row = 0; row < rows; row++) {
    const lane = d.lane + tmemRowLane(placement, row, bank);
    const from = lane * allColumns + d.column;
    for (let column = 0; column < perBank; column++) {
      const word = words[from + column] ?? 0;
      sums[row * perBank + column] = isHalf ? word & 0xffff : word;
      if (((states[from + column] ?? 0) & needed) !== needed && disabled.length === 0)
        missing.cell ??= { lane, column: d.column + column };
    }
  }
  return sums;
}

/** Of shifted rows of A, those whose next one is in another quarter of the lanes: what they get is open. */
function isOpen({ shiftsA, rows }: ProductCall, row: number): boolean {
  return shiftsA && (row & 31) === 31 && row !== rows - 1;
}

function writeSums(
  product: ProductCall,
  block: BlockView,
  rank: number,
  bank: number,
  sums: Uint32Array,
): void {
  const { descriptor, placement, rows, d, disabled } = product;
  const perBank = descriptor.n / tmemBanks(placement);
  const { words, states } = tensorMemoryOf(block);
  const isHalf = descriptor.accumulator === "f16";
  for (let row = 0; row < rows; row++) {
    const lane = d.lane + tmemRowLane(placement, row, bank);
    const mask = disabled[4 * rank + (lane >> 5)] ?? 0;
    if (((mask >>> (lane & 31)) & 1) === 1) continue;
    const from = lane * allColumns + d.column;
    const state = isOpen(product, row) ? halves.none : isHalf ? halves.low : halves.both;
    for (let column = 0; column < perBank; column++) {
      const sum = sums[row * perBank + column] ?? 0;
      words[from + column] = isHalf ? sum | 0xffff_0000 : sum;
    }
    states.fill(state, from, from + perBank);
  }
}
