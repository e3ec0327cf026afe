/** `wgmma`: products of matrices in shared memory, and in registers, by the four warps of a warpgroup. */
import { TilewrightError } from "../../support/diagnostics.ts";
import { Issue } from "../asynchronous.ts";
import { checkWritten, reportOnce } from "../reports.ts";
import type {
  Collective,
  CollectiveCall,
  CollectiveInstruction,
  CollectiveRule,
  OperandView,
  Place,
  WarpView,
} from "../collective.ts";
import {
  decodeDescriptor,
  descriptorError,
  descriptorProblem,
  gatherOperand,
  operandChunks,
  stepBytes,
} from "./descriptor.ts";
import type { Major, MatrixDescriptor, OperandShape } from "./descriptor.ts";
import { isProduct } from "./forms.ts";
import { gatherHalves, gatherRows, gatherWords, scatterHalves, scatterWords } from "./fragments.ts";
import { isSparse, metadataOf, readMetadata } from "./metadata.ts";
import type { Metadata } from "./metadata.ts";
import { multiplyBytes, multiplySparse } from "./multiply.ts";
import type { ProductForm } from "./multiply.ts";
import { constantOf, parseShape, productForm, registersOf } from "./operands.ts";
import { sparseIndicesOf } from "./sparse.ts";
import { warpgroupOf, warpsPerGroup } from "./warpgroup.ts";
import type { NamedRegister, Operation, WarpPart, Warpgroup } from "./warpgroup.ts";

const rows = 64;
const rowsPerWarp = 16;

interface WgmmaForm {
  readonly instruction: CollectiveInstruction;
  readonly product: ProductForm;
  readonly columns: number;
  readonly accumulators: readonly OperandView[];
  /** Registers, or a descriptor. */
  readonly a: readonly OperandView[];
  readonly aInRegisters: boolean;
  readonly b: OperandView;
  readonly scale: OperandView;
  readonly majorA: Major;
  readonly majorB: Major;
  /** Of a sparse A. */
  readonly metadata: Metadata | undefined;
  /** Bytes of k in a column of B. */
  readonly columnBytes: number;
}

/** `d, a, b {, metadata, selector}, scale-d {, scale-a, scale-b {, transpose-a}, transpose-b}` */
function mmaAsync(instruction: CollectiveInstruction): Collective | undefined {
  const { modifiers, operands } = instruction;
  const shape = parseShape(modifiers);
  const product = productForm(modifiers, "warpgroup");
  const sparse = isSparse(modifiers);
  const [d, a, b] = operands;
  const [scale, scaleA, scaleB, ...transposes] = operands.slice(sparse ? 5 : 3);
  if (shape === undefined || product === undefined) return undefined;
  if (!isProduct({ unit: product.unit, sparse }, product, shape)) return undefined;
  if (d === undefined || a === undefined || b === undefined || scale === undefined)
    return undefined;
  const metadata = sparse
    ? metadataOf(modifiers, product.a, shape.k, operands[3], operands[4])
    : undefined;
  if (sparse && metadata === undefined) return undefined;
  const aInRegisters = a.operand.kind === "vector";
  const [first, second] = transposes.map(constantOf);
  const form: WgmmaForm = {
    instruction,
    product: {
      ...product,
      signA: constantOf(scaleA) === -1 ? -1 : 1,
      signB: constantOf(scaleB) === -1 ? -1 : 1,
    },
    columns: shape.n,
    accumulators: registersOf(d),
    a: registersOf(a),
    aInRegisters,
    b,
    scale,
    majorA: !aInRegisters && first === 1 ? "mn" : "k",
    majorB: (aInRegisters ? first : second) === 1 ? "mn" : "k",
    metadata,
    columnBytes: (sparse ? 2 : 1) * stepBytes,
  };
  return { aligned: true, run: (call) => issueWgmma(form, call) };
}

function shapeA({ majorA }: WgmmaForm): OperandShape {
  return { major: majorA, rows, rowBytes: stepBytes };
}

function shapeB({ majorB, columns, columnBytes }: WgmmaForm): OperandShape {
  return { major: majorB, rows: columns, rowBytes: columnBytes };
}

function named(operands: readonly OperandView[], warp: WarpView): readonly NamedRegister[] {
  return operands.map((operand) => ({
    start: operand.start(warp),
    defined: operand.defined(warp),
  }));
}

