/**
 * Runs one emission rule on tiles in layouts of the test's choice: sources are put into the registers of
 * the lanes, the rule writes its instructions, and the results are read back from the registers.
 */
import { expect } from "vitest";
import { emulate, EmulatedMemory } from "../../src/emulator/index.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { ruleOf } from "../../src/ir/ops.ts";
import type { AnyOp, Kernel, Value } from "../../src/ir/node.ts";
import { walkOps } from "../../src/ir/traverse.ts";
import { elementTable, padding } from "../../src/layout/algebra/element-maps.ts";
import { registersPerLane } from "../../src/layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../../src/layout/algebra/register-layout.ts";
import { collectScratch } from "../../src/layout/plan/agents.ts";
import { allocate } from "../../src/layout/plan/allocate.ts";
import type { Conversion, NeededOperand, Placement } from "../../src/layout/plan/place.ts";
import { planRelayout } from "../../src/layout/relayout/relayout.ts";
import { scratchOperand } from "../../src/layout/model/placed-types.ts";
import { guardBounds } from "../../src/lower/guard-bounds.ts";
import { placedKernel } from "../../src/layout/plan/placed-kernel.ts";
import { threadBarrier } from "../../src/ptx/emit/barriers.ts";
import { EmitContext } from "../../src/ptx/emit/context.ts";
import { emitRules } from "../../src/ptx/emit/rules.ts";
import type { EmittedValue } from "../../src/ptx/emit/values.ts";
import { slotsOf, wordClass } from "../../src/ptx/emit/values.ts";
import type { PtxFunction, PtxModule, Register, Variable } from "../../src/ptx/module.ts";
import { address, integer, symbol } from "../../src/ptx/operands.ts";
import { printPtx } from "../../src/ptx/printer.ts";
import { ptxVersion } from "../../src/ptx/version.ts";
import { targets } from "../../src/targets/target.ts";
import { hasPtxas } from "../ptxas.ts";
import { assemble } from "./accepted-assembly.ts";

/** The codes of a tile's elements, row by row. */
export interface TileCodes {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly codes: readonly bigint[];
}

export interface RuleTest {
  readonly kernel: Kernel;
  readonly op: AnyOp;
  /** Where each operand lies, and what it holds. */
  readonly sources: ReadonlyMap<Value, { readonly layout: RegisterLayout } & TileCodes>;
  /** Where the op reads its operands. */
  readonly needs: readonly NeededOperand[];
  readonly results: ReadonlyMap<Value, RegisterLayout>;
  readonly oneWarp?: boolean;
}

export function opOf(kernel: Kernel, kind: AnyOp["kind"]): AnyOp {
  let found: AnyOp | undefined;
  walkOps(kernel.body, (op) => {
    if (op.kind === kind) found ??= op;
  });
  if (found === undefined) throw new Error(`no ${kind}`);
  return found;
}

function placementOf({ sources, needs, results, ...test }: RuleTest): Placement {
  const { op } = test;
  const kernel = test.oneWarp === true ? insideWarps(test.kernel, op) : test.kernel;
  const target = targets.sm_90a;
  const layouts = new Map([...sources].map(([value, { layout }]) => [value, layout] as const));
  for (const [value, layout] of results) layouts.set(value, layout);
  const conversions = needs.flatMap(({ value, layout }): Conversion[] => {
    const source = sources.get(value);
    if (source === undefined) throw new Error("a need of what is no source");
    const plan = planRelayout(
      source.layout,
      layout,
      source.shape,
      source.dtype,
      test.oneWarp === true ? 1 : kernel.warps,
    );
    if (plan === undefined) throw new Error(`no way from ${source.layout.text} to ${layout.text}`);
    return [{ op, value, source: source.layout, target: layout, plan, cost: 0, weight: 1 }];
  });
  const needed = new Map([[op, needs]]);
  const shared = new Map();
  const areas = collectScratch({ kernel, conversions, needs: needed });
  return {
    kernel,
    target,
    layouts,
    needs: needed,
    shared,
    products: new Map(),
    copies: new Map(),
    conversions,
    areas,
    cost: 0,
  };
}

/** The kernel with the op where each warp runs it on its own. */
function insideWarps(kernel: Kernel, op: AnyOp): Kernel {
  const { ops } = kernel.body;
  const [before, end] = [ops.slice(0, ops.indexOf(op)), ops.slice(-1)];
  const body = { parameters: [], ops: [op, ...end] };
  const { location } = op;
  const shell = { operands: {}, attributes: {}, results: [], location };
  const warps = { ...shell, kind: "warps", regions: { body } } as AnyOp;
  return { ...kernel, body: { ...kernel.body, ops: [...before, warps, ...end] } };
}

