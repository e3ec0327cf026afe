/**
 * `mma.sync` with a `.kind`: products of floats of 4 to 8 bits, dense and sparse, with a scale for each block of k or without.
 *
 *   | kind             | k        | element of A and B                     | scales of a row      |
 *   |------------------|----------|----------------------------------------|----------------------|
 *   | f8f6f4           | 16, 32   | a byte: 8 bits, the low 6, or bits 5–2 |                      |
 *   | mxf8f6f4         | 32       | the same                               | 1 of ue8m0           |
 *   | mxf4             | 64       | a nibble, the low one first            | 2 of ue8m0           |
 *   | mxf4nvf4         | 64       | the same                               | 2 of ue8m0, 4 of ue4m3 |
 *
 * Sparse products have twice the k, of which A holds half. With g = lane >> 2, a scale operand's bytes from `byte` on, in the
 * register of lane 4g + 2·thread + h, are those of row g + 8h of A; of lane 4g + thread, those of column g of B.
 */
import {
  decodeNibbles,
  decodeTerms,
  multiplyNibbles,
  multiplyTerms,
  scaledTerms,
} from "../../formats/arithmetic/tensor-core-terms.ts";
import type { BlockScales, TermFormat, Terms } from "../../formats/arithmetic/tensor-core-terms.ts";
import type {
  Collective,
  CollectiveCall,
  CollectiveInstruction,
  OperandView,
  WarpView,
} from "../collective.ts";
import { reportOnce } from "../reports.ts";
import {
  gatherColumns,
  gatherHalves,
  gatherRows,
  gatherWords,
  scatterHalves,
  scatterWords,
} from "./fragments.ts";
import { isSparse, metadataOf, readMetadata } from "./metadata.ts";
import type { Metadata } from "./metadata.ts";
import {
  parseShape,
  productTypes,
  readRegisters,
  registersOf,
  writeRegisters,
} from "./operands.ts";
import type { Registers } from "./operands.ts";
import { sparseIndicesOf } from "./sparse.ts";

const rows = 16;
const columns = 8;

const formats: { readonly [type: string]: TermFormat } = {
  e4m3: "f8e4m3fn",
  e5m2: "f8e5m2",
  e2m3: "f6e2m3fn",
  e3m2: "f6e3m2fn",
  e2m1: "f4e2m1fn",
};

interface ScaleOperand {
  readonly register: OperandView;
  readonly byte: OperandView;
  readonly thread: OperandView;
}

interface Scales {
  readonly format: BlockScales["format"];
  readonly count: 1 | 2 | 4;
  readonly a: ScaleOperand;
  readonly b: ScaleOperand;
}

interface KindForm {
  readonly instruction: CollectiveInstruction;
  readonly a: TermFormat;
  readonly b: TermFormat;
  readonly accumulator: "f32" | "f16";
  /** Whether elements lie two in a byte. */
  readonly packed: boolean;
  /** Bytes of k in a column of B. */
  readonly columnBytes: number;
  readonly registers: readonly [d: Registers, a: Registers, b: Registers, c: Registers];
  readonly metadata: Metadata | undefined;
  readonly scales: Scales | undefined;
}

/** `mma{.sp::ordered_metadata}.sync.aligned.kind::… d, a, b, c {, metadata, 0} {, scales}`; the parser knows its forms. */
export function mmaOfKind(instruction: CollectiveInstruction): Collective | undefined {
  const form = formOf(instruction);
  return form && { aligned: true, run: (call) => run(form, call) };
}

function formOf(instruction: CollectiveInstruction): KindForm | undefined {
  const { modifiers, operands } = instruction;
  const shape = parseShape(modifiers);
  const [d, a, b, c] = operands.map(registersOf);
  const [sum, typeA = "", typeB = ""] = productTypes(modifiers);
  const [formatA, formatB] = [formats[typeA], formats[typeB]];
  if (d === undefined || a === undefined || b === undefined || c === undefined) return undefined;
  if (shape === undefined || formatA === undefined || formatB === undefined) return undefined;
  if (sum !== "f32" && sum !== "f16") return undefined;
  const packed = modifiers.includes("kind::mxf4") || modifiers.includes("kind::mxf4nvf4");
  const sparse = isSparse(modifiers);
  // Nibbles are chosen in pairs, as those of integers are.
  const metadata = sparse
    ? metadataOf(modifiers, packed ? "u4" : "e4m3", shape.k, operands[4], operands[5])
    : undefined;
  if (sparse && metadata === undefined) return undefined;
  return {
    ...{ instruction, a: formatA, b: formatB, accumulator: sum, packed, metadata },
    columnBytes: packed ? shape.k / 2 : shape.k,
    registers: [d, a, b, c],
    scales: modifiers.includes("block_scale")
      ? scalesOf(instruction, operands.slice(sparse ? 6 : 4))
      : undefined,
  };
}

function scalesOf(
  { modifiers }: CollectiveInstruction,
  [a, idsA, b, idsB]: readonly OperandView[],
): Scales | undefined {
  const operand = (register?: OperandView, ids?: OperandView): ScaleOperand | undefined => {
    const [byte, thread] = ids?.elements ?? [];
    const [only] = register === undefined ? [] : registersOf(register);
    if (only === undefined || byte === undefined || thread === undefined) return undefined;
    return { register: only, byte, thread };
  };
  const [left, right] = [operand(a, idsA), operand(b, idsB)];
  if (left === undefined || right === undefined) return undefined;
  const isPerSixteen = modifiers.includes("scale_vec::4X");
  const isBytes = modifiers.includes("kind::mxf8f6f4");
  return {
    format: modifiers.includes("ue4m3") ? "ue4m3" : "ue8m0",
    count: isPerSixteen ? 4 : isBytes ? 1 : 2,
    ...{ a: left, b: right },
  };
}