/** The one value that all lanes have. */
function uniformWide(
  { warp, machine }: CollectiveCall,
  { instruction }: WgmmaForm,
  operand: OperandView,
): bigint {
  const value = operand.wide(warp, 0);
  if (machine.checks)
    for (let lane = 1; lane < 32; lane++)
      if (operand.wide(warp, lane) !== value)
        throw new TilewrightError({
          code: "TW8074",
          message: `lanes 0 and ${lane} of warp ${warp.index} give ${instruction.instruction.opcode} different descriptors`,
          location: instruction.location,
          expected: `0x${value.toString(16)} in every lane`,
          found: `0x${operand.wide(warp, lane).toString(16)} in lane ${lane}`,
        });
  return value;
}

function issueWgmma(form: WgmmaForm, call: CollectiveCall): "done" {
  const { machine, warp } = call;
  const { instruction } = form;
  checkWarpgroup(form, call);
  const group = warpgroupOf(warp);
  const descriptorA = form.aInRegisters ? undefined : uniformWide(call, form, form.a[0] ?? form.b);
  const descriptorB = uniformWide(call, form, form.b);
  const accumulates = form.scale.word(warp, 0) !== 0;
  const uniform = `${descriptorA ?? "registers"} ${descriptorB} ${accumulates}`;
  const operation =
    group.next(warp) ?? newOperation(form, descriptorA, descriptorB, accumulates, uniform);
  if (operation.instruction !== instruction || operation.uniform !== uniform)
    throw disagreement(form, warp, operation);
  const issue = new Issue({ machine, warp, lane: 0, instruction }, "async");
  recordOperands(form, issue, warp, descriptorA, descriptorB);
  // Metadata are read while the product runs, as A is.
  const metadataRegister = form.metadata === undefined ? [] : [form.metadata.register];
  const part: WarpPart = {
    warp,
    accumulators: named(form.accumulators, warp),
    inputs: named([...(form.aInRegisters ? form.a : []), ...metadataRegister], warp),
    metadata: form.metadata && readMetadata(form.metadata, instruction, call),
    issue,
  };
  if (machine.checks) checkRegisters(form, call, group, part, accumulates);
  group.join(machine, operation, part);
  return "done";
}

function disagreement(form: WgmmaForm, warp: WarpView, operation: Operation): TilewrightError {
  return new TilewrightError({
    code: "TW8072",
    message:
      operation.instruction === form.instruction
        ? `warp ${warp.index} gives ${form.instruction.instruction.opcode} other descriptors or another scale than the warps before it`
        : `warp ${warp.index} executes ${form.instruction.instruction.opcode} where others of its warpgroup executed ${operation.instruction.instruction.opcode}`,
    location: form.instruction.location,
    expected: "the same instruction and operands in all four warps",
    found:
      operation.instruction === form.instruction
        ? "other operands"
        : form.instruction.instruction.opcode,
    notes: [{ message: "the other warps were here", location: operation.instruction.location }],
  });
}

function checkWarpgroup({ instruction }: WgmmaForm, { warp }: CollectiveCall): void {
  const first = warpsPerGroup * Math.floor(warp.index / warpsPerGroup);
  if (warp.block.warps.length >= first + warpsPerGroup) return;
  throw new TilewrightError({
    code: "TW8072",
    message: `${instruction.instruction.opcode} in warp ${warp.index}, whose warpgroup has ${warp.block.warps.length - first} warps`,
    location: instruction.location,
    expected: `${warpsPerGroup} warps`,
    found: `${warp.block.warps.length - first}`,
  });
}

function newOperation(
  form: WgmmaForm,
  descriptorA: bigint | undefined,
  descriptorB: bigint,
  accumulates: boolean,
  uniform: string,
): Operation {
  return {
    instruction: form.instruction,
    uniform,
    parts: Array.from({ length: warpsPerGroup }, () => undefined),
    run: (parts, group) => product(form, descriptorA, descriptorB, accumulates, parts, group),
    done: false,
  };
}

/** Descriptors must lead into shared memory; each warp answers for its part of the operands. */
function recordOperands(
  form: WgmmaForm,
  issue: Issue,
  warp: WarpView,
  descriptorA: bigint | undefined,
  descriptorB: bigint,
): void {
  const quarter = warp.index % warpsPerGroup;
  const own = (bits: bigint, operand: OperandShape): void =>
    recordOperand(form, issue, warp, bits, operand, quarter);
  if (descriptorA !== undefined) own(descriptorA, shapeA(form));
  own(descriptorB, shapeB(form));
}

