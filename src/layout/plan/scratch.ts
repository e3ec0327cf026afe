/**
 * Shared memory that ops need for themselves while they run: conversions of their operands, and
 * combining across warps. An op uses one buffer for all of it, one purpose after the other.
 *
 *   | op                 | what goes through the buffer                         | bytes                     |
 *   |--------------------|------------------------------------------------------|---------------------------|
 *   | convert_layout     | what lies elsewhere afterwards                       | as its plan says          |
 *   | reduce, arg_reduce | what each lane or warp has combined, where warps share an axis | 128 a warp and word, 16384 at most |
 *   | scan               | totals of each lane, likewise                        | the same                  |
 *   | debug_print, assert | the place of a record, if it holds tiles             | 16                        |
 *   | sort               | keys, numbers and payloads of each lane, likewise    | the same                  |
 *   | semaphore_read     | what one lane has read, if there are several warps   | 4                         |
 *   | atomic             | old values, for warps that hold copies of what one updates | 128 a warp and word; a scalar 8 |
 *   | atomic_load        | what one lane has read, for those that hold copies   | the same                  |
 */
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import type { ScratchKind } from "../../ir/ops.ts";
import { laneMask, lanesPerWarp } from "../algebra/index-bits.ts";
import { registersPerLane } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { digitsAlong, layoutAlong, warpsAlong } from "../model/axis-distribution.ts";
import type { Along } from "../model/axis-distribution.ts";
import { layoutOf } from "../model/placed-types.ts";
import { planRelayout } from "../relayout/relayout.ts";
import { scratchBytes } from "../relayout/steps.ts";
import { scratchLimit } from "../relayout/scratch.ts";

/** What a word of every lane takes. */
export function wordBytes(warps: number): number {
  return 4 * lanesPerWarp * warps;
}

/** An op and what decides how much it needs. */
export interface ScratchUser {
  readonly op: AnyOp;
  /** In which it reads its first operand. */
  readonly layout: RegisterLayout | undefined;
  /** Warps that run it together. */
  readonly warps: number;
  /** Whether anybody uses its results. */
  readonly used: boolean;
}

/** What a counter takes. */
const counterBytes = 4;

type ScratchRules = { readonly [K in ScratchKind]: (op: Op<K>, user: ScratchUser) => number };

const rules: ScratchRules = {
  reduce({ operands, attributes }, user) {
    return tradedBytes(user, [operands.source], attributes.axes, { extra: 0, combined: true });
  },
  arg_reduce({ operands, attributes }, user) {
    return tradedBytes(user, [operands.source], [attributes.axis], { extra: 1, combined: true });
  },
  scan({ operands, attributes }, user) {
    return bytesAlong(user, [operands.source], attributes.axis);
  },
  sort({ operands: { keys, payloads }, attributes: { axis }, results }, user) {
    const positions = results.slice(1 + payloads.length);
    return bytesAlong(user, [keys, ...payloads, ...positions], axis);
  },
  atomic: ({ operands }, user) => oldValueBytes(user, operands.value),
  atomic_compare_exchange: ({ operands }, user) => oldValueBytes(user, operands.value),
  semaphore_read: (_, { warps, used }) => (used && warps > 1 ? counterBytes : 0),
  atomic_load: ({ operands }, user) => oldValueBytes(user, operands.fill),
  convert_layout: ({ operands, results: [result] }, { warps }) =>
    result === undefined ? 0 : conversionBytes(operands.source, result, warps),
  debug_print: ({ operands }, user) => recordBytes(user, operands.values),
  assert: ({ operands }, user) => recordBytes(user, [operands.condition]),
};

/** Bytes that an op needs for itself where one agent runs it. */
export function scratchOf(user: ScratchUser): number {
  if (!(user.op.kind in rules)) return 0;
  // TypeScript cannot see that the rule and the op share their kind.
  const rule = rules[user.op.kind as ScratchKind] as (op: AnyOp, user: ScratchUser) => number;
  return rule(user.op, user);
}