/** An op that was emitted and run. */
export interface RuleRun {
  readonly module: PtxModule;
  readonly results: readonly EmittedValue[];
  /** What a lane's register holds at the end; a register of a result. */
  readonly value: (register: Register, lane: number) => bigint;
}

const lanesPerBlock = 128;
const slotBytes = 8;

const sharedMemory: Variable = {
  kind: "variable",
  space: "shared",
  name: "shared_memory",
  type: "b8",
  count: 0,
  alignment: 1024,
  linkage: "extern",
};

function pointer(name: string): Variable {
  return { kind: "variable", space: "param", name, type: "b64" };
}

/** Emits the op between loads of its sources' registers and stores of its results', and runs that. */
export function runRule(test: RuleTest): RuleRun {
  const placement = placementOf(test);
  const kernel = guardBounds(allocate(placedKernel(placement)));
  const { values, ops } = partsOf(kernel, test.op);
  const context = new EmitContext(kernel, () => {
    throw new Error("no regions here");
  });
  if (test.oneWarp === true) context.scope = { ...context.scope, warps: 1 };
  const given: bigint[] = [];
  const from = slots(context, "given");
  for (const [value, source] of test.sources) {
    const { layout, shape, dtype } = source;
    const count = Math.ceil(registersPerLane(layout, shape) / slotsOf(dtype));
    const words = context.code.registers(wordClass(dtype), count);
    context.define(values.get(value.id), { kind: "tile", dtype, shape, layout, words });
    words.forEach((word, index) => {
      loadRegister(context, word, from, given.length / lanesPerBlock);
      given.push(...wordsOfLanes(source, index));
    });
  }
  for (const op of ops) {
    // Where a kernel's ops follow one another, its ordering says so.
    if (scratchOperand(op) !== undefined) threadBarrier(context, "scratch is used again");
    ruleOf(emitRules, op)(op, context);
  }
  const results = (ops.at(-1)?.results ?? []).map((result) => context.value(result));
  const kept = [...new Set(results.flatMap(registersOf))];
  const to = slots(context, "kept");
  kept.forEach((register, index) => {
    storeRegister(context, register, to, index);
  });
  context.code.emit("ret");
  const module = moduleOf(context);
  const found = run(module, given, kept.length, kernel.placed?.sharedBytes ?? 0);
  const value = (register: Register, lane: number): bigint => {
    const index = kept.indexOf(register);
    return found[index * lanesPerBlock + lane] ?? -1n;
  };
  return { module, results, value };
}

/** The placed kernel's values by their numbers, and the op with what stands before it for its sake. */
function partsOf(
  { body }: Kernel,
  { kind, results }: AnyOp,
): { readonly values: ReadonlyMap<number, Value>; readonly ops: readonly AnyOp[] } {
  const values = new Map<number, Value>();
  const ops: AnyOp[] = [];
  let found: AnyOp | undefined;
  walkOps(body, (op) => {
    for (const result of op.results) values.set(result.id, result);
    if (op.kind === kind && op.results[0]?.id === results[0]?.id) found ??= op;
    if (op.kind === "convert_layout" && found === undefined) ops.push(op);
  });
  return { values, ops: [...ops, ...(found === undefined ? [] : [found])] };
}

function registersOf(value: EmittedValue): readonly Register[] {
  if (value.kind === "tile") return value.words;
  if (value.kind === "scalar") return [value.register];
  throw new Error(`a rule made a ${value.kind}`);
}

/** b64: the lane's first slot of an array of registers. */
function slots({ code, numbers }: EmitContext, name: string): Register {
  const base = code.make("b64", "ld.param.b64", address(symbol(name)));
  const place = code.make("b64", "cvta.to.global.u64", base);
  return code.make("b64", "mad.wide.u32", numbers.index, integer(slotBytes), place);
}

function loadRegister({ code }: EmitContext, word: Register, from: Register, index: number): void {
  const at = address(from, index * lanesPerBlock * slotBytes);
  if (word.type !== "pred") return code.emit(`ld.global.${word.type}`, [word, at]);
  const byte = code.make("b32", "ld.global.u8", at);
  code.emit("setp.ne.u32", [word, byte, integer(0)]);
}

function storeRegister({ code }: EmitContext, word: Register, to: Register, index: number): void {
  const at = address(to, index * lanesPerBlock * slotBytes);
  const stored =
    word.type === "pred" ? code.make("b32", "selp.b32", integer(1), integer(0), word) : word;
  code.emit(`st.global.${stored.type}`, [at, stored]);
}