function recordOperand(
  { instruction }: WgmmaForm,
  issue: Issue,
  warp: WarpView,
  bits: bigint,
  operand: OperandShape,
  quarter: number,
): void {
  const invalid = (why: string) => descriptorError(instruction, bits, why);
  const problem = descriptorProblem(bits);
  if (problem !== undefined) throw invalid(problem);
  const { shared } = warp.block;
  const chunks = operandChunks(decodeDescriptor(bits), operand);
  const beyond = chunks.find((chunk) => chunk + 16 > shared.bytes.length);
  if (beyond !== undefined)
    throw invalid(`byte ${beyond} is beyond the ${shared.bytes.length} bytes of shared memory`);
  if (!issue.checked) return;
  const share = Math.ceil(chunks.length / warpsPerGroup);
  const own = chunks
    .slice(quarter * share, (quarter + 1) * share)
    .sort((left, right) => left - right);
  for (const { offset, bytes } of stretches(own)) {
    const place: Place = { views: shared, offset, block: warp.block, space: "shared" };
    issue.record(place, bytes, "read");
  }
}

/** Sorted chunks joined where they touch. */
function stretches(
  chunks: readonly number[],
): readonly { readonly offset: number; readonly bytes: number }[] {
  const joined: { offset: number; bytes: number }[] = [];
  for (const chunk of chunks) {
    const last = joined.at(-1);
    if (last !== undefined && last.offset + last.bytes === chunk) last.bytes += 16;
    else if (last?.offset !== chunk) joined.push({ offset: chunk, bytes: 16 });
  }
  return joined;
}

/** Registers must have passed a wgmma.fence since they were written, and not play another part in flight. */
function checkRegisters(
  form: WgmmaForm,
  { machine, warp }: CollectiveCall,
  group: Warpgroup,
  { accumulators, inputs }: WarpPart,
  accumulates: boolean,
): void {
  const { fenced, flights } = group.ledger(warp);
  const { instruction } = form;
  const { opcode } = instruction.instruction;
  const roles = [
    { registers: accumulators, role: "accumulator", reads: accumulates },
    { registers: inputs, role: "input", reads: true },
  ] as const;
  for (const { registers, role, reads } of roles)
    for (const { start, defined } of registers) {
      const flight = flights.get(start);
      if (flight !== undefined) {
        if (flight.role === role) continue;
        reportOnce(machine, instruction, {
          code: "TW8070",
          message: `${opcode} in warp ${warp.index} takes a register as ${role} that another wgmma in flight has as ${flight.role}`,
          location: instruction.location,
          expected: "wgmma.wait_group between the two",
          found: "both in flight",
          notes: [{ message: "that one is here", location: flight.instruction.location }],
        });
        return;
      }
      const unwritten = reads && (warp.live & ~(warp.words[defined] as number)) !== 0;
      if (unwritten) {
        reportOnce(machine, instruction, {
          code: "TW8012",
          message: `${opcode} reads registers that ${warp.title} has not written`,
          location: instruction.location,
          expected: "registers that every lane has written",
          found: "some that hold nothing defined",
        });
        return;
      }
      if (fenced !== undefined && (!reads || sameWords(warp.words, fenced, start))) continue;
      reportOnce(machine, instruction, {
        code: "TW8071",
        message: `${opcode} in warp ${warp.index} ${fenced === undefined ? "comes before any wgmma.fence" : "reads registers written since the last wgmma.fence"}`,
        location: instruction.location,
        expected: "wgmma.fence between the write and the product",
        found: fenced === undefined ? "none" : "a write behind the last one",
      });
      return;
    }
}

function sameWords(left: Int32Array, right: Int32Array, start: number): boolean {
  for (let index = start; index < start + 32; index++)
    if (left[index] !== right[index]) return false;
  return true;
}

function operandA(
  form: WgmmaForm,
  descriptor: MatrixDescriptor | undefined,
  parts: readonly WarpPart[],
  shared: Uint8Array,
): Uint8Array {
  if (!form.aInRegisters && descriptor !== undefined)
    return gatherOperand(shared, descriptor, shapeA(form));
  const bytes = new Uint8Array(rows * stepBytes);
  for (const [quarter, { warp, inputs }] of parts.entries()) {
    const own = inputs.slice(0, form.a.length);
    const registers = own.map(({ start }) => warp.words.slice(start, start + 32));
    gatherRows(registers, 16, bytes.subarray(quarter * rowsPerWarp * stepBytes), stepBytes);
  }
  return bytes;
}