/** What goes through shared memory on the way from one value's layout to the other's. */
function conversionBytes(source: Value, result: Value, warps: number): number {
  const { shape, dtype } = tileOf(source);
  const plan = planRelayout(layoutOf(source), layoutOf(result), shape, dtype, warps);
  if (plan === undefined) throw new Error(`no way to the layout of %${result.id}`);
  return scratchBytes(plan);
}

/** Old values that warps tell each other. */
function oldValueBytes({ layout, warps, used }: ScratchUser, { type }: Value): number {
  if (warps === 1 || !used) return 0;
  if (type.kind !== "tile") return 8;
  if (layout === undefined || layout.kind === "splat") return 0;
  const all = laneMask(warps);
  const copies = layout.replicated & all;
  if (copies < lanesPerWarp) return 0;
  const lanes = copies === all ? 1 : all + 1;
  const words = type.dtype.bits === 64 ? 2 : 1;
  return registersPerLane(layout, type.shape) * words * 4 * lanes;
}

/** Where in the ring of messages a record of tiles begins, for all warps to know. */
function recordBytes({ warps }: ScratchUser, values: readonly Value[]): number {
  const hasTile = values.some(({ type }) => type.kind === "tile");
  return hasTile && warps > 1 ? 16 : 0;
}

/** Tiles that keep their shape: they may have to be converted to and fro. */
function bytesAlong(user: ScratchUser, values: readonly Value[], axis: number): number {
  const { layout, warps } = user;
  if (layout === undefined || layout.kind === "splat") return 0;
  const plans = values.flatMap((value) => {
    const { shape, dtype } = tileOf(value);
    const working = layoutAlong(layout, shape, axis, warps);
    const there = planRelayout(layout, working, shape, dtype, warps);
    const back = planRelayout(working, layout, shape, dtype, warps);
    return [there, back].flatMap((plan) => plan ?? []);
  });
  const shape = values[0] === undefined ? [] : tileOf(values[0]).shape;
  const working = layoutAlong(layout, shape, axis, warps);
  return Math.max(
    tradedBytes({ layout: working, warps }, values, [axis], { extra: 1, combined: false }),
    ...plans.map(scratchBytes),
  );
}

interface Traded {
  /** Words beside each element. */
  readonly extra: number;
  /** Whether a lane combines its own elements first. */
  readonly combined: boolean;
}

/**
 * Bytes for combining across warps: every value that a lane has left. What does not fit goes in parts.
 */
function tradedBytes(
  { layout, warps }: Pick<ScratchUser, "layout" | "warps">,
  values: readonly Value[],
  axes: readonly number[],
  { extra, combined }: Traded,
): number {
  if (layout === undefined || layout.kind === "splat") return 0;
  const tiles = values.map(tileOf);
  const shape = tiles[0]?.shape ?? [];
  const along = digitsAlong(layout, shape, axes);
  if (along === undefined || warpsAlong(along).length === 0) return 0;
  const together = combined ? withinLane(along) : 1;
  const words = tiles.reduce((sum, { dtype }) => sum + (dtype.bits === 64 ? 2 : 1), extra);
  const bytes = (registersPerLane(layout, shape) / together) * words * wordBytes(warps);
  return Math.min(Math.max(scratchLimit, words * wordBytes(warps)), bytes);
}

/** Elements along the axes that a lane combines by itself. */
function withinLane({ expansion, axes }: Along): number {
  return axes
    .flatMap((axis) => expansion.axes[axis] ?? [])
    .reduce((count, { thread, radix }) => (thread === undefined ? count * radix : count), 1);
}

function tileOf({ type }: Value): { readonly shape: readonly number[]; readonly dtype: DType } {
  if (type.kind !== "tile") throw new Error("elements of what is no tile are combined");
  return type;
}