function moduleOf(context: EmitContext): PtxModule {
  const { target, code } = context;
  const rule: PtxFunction = {
    kind: "function",
    entry: true,
    name: "rule",
    linkage: "visible",
    results: [],
    parameters: [pointer("given"), pointer("kept")],
    directives: [],
    body: code.statements,
  };
  const version = ptxVersion(target.name, code.statements);
  return { version, target: target.name, files: [], declarations: [sharedMemory, rule] };
}

/** The slots of the kept registers after a launch of one block. */
function run(
  module: PtxModule,
  given: readonly bigint[],
  kept: number,
  sharedBytes: number,
): BigUint64Array {
  const memory = new EmulatedMemory();
  const source = memory.allocate(Math.max(1, given.length) * slotBytes, "given");
  memory.write(source, new Uint8Array(BigUint64Array.from(given).buffer));
  const bytes = kept * lanesPerBlock * slotBytes;
  const target = memory.allocate(bytes, "kept");
  memory.fill(target, bytes, Uint8Array.of(0));
  const { findings } = emulate(
    module,
    {
      entry: "rule",
      blocks: [1, 1, 1],
      threads: [lanesPerBlock, 1, 1],
      sharedBytes,
      parameters: [source, target].map(
        (place) => new Uint8Array(BigUint64Array.of(BigInt(place)).buffer),
      ),
    },
    memory,
    { target: targets.sm_90a, seed: kept },
  );
  expect(findings.map(({ message }) => message)).toEqual([]);
  return new BigUint64Array(memory.read(target, bytes).slice().buffer);
}

/** What the assembler says of the rules' instructions; nothing where there is none. */
export function assembleRules(runs: readonly RuleRun[]): string {
  if (!hasPtxas) return "";
  const functions = runs.flatMap(({ module }, index) =>
    module.declarations.flatMap((each) =>
      each.kind === "function" ? [{ ...each, name: `rule${index}` }] : [],
    ),
  );
  const [first] = runs;
  if (first === undefined) return "";
  const version = runs
    .map(({ module }) => module.version)
    .reduce((left, right) => (Number(left) > Number(right) ? left : right));
  const declarations = [sharedMemory, ...functions];
  return assemble(printPtx({ ...first.module, version, declarations }), first.module.target);
}

/** A word of a tile in each lane. Padding is filled with ones, which are NaN and greatest numbers. */
function wordsOfLanes(
  { layout, shape, dtype, codes }: { readonly layout: RegisterLayout } & TileCodes,
  index: number,
): readonly bigint[] {
  const table = elementTable(layout, shape);
  const registers = registersPerLane(layout, shape);
  const slotCount = slotsOf(dtype);
  const bits = dtype.kind === "bool" ? 1 : dtype.bits;
  const mask = (1n << BigInt(bits)) - 1n;
  return Array.from({ length: lanesPerBlock }, (_, lane) => {
    let value = 0n;
    for (let slot = slotCount - 1; slot >= 0; slot -= 1) {
      const register = layout.kind === "splat" ? 0 : index * slotCount + slot;
      const element =
        register < registers ? (table[lane * registers + register] ?? padding) : padding;
      const code = element === padding ? mask : (codes[element] ?? 0n) & mask;
      value = (value << BigInt(bits)) | code;
    }
    return value;
  });
}

/** Checks every place of a tile against the codes of its elements. */
export function expectTile(
  { value }: RuleRun,
  tile: EmittedValue | undefined,
  expected: TileCodes,
  about: string,
  same: (found: bigint, wanted: bigint, dtype: DType) => boolean = (a, b) => a === b,
): void {
  if (tile?.kind !== "tile") throw new Error(`no tile: ${about}`);
  const { layout, shape, dtype, words } = tile;
  expect(shape, about).toEqual(expected.shape);
  const table = elementTable(layout, shape);
  const registers = registersPerLane(layout, shape);
  const slots = slotsOf(dtype);
  const bits = BigInt(dtype.kind === "bool" ? 1 : dtype.bits);
  expect(words.length, about).toBe(Math.ceil(registers / slots));
  for (let lane = 0; lane < lanesPerBlock; lane += 1)
    for (let register = 0; register < registers; register += 1) {
      const element = table[lane * registers + register] ?? padding;
      if (element === padding) continue;
      const word = words[Math.floor(register / slots)];
      const raw = word && value(word, lane);
      const found = ((raw ?? -1n) >> (bits * BigInt(register % slots))) & ((1n << bits) - 1n);
      const wanted = (expected.codes[element] ?? 0n) & ((1n << bits) - 1n);
      if (!same(found, wanted, dtype))
        expect.fail(
          `${about}: lane ${lane}, register ${register}, element ${element} of ${layout.text} is 0x${found.toString(16)}, not 0x${wanted.toString(16)}`,
        );
    }
}