/** An operand's bytes must have been written when they are read. */
function checkOperand(
  { instruction }: WgmmaForm,
  { warp, issue }: WarpPart,
  descriptor: MatrixDescriptor,
  operand: OperandShape,
): void {
  if (!issue.checked) return;
  const { machine } = issue.issuer;
  const views = warp.block.shared;
  for (const offset of operandChunks(descriptor, operand))
    checkWritten(machine, warp, instruction, { views, offset, space: "shared" }, 16);
}

/** Makes the product once all four warps are in. */
function product(
  form: WgmmaForm,
  descriptorA: bigint | undefined,
  descriptorB: bigint,
  accumulates: boolean,
  parts: readonly WarpPart[],
  group: Warpgroup,
): void {
  const [first] = parts;
  if (first === undefined) return;
  const { columns, product: shape, metadata } = form;
  const shared = first.warp.block.shared.bytes;
  const decodedA = descriptorA === undefined ? undefined : decodeDescriptor(descriptorA);
  const decodedB = decodeDescriptor(descriptorB);
  if (decodedA !== undefined) checkOperand(form, first, decodedA, shapeA(form));
  checkOperand(form, first, decodedB, shapeB(form));
  const a = operandA(form, decodedA, parts, shared);
  const b = gatherOperand(shared, decodedB, shapeB(form));
  const sums = new Uint32Array(rows * columns);
  const halves = shape.accumulator === "f16";
  const perWarp = rowsPerWarp * columns;
  for (const [quarter, { warp, accumulators }] of parts.entries()) {
    if (!accumulates) continue;
    const words = accumulators.map((register) => group.aside(warp, register));
    const matrix = sums.subarray(quarter * perWarp, (quarter + 1) * perWarp);
    if (halves) gatherHalves(words, columns, matrix);
    else gatherWords(words, 16, columns, matrix);
  }
  if (metadata === undefined) multiplyBytes(shape, a, rows, b, columns, sums);
  else {
    const bits = Uint8Array.from(parts.flatMap((part) => [...(part.metadata ?? [])]));
    const indices = sparseIndicesOf(metadata.sparsity, bits);
    multiplySparse(shape, a, rows, b, columns, sums, indices);
  }
  for (const [quarter, { warp, accumulators }] of parts.entries()) {
    const words = accumulators.map((register) => group.aside(warp, register));
    const matrix = sums.subarray(quarter * perWarp, (quarter + 1) * perWarp);
    if (halves) scatterHalves(matrix, columns, words);
    else scatterWords(matrix, 16, columns, words);
  }
}

const fence: CollectiveRule = () => ({
  aligned: true,
  run: ({ machine, warp }) => {
    if (machine.checks) warpgroupOf(warp).ledger(warp).fenced = warp.words.slice();
    return "done";
  },
});

const commitGroup: CollectiveRule = () => ({
  aligned: true,
  run: ({ warp }) => {
    warpgroupOf(warp).commit(warp);
    return "done";
  },
});

const waitGroup: CollectiveRule = (instruction) => {
  const pending = constantOf(instruction.operands[0]);
  if (pending === undefined) return undefined;
  return {
    aligned: true,
    run: ({ machine, warp }) => {
      const group = warpgroupOf(warp);
      if (group.awaited(warp, pending).some(({ done }) => !done)) return "retry";
      const [touched] = group.settle(warp, pending);
      if (touched !== undefined)
        reportOnce(machine, instruction, {
          code: "TW8070",
          message: `${warp.title} wrote an ${touched.role} register of a wgmma in flight`,
          location: touched.instruction.location,
          expected: "registers that stay as they are until the wait",
          found: "a write before it",
          notes: [{ message: "the wait is here", location: instruction.location }],
        });
      return "done";
    },
  };
};

const operations: { readonly [operation: string]: CollectiveRule } = {
  mma_async: mmaAsync,
  fence,
  commit_group: commitGroup,
  wait_group: waitGroup,
};

export const wgmma: CollectiveRule = (instruction) =>
  operations[instruction.modifiers[0] ?? ""]?.(instruction);