/** Codes of elements, from their bytes. */
function codesOf(format: TermFormat, packed: boolean, bytes: Uint8Array): Uint8Array {
  if (packed)
    return Uint8Array.from({ length: 2 * bytes.length }, (_, at) => {
      const byte = bytes[at >> 1] ?? 0;
      return (byte >>> (4 * (at & 1))) & 15;
    });
  if (format === "f4e2m1fn") return bytes.map((byte) => (byte >>> 2) & 15);
  return format.startsWith("f6") ? bytes.map((byte) => byte & 63) : bytes;
}

/** A value that all threads must give alike, and one of some choices. */
function chosen(
  operand: OperandView,
  choices: readonly number[],
  what: string,
  { instruction }: KindForm,
  { machine, warp }: CollectiveCall,
): number {
  const values = Array.from({ length: 32 }, (_, lane) => operand.word(warp, lane) & 0xffff);
  const [first = 0] = values;
  const other = values.find((value) => value !== first);
  const { opcode } = instruction.instruction;
  if (other !== undefined)
    reportOnce(machine, instruction, {
      code: "TW8074",
      message: `threads of ${warp.title} disagree on the ${what} of the scales of ${opcode}`,
      location: instruction.location,
      expected: "the same in all threads",
      found: `${first} and ${other}`,
    });
  if (!choices.includes(first))
    reportOnce(machine, instruction, {
      code: "TW8090",
      message: `the scales of ${opcode} in ${warp.title} come from a ${what} that has none`,
      location: instruction.location,
      expected: choices.join(", "),
      found: `${first}`,
    });
  return first;
}

const firstBytes = { 1: [0, 1, 2, 3], 2: [0, 2], 4: [0] } as const;

/** Scales of rows of A, or of columns of B, from the register of the lane that has them. */
function readScales(
  form: KindForm,
  scales: Scales,
  operand: ScaleOperand,
  side: "a" | "b",
  call: CollectiveCall,
): BlockScales {
  const { count, format } = scales;
  const byte = chosen(operand.byte, firstBytes[count], "byte", form, call);
  const threads = side === "a" ? [0, 1] : [0, 1, 2, 3];
  const thread = chosen(operand.thread, threads, "thread", form, call);
  const [words = new Int32Array(32)] = readRegisters([operand.register], call.warp);
  const lines = side === "a" ? rows : columns;
  const codes = new Uint8Array(lines * count);
  for (let line = 0; line < lines; line++) {
    const quad = 4 * (line & 7);
    const lane = side === "a" ? quad + 2 * (thread & 1) + (line >> 3) : quad + (thread & 3);
    for (let at = 0; at < count; at++)
      codes[line * count + at] = (words[lane] ?? 0) >>> (8 * ((byte + at) & 3));
  }
  return { format, codes, perRow: count };
}

function run(form: KindForm, call: CollectiveCall): "done" {
  const { warp } = call;
  const [d, a, b, c] = form.registers;
  const { columnBytes, metadata } = form;
  const rowBytes = columnBytes / (metadata === undefined ? 1 : 2);
  const left = new Uint8Array(rows * rowBytes);
  gatherRows(readRegisters(a, warp), rows, left, rowBytes);
  const right = gatherColumns(readRegisters(b, warp), columnBytes);
  const indices =
    metadata === undefined
      ? undefined
      : sparseIndicesOf(metadata.sparsity, readMetadata(metadata, form.instruction, call));
  const sums = readSums(form, c, warp);
  const codesA = codesOf(form.a, form.packed, left);
  const codesB = codesOf(form.b, form.packed, right);
  multiply(form, codesA, codesB, sums, indices, call);
  const results = d.map(() => new Int32Array(32));
  if (form.accumulator === "f16") scatterHalves(sums, columns, results);
  else scatterWords(sums, rows, columns, results);
  writeRegisters(d, warp, results);
  return "done";
}

function readSums({ accumulator }: KindForm, c: Registers, warp: WarpView): Uint32Array {
  const sums = new Uint32Array(rows * columns);
  if (accumulator === "f16") gatherHalves(readRegisters(c, warp), columns, sums);
  else gatherWords(readRegisters(c, warp), rows, columns, sums);
  return sums;
}

function multiply(
  form: KindForm,
  codesA: Uint8Array,
  codesB: Uint8Array,
  c: Uint32Array,
  indices: Uint16Array | undefined,
  call: CollectiveCall,
): void {
  const { accumulator, scales } = form;
  const scalesA = scales && readScales(form, scales, scales.a, "a", call);
  const scalesB = scales && readScales(form, scales, scales.b, "b", call);
  if (form.packed && scalesA !== undefined && scalesB !== undefined) {
    const left = decodeNibbles(codesA, rows, scalesA);
    multiplyNibbles(left, decodeNibbles(codesB, columns, scalesB), c, indices);
    return;
  }
  const scaled = (terms: Terms, given: BlockScales | undefined): Terms =>
    given === undefined ? terms : scaledTerms(terms, given);
  const left = scaled(decodeTerms(form.a, codesA, rows), scalesA);
  const right = scaled(decodeTerms(form.b, codesB, columns), scalesB);
  multiplyTerms({ a: left, b: right, c, accumulator, indices });
}
