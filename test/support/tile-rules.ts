/**
 * Runs one emission rule on tiles in layouts of the test's choice: sources are put into the registers of
 * the lanes, the rule writes its instructions, and the results are read back from the registers.
 */
import { expect } from "vitest";
import type { DType } from "../../src/formats/dtype.ts";
import { applyRule } from "../../src/ir/ops.ts";
import type { AnyOp, Kernel, Value } from "../../src/ir/node.ts";
import { walkOps } from "../../src/ir/traverse.ts";
import { elementTable, padding } from "../../src/layout/algebra/elements.ts";
import { registersPerLane } from "../../src/layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../../src/layout/algebra/register-layout.ts";
import { assignSharedMemory } from "../../src/layout/plan/budget.ts";
import type { Conversion, NeededOperand, Placement } from "../../src/layout/plan/place.ts";
import { planRelayout } from "../../src/layout/relayout/relayout.ts";
import { EmitContext } from "../../src/ptx/emit/context.ts";
import { iota, tileRules } from "../../src/ptx/emit/tiles/rules.ts";
import type { EmittedValue, TileValue } from "../../src/ptx/emit/values.ts";
import { slotsOf, wordClass } from "../../src/ptx/emit/values.ts";
import type { Instruction, PtxFunction, Register, Variable } from "../../src/ptx/module.ts";
import { printPtx } from "../../src/ptx/printer.ts";
import { targets } from "../../src/targets/target.ts";
import { assemble, hasPtxas } from "../ptxas.ts";
import { StraightLine } from "./straight-line.ts";

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

function placementOf({ kernel, op, sources, needs, results, oneWarp }: RuleTest): Placement {
  const target = targets.sm_90a;
  const layouts = new Map([...sources].map(([value, { layout }]) => [value, layout] as const));
  for (const [value, layout] of results) layouts.set(value, layout);
  const conversions = needs.flatMap(({ value, layout }): Conversion[] => {
    const source = sources.get(value);
    if (source === undefined) throw new Error("a need of what is no source");
    const plan = planRelayout(source.layout, layout, source.shape, source.dtype);
    if (plan === undefined) throw new Error(`no way from ${source.layout.text} to ${layout.text}`);
    return [{ op, value, source: source.layout, target: layout, plan, cost: 0, weight: 1 }];
  });
  const needed = new Map([[op, needs]]);
  const shared = new Map();
  const memory = assignSharedMemory({
    kernel: oneWarp === true ? insideWarps(kernel, op) : kernel,
    target,
    shared,
    conversions,
    needs: needed,
  });
  return {
    kernel,
    target,
    layouts,
    needs: needed,
    shared,
    products: new Map(),
    copies: new Map(),
    conversions,
    memory,
    cost: 0,
  };
}

/** The kernel with the op where each warp runs it on its own. */
function insideWarps(kernel: Kernel, op: AnyOp): Kernel {
  const end = kernel.body.ops.slice(-1);
  const body = { parameters: [], ops: [op, ...end] };
  const { location } = op;
  const shell = { operands: {}, attributes: {}, results: [], location };
  const warps = { ...shell, kind: "warps", regions: { body } } as AnyOp;
  return { ...kernel, body: { ...kernel.body, ops: [warps, ...end] } };
}

export interface RuleRun {
  readonly machine: StraightLine;
  readonly context: EmitContext;
  readonly results: readonly EmittedValue[];
}

/** Emits the op and runs it; with the instructions' count for reports. */
export function runRule(test: RuleTest): RuleRun {
  const placement = placementOf(test);
  const context = new EmitContext(placement, () => {
    throw new Error("no regions here");
  });
  if (test.oneWarp === true) context.scope = { ...context.scope, oneWarp: true };
  const machine = new StraightLine(128, placement.memory.bytes);
  for (const [value, source] of test.sources) {
    const { layout, shape, dtype } = source;
    const count = Math.ceil(registersPerLane(layout, shape) / slotsOf(dtype));
    const words = context.code.registers(wordClass(dtype), count);
    context.define(value, { kind: "tile", dtype, shape, layout, words });
    fill(machine, words, source);
  }
  const rules = { ...tileRules, iota } as never;
  applyRule(rules, test.op as never, context as never);
  machine.run(context.code.statements);
  return { machine, context, results: test.op.results.map((result) => context.value(result)) };
}

