/**
 * `tcgen05.ld` and `.st`: registers of a warp and the lanes of tensor memory that are its own, those of the quarter
 * that its number in the block has, modulo 4. A load gives values at once, and is over for others when
 * `tcgen05.wait::ld` is; cells that hold nothing defined make registers that hold nothing defined.
 */
import {
  tmemAccessRows,
  tmemAccessShapes,
  tmemCell,
  tmemRegisters,
} from "../../layout/algebra/tensor-memory-access.ts";
import type { TmemAccessShape } from "../../layout/algebra/tensor-memory-access.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type {
  Collective,
  CollectiveCall,
  CollectiveInstruction,
  OperandView,
} from "../collective.ts";
import { constantOf, registersOf } from "../tensor-cores/operands.ts";
import { lanesOf } from "../asynchronous.ts";
import { orderOf, recordTensor } from "./order.ts";
import { columns as allColumns, halves, laneGroup, splitAddress, tensorMemoryOf } from "./state.ts";
import { allocationOf } from "./state.ts";
import type { TensorRange } from "./state.ts";

interface AccessForm {
  readonly instruction: CollectiveInstruction;
  readonly kind: "ld" | "st";
  readonly shape: TmemAccessShape;
  readonly registers: readonly OperandView[];
  readonly address: OperandView;
  readonly packed: boolean;
  readonly offset: number;
  readonly reduction: Reduction | undefined;
  /** Columns that are touched, relative to the address: those of the shape, and of its second part. */
  readonly spans: readonly { readonly column: number; readonly columns: number }[];
  /** Row and column of each thread's register, register by register. */
  readonly rows: Uint8Array;
  readonly columns: Int32Array;
}

interface Reduction {
  readonly target: OperandView;
  readonly isLargest: boolean;
  readonly type: "f32" | "u32" | "s32";
  readonly takesMagnitudes: boolean;
  readonly keepsNaN: boolean;
}

function reductionOf(
  modifiers: readonly string[],
  target: OperandView | undefined,
): Reduction | undefined {
  const type = (["f32", "u32", "s32"] as const).find((each) => modifiers.includes(each));
  if (target === undefined || type === undefined) return undefined;
  return {
    target,
    isLargest: modifiers.includes("max"),
    type,
    takesMagnitudes: modifiers.includes("abs"),
    keepsNaN: modifiers.includes("NaN"),
  };
}

interface Cells {
  readonly rows: Uint8Array;
  readonly columns: Int32Array;
  /** Columns of the shape's first part. */
  readonly width: number;
}

const knownCells = new Map<string, Cells>();

/** Row and column of each thread's register, register by register. */
function cellsOf(
  shape: TmemAccessShape,
  registers: number,
  packed: boolean,
  offset: number,
): Cells {
  const key = `${shape} ${registers} ${packed} ${offset}`;
  const known = knownCells.get(key);
  if (known !== undefined) return known;
  const rows = new Uint8Array(32 * registers);
  const columns = new Int32Array(32 * registers);
  for (let at = 0; at < rows.length; at++) {
    const cell = tmemCell(shape, at & 31, at >> 5, packed, offset);
    rows[at] = cell.row;
    columns[at] = cell.column;
  }
  const width = 1 + columns.reduce((most, column) => Math.max(most, column), 0) - offset;
  const made = { rows, columns, width: packed ? width + 1 : width };
  knownCells.set(key, made);
  return made;
}

