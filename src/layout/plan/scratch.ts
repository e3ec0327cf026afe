/**
 * Shared memory that ops need for themselves while they run: conversions of their operands, and
 * combining across warps. An op uses one buffer for all of it, one purpose after the other.
 *
 *   | op                 | what goes through the buffer                         | bytes                     |
 *   |--------------------|------------------------------------------------------|---------------------------|
 *   | any                | an operand that is converted                         | as its plan says          |
 *   | reduce, arg_reduce | what each lane has combined, where warps share an axis | 512 a word, 16384 at most |
 *   | scan               | totals of each lane, likewise                        | the same                  |
 *   | debug_print, assert | the place of a record, if it holds tiles             | 16                        |
 *   | sort               | keys, numbers and payloads of each lane, likewise    | the same                  |
 *   | atomic             | old values, for warps that hold copies of what one updates | 512 a word; a scalar 8 |
 */
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, Value } from "../../ir/node.ts";
import { lanesPerWarp, threadsPerProgram } from "../algebra/bits.ts";
import { registersPerLane } from "../algebra/register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "../algebra/register-layout.ts";
import { digitsAlong, layoutAlong, warpsAlong } from "../model/along.ts";
import type { Along } from "../model/along.ts";
import { planRelayout } from "../relayout/relayout.ts";
import { scratchBytes } from "../relayout/steps.ts";
import type { RelayoutPlan } from "../relayout/steps.ts";
import { scratchLimit } from "../relayout/scratch.ts";

/** What a word of every lane takes. */
export const wordBytes = 4 * threadsPerProgram;

/** An op and what decides how much it needs. */
export interface ScratchUser {
  readonly op: AnyOp;
  /** Of its operands. */
  readonly plans: readonly RelayoutPlan[];
  /** In which it reads its first operand. */
  readonly layout: RegisterLayout | undefined;
  /** Whether each warp runs it alone. */
  readonly oneWarp: boolean;
  /** Whether anybody uses its results. */
  readonly used: boolean;
}

/** Bytes that an op needs for itself where one agent runs it. */
export function scratchOf(user: ScratchUser): number {
  if (writesMessage(user.op)) return user.oneWarp ? 0 : messageBytes;
  const converting = user.plans.map(scratchBytes);
  const { layout } = user;
  if (user.op.kind === "atomic" || user.op.kind === "atomic_compare_exchange")
    converting.push(oldValueBytes(user, user.op.operands.value));
  if (layout === undefined || layout.kind === "splat") return Math.max(0, ...converting);
  return Math.max(combiningBytes(user, layout), ...converting);
}

/** Old values that warps tell each other. */
function oldValueBytes({ layout, oneWarp, used }: ScratchUser, { type }: Value): number {
  if (oneWarp || !used) return 0;
  if (type.kind !== "tile") return 8;
  if (layout === undefined || layout.kind === "splat") return 0;
  const copies = layout.replicated;
  if (copies < lanesPerWarp) return 0;
  const lanes = copies === threadsPerProgram - 1 ? 1 : threadsPerProgram;
  const words = type.dtype.bits === 64 ? 2 : 1;
  return registersPerLane(layout, type.shape) * words * 4 * lanes;
}

/** Where in the ring of messages a record begins, for all warps to know. */
const messageBytes = 16;

function writesMessage(op: AnyOp): boolean {
  const tile = ({ type }: Value): boolean => type.kind === "tile";
  if (op.kind === "debug_print") return op.operands.values.some(tile);
  return op.kind === "assert" && tile(op.operands.condition);
}

function combiningBytes({ op, oneWarp }: ScratchUser, layout: DistributedLayout): number {
  if (op.kind === "reduce" || op.kind === "arg_reduce") {
    const axes = op.kind === "reduce" ? op.attributes.axes : [op.attributes.axis];
    const extra = op.kind === "reduce" ? 0 : 1;
    return tradedBytes(layout, [op.operands.source], axes, { extra, combined: true });
  }
  if (op.kind === "scan")
    return bytesAlong(layout, [op.operands.source], op.attributes.axis, oneWarp);
  if (op.kind !== "sort") return 0;
  const { keys, payloads } = op.operands;
  return bytesAlong(layout, [keys, ...payloads], op.attributes.axis, oneWarp);
}

/** Tiles that keep their shape: they may have to be converted to and fro. */
function bytesAlong(
  layout: DistributedLayout,
  values: readonly Value[],
  axis: number,
  oneWarp: boolean,
): number {
  const plans = values.flatMap((value) => {
    const { shape, dtype } = tileOf(value);
    const working = layoutAlong(layout, shape, axis, oneWarp);
    const there = planRelayout(layout, working, shape, dtype);
    const back = planRelayout(working, layout, shape, dtype);
    return [there, back].flatMap((plan) => plan ?? []);
  });
  const shape = values[0] === undefined ? [] : tileOf(values[0]).shape;
  const working = layoutAlong(layout, shape, axis, oneWarp);
  return Math.max(
    tradedBytes(working, values, [axis], { extra: 1, combined: false }),
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
  layout: DistributedLayout,
  values: readonly Value[],
  axes: readonly number[],
  { extra, combined }: Traded,
): number {
  const tiles = values.map(tileOf);
  const shape = tiles[0]?.shape ?? [];
  const along = digitsAlong(layout, shape, axes);
  if (along === undefined || warpsAlong(along).length === 0) return 0;
  const together = combined ? withinLane(along) : 1;
  const words = tiles.reduce((sum, { dtype }) => sum + (dtype.bits === 64 ? 2 : 1), extra);
  return Math.min(scratchLimit, (registersPerLane(layout, shape) / together) * words * wordBytes);
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