/** What the assembler says of the rules' instructions; nothing where there is none. */
export function assembleRules(runs: readonly RuleRun[]): string {
  if (!hasPtxas || runs.length === 0) return "";
  const declarations = runs.map(({ context }, index): PtxFunction => {
    const body = [...context.code.statements, ret];
    const name = `rule${index}`;
    return {
      kind: "function",
      entry: true,
      name,
      results: [],
      parameters: [],
      directives: [],
      body,
    };
  });
  const shared: Variable = {
    kind: "variable",
    space: "shared",
    name: "shared_memory",
    type: "b8",
    count: 0,
    alignment: 1024,
    linkage: "extern",
  };
  const { name: target } = targets.sm_90a;
  return assemble(
    printPtx({ version: "8.0", target, files: [], declarations: [shared, ...declarations] }),
    target,
  );
}

const ret: Instruction = { kind: "instruction", opcode: "ret", operands: [] };

/** Padding is filled with ones, which are NaN and greatest numbers. */
function fill(
  machine: StraightLine,
  words: readonly Register[],
  { layout, shape, dtype, codes }: { readonly layout: RegisterLayout } & TileCodes,
): void {
  const table = elementTable(layout, shape);
  const registers = registersPerLane(layout, shape);
  const slots = slotsOf(dtype);
  const bits = dtype.kind === "bool" ? 1 : dtype.bits;
  const mask = (1n << BigInt(bits)) - 1n;
  words.forEach((word, index) => {
    const lanes = Array.from({ length: machine.lanes }, (_, lane) => {
      let value = 0n;
      for (let slot = slots - 1; slot >= 0; slot -= 1) {
        const register = layout.kind === "splat" ? 0 : index * slots + slot;
        const element =
          register < registers ? (table[(lane % 128) * registers + register] ?? padding) : padding;
        const code = element === padding ? mask : (codes[element] ?? 0n) & mask;
        value = (value << BigInt(bits)) | code;
      }
      return value;
    });
    machine.fill(word, lanes);
  });
}

/** Checks every place of a tile against the codes of its elements. */
export function expectTile(
  { machine }: RuleRun,
  tile: EmittedValue | undefined,
  expected: TileCodes,
  about: string,
  same: (found: bigint, wanted: bigint, dtype: DType) => boolean = (a, b) => a === b,
): void {
  if (tile?.kind !== "tile") throw new Error(`no tile: ${about}`);
  const { layout, shape, dtype, words } = tile as TileValue;
  expect(shape, about).toEqual(expected.shape);
  const table = elementTable(layout, shape);
  const registers = registersPerLane(layout, shape);
  const slots = slotsOf(dtype);
  const bits = BigInt(dtype.kind === "bool" ? 1 : dtype.bits);
  expect(words.length, about).toBe(Math.ceil(registers / slots));
  for (let lane = 0; lane < machine.lanes; lane += 1)
    for (let register = 0; register < registers; register += 1) {
      const element = table[(lane % 128) * registers + register] ?? padding;
      if (element === padding) continue;
      const word = words[Math.floor(register / slots)];
      const raw = word && machine.value(word, lane);
      const found = ((raw ?? -1n) >> (bits * BigInt(register % slots))) & ((1n << bits) - 1n);
      const wanted = (expected.codes[element] ?? 0n) & ((1n << bits) - 1n);
      if (!same(found, wanted, dtype))
        expect.fail(
          `${about}: lane ${lane}, register ${register}, element ${element} of ${layout.text} is 0x${found.toString(16)}, not 0x${wanted.toString(16)}`,
        );
    }
}