/** `ld{.red} {d…} {, reduced}, [address] {, offset}` and `st [address] {, offset}, {a…}` */
export function tensorAccess(
  instruction: CollectiveInstruction,
  kind: "ld" | "st",
): Collective | undefined {
  const { modifiers, operands } = instruction;
  const shape = tmemAccessShapes.find((each) => modifiers.includes(each));
  const repeat = Number(/^x(\d+)$/.exec(modifiers.find((each) => /^x\d+$/.test(each)) ?? "")?.[1]);
  const at = operands.findIndex(({ operand }) => operand.kind === "address");
  const address = operands[at];
  const vector = operands.find(({ operand }) => operand.kind === "vector");
  if (shape === undefined || address === undefined || vector === undefined) return undefined;
  const registers = registersOf(vector);
  if (tmemRegisters(shape, repeat) !== registers.length) return undefined;
  const reduces = kind === "ld" && modifiers[1] === "red";
  const reduction = reduces ? reductionOf(modifiers, operands[1]) : undefined;
  if (reduces && reduction === undefined) return undefined;
  const offset = shape === "16x32bx2" ? constantOf(operands[at + 1]) : 0;
  if (offset === undefined) return undefined;
  const packed = modifiers.includes("pack::16b") || modifiers.includes("unpack::16b");
  const { rows, columns, width } = cellsOf(shape, registers.length, packed, offset);
  const spans =
    shape === "16x32bx2" && offset !== 0
      ? [
          { column: 0, columns: width },
          { column: offset, columns: width },
        ]
      : [{ column: 0, columns: width }];
  const form: AccessForm = {
    ...{ instruction, kind, shape, registers, address, packed, offset, reduction, spans },
    ...{ rows, columns },
  };
  return { aligned: true, run: (call) => runAccess(form, call) };
}

/** Lane and column that the instruction begins at, the same for all threads and in the warp's quarter. */
function originOf(
  { instruction, address, shape }: AccessForm,
  { warp, mask }: CollectiveCall,
): { readonly lane: number; readonly column: number } {
  const lanes = lanesOf(mask);
  const [first = 0] = lanes;
  const bits = address.address(warp, first);
  const { opcode } = instruction.instruction;
  const other = lanes.find((lane) => address.address(warp, lane) !== bits);
  if (other !== undefined)
    throw new TilewrightError({
      code: "TW8074",
      message: `lanes ${first} and ${other} of ${warp.title} give ${opcode} different addresses`,
      location: instruction.location,
      expected: `0x${bits.toString(16)} in every lane`,
      found: `0x${address.address(warp, other).toString(16)} in lane ${other}`,
    });
  const { lane, column } = splitAddress(bits);
  const quarter = 32 * (warp.index & 3);
  const half = tmemAccessRows(shape) === 16 ? lane & 16 : 0;
  if (lane === half || lane === quarter + half) return { lane: quarter + half, column };
  throw new TilewrightError({
    code: "TW8084",
    message: `${opcode} of ${warp.title} names lane ${lane} of tensor memory`,
    location: instruction.location,
    expected: `lane ${quarter}${tmemAccessRows(shape) === 16 ? ` or ${quarter + 16}` : ""}: warp ${warp.index} reaches lanes ${quarter} to ${quarter + 31}`,
    found: `lane ${lane}`,
  });
}

function runAccess(form: AccessForm, call: CollectiveCall): "done" {
  const { machine, warp, mask } = call;
  const { instruction, kind, shape, spans } = form;
  const { lane, column } = originOf(form, call);
  const rows = tmemAccessRows(shape);
  const groups = (rows === 32 ? 3 : 1) << (lane / laneGroup);
  const ranges = spans.map((span): TensorRange => ({
    block: warp.block,
    column: column + span.column,
    columns: span.columns,
    groups,
  }));
  const order = orderOf(machine, warp);
  if (order === undefined)
    for (const range of ranges) allocationOf(machine, instruction, warp.title, range);
  else {
    const mode = kind === "ld" ? "read" : "write";
    const epoch = order.take(mode);
    recordTensor({ machine, warp, instruction }, ranges, mode, epoch, order.knowledge);
    order.open(kind, epoch);
  }
  const from = lane * allColumns + column;
  if (kind === "ld") load(form, call, from);
  else store(form, call, from);
  if (form.reduction !== undefined) reduce(form, form.reduction, call, mask);
  machine.changed();
  return "done";
}

function load(form: AccessForm, { warp, mask }: CollectiveCall, from: number): void {
  const { registers, rows, columns, packed } = form;
  const { words, states } = tensorMemoryOf(warp.block);
  for (const [index, register] of registers.entries()) {
    if (register.operand.kind === "discard") continue;
    const start = register.start(warp);
    const registerWords = warp.words;
    let defined = 0;
    for (let lane = 0; lane < 32; lane++) {
      if (((mask >>> lane) & 1) === 0) continue;
      const at = 32 * index + lane;
      const cell = from + (rows[at] ?? 0) * allColumns + (columns[at] ?? 0);
      const word = words[cell] ?? 0;
      const state = states[cell] ?? 0;
      if (packed) {
        registerWords[start + lane] = (word & 0xffff) | ((words[cell + 1] ?? 0) << 16);
        if ((state & (states[cell + 1] ?? 0) & halves.low) !== 0) defined |= 1 << lane;
      } else {
        registerWords[start + lane] = word;
        if (state === halves.both) defined |= 1 << lane;
      }
    }
    const known = register.defined(warp);
    registerWords[known] = ((registerWords[known] ?? 0) & ~mask) | defined;
  }
}

function store(form: AccessForm, { warp, mask }: CollectiveCall, from: number): void {
  const { registers, rows, columns, packed } = form;
  const { words, states } = tensorMemoryOf(warp.block);
  for (const [index, register] of registers.entries()) {
    const isRegister = register.operand.kind === "register";
    const known = isRegister ? (warp.words[register.defined(warp)] ?? 0) : -1;
    for (let lane = 0; lane < 32; lane++) {
      if (((mask >>> lane) & 1) === 0) continue;
      const at = 32 * index + lane;
      const cell = from + (rows[at] ?? 0) * allColumns + (columns[at] ?? 0);
      const word = register.word(warp, lane);
      const isDefined = ((known >>> lane) & 1) === 1;
      if (packed) {
        // What becomes of the upper halves is open.
        words[cell] = word | 0xffff_0000;
        words[cell + 1] = (word >>> 16) | 0xffff_0000;
        states[cell] = isDefined ? halves.low : halves.none;
        states[cell + 1] = isDefined ? halves.low : halves.none;
      } else {
        words[cell] = word;
        states[cell] = isDefined ? halves.both : halves.none;
      }
    }
  }
}

const singles = new Float32Array(1);
const singleBits = new Uint32Array(singles.buffer);

function decode(word: number, { type, takesMagnitudes }: Reduction): number {
  if (type === "u32") return word >>> 0;
  if (type === "s32") return word | 0;
  singleBits[0] = takesMagnitudes ? word & 0x7fff_ffff : word;
  return singles[0] ?? 0;
}

/** The reduction of each thread's registers, beside them. */
function reduce(
  { registers }: AccessForm,
  reduction: Reduction,
  { warp }: CollectiveCall,
  mask: number,
): void {
  const { target, isLargest, type, keepsNaN } = reduction;
  let defined = mask;
  for (const register of registers) defined &= warp.words[register.defined(warp)] ?? 0;
  for (const lane of lanesOf(mask)) {
    let best: number | undefined;
    let hasNaN = false;
    for (const register of registers) {
      const value = decode(register.word(warp, lane), reduction);
      if (value !== value) hasNaN = true;
      else if (best === undefined || isBeyond(value, best, isLargest)) best = value;
    }
    if (best === undefined || (hasNaN && keepsNaN)) target.setWord(warp, lane, 0x7fff_ffff);
    else if (type === "f32") {
      singles[0] = best;
      target.setWord(warp, lane, singleBits[0] ?? 0);
    } else target.setWord(warp, lane, best >>> 0);
  }
  const known = target.defined(warp);
  warp.words[known] = ((warp.words[known] ?? 0) & ~mask) | defined;
}

/** Of zeros, the positive one is the larger. */
function isBeyond(value: number, best: number, isLargest: boolean): boolean {
  if (value === 0 && best === 0) return isLargest ? Object.is(best, -0) : Object.is(value, -0);
  return isLargest ? value > best : value < best;
}
