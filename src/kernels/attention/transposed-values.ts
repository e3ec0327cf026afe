/**
 * V for FP8 attention: wgmma needs V contiguous along the summed axis, so a launch transposes it first, [b, t, kv, e] ──▶ [b, kv, e, t].
 * Scores leave the first product in pairs, and probabilities enter the second in fours; with the columns of scores and the rows of V permuted
 * alike within every 16, threads keep theirs, and no shuffle is needed:
 *
 *   lane                           0         1         2         3         0         1         2         3
 *   scores, pairs of a lane        0 1       2 3       4 5       6 7       8 9       10 11     12 13     14 15
 *   powers, fours of a lane        0 1 8 9   2 3 10 11   4 5 12 13   6 7 14 15
 */
import { assert, cdiv, dim, tensor, constant, kernel, slice, smem } from "../../lang/index.ts";
import type { TensorSpec, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DTypeName } from "../../formats/dtype.ts";
import type { PlannedLaunch, ScratchArray } from "../../device/operation.ts";
import { followPrevious } from "../support/programmatic-dependent-launch.ts";
import { attentionArrays, paddedHead } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { scaleOf } from "./scores.ts";

/** Columns that a block turns, of which there are so many more in memory. */
const turnedTogether = 128;

/** Columns in memory: tiles of the kernel that reads them are whole. */
function turnedColumns(t: number): number {
  return Math.ceil(t / turnedTogether) * turnedTogether;
}

/** Turned values, for the kernel that reads them. */
export function turnedSpec({ problem, sizes }: AttentionForm): TensorSpec {
  const columns = dim("turnedColumns", { multipleOf: turnedTogether });
  return tensor(problem.v.dtype, [dim("b"), dim("kv"), sizes.e, columns]);
}

export function turnedScratch({ problem, sizes: { b, t, kv, e } }: AttentionForm): ScratchArray {
  return { dtype: problem.v.dtype, shape: [b, kv, e, turnedColumns(t)] };
}

/** Powers as they are multiplied by turned values. */
export function dealtPowers<D extends DTypeName>(powers: Tile<D>): Tile<D> {
  const [rows = 0, columns = 0] = powers.shape;
  return powers
    .reshape([rows, columns / 16, 2, 4, 2])
    .transpose([0, 1, 3, 2, 4])
    .reshape([rows, columns]);
}

/** The launch that turns v into the scratch array of this name; it also stops where scales are not more than 0. */
export function turnValues(form: AttentionForm, turned: string): PlannedLaunch {
  const { problem } = form;
  const named = ["v", ...(problem.qScale === undefined ? [] : ["qScale", "kScale"])];
  return {
    kernel: turningKernel(form),
    arguments: {
      ...Object.fromEntries(named.map((name) => [name, { argument: name }])),
      turned: { argument: turned },
    },
  };
}

/** Numbers of a head that a lane reads from a column at once. */
const readTogether = 16;

/**
 * Where columns and numbers of heads lie while they are turned. A lane has four columns of sixteen numbers, which it reads side by side; from these it
 * makes words of four columns by itself. Words of the numbers that lie sixteen apart are written to shared memory at once, each to other banks, if
 * rows of such numbers follow each other there.
 */
function turningLayouts(e: number): { readonly warps: 1 | 2 | 4; readonly turned: string } {
  const across = Math.log2(e / readTogether);
  const lanes = ["L0", "L1", "L2", "L3", "L4"];
  const columns = [...lanes.slice(across), "W0", "W1", "R6", "R7"].slice(0, 5);
  return {
    warps: e >= 64 ? 4 : e === 32 ? 2 : 1,
    turned: `(R2 R3 R4 R5 ${lanes.slice(0, across).join(" ")} | R0 R1 ${columns.join(" ")})`,
  };
}

function turningKernel(form: AttentionForm): KernelDefinition {
  const { inputs, dimensions } = attentionArrays(form);
  const { v, qScale, kScale } = inputs;
  const e = paddedHead(form.sizes.e);
  const { warps, turned: layout } = turningLayouts(e);
  return kernel(
    {
      name: "attention_turn_values",
      grid: {
        ...{ head: dimensions.kv, batch: dimensions.b },
        block: cdiv(dimensions.t, turnedTogether),
      },
      warps,
      inputs: { ...(v && { v }), ...(qScale && { qScale }), ...(kScale && { kScale }) },
      outputs: { turned: turnedSpec(form) },
      scratch: {
        rows: smem(form.problem.v.dtype, [readTogether, e / readTogether, turnedTogether]),
      },
    },
    (argument) => {
      const { head, batch, block } = argument as unknown as {
        readonly [N in "head" | "batch" | "block"]: Scalar<"i32">;
      };
      const {
        v: given,
        turned,
        rows,
      } = argument as unknown as {
        readonly [N in "v" | "turned" | "rows"]: Ref<"f8e4m3fn">;
      };
      followPrevious();
      requireScales(form, argument, head);
      const here = slice(block.mul(turnedTogether), turnedTogether);
      const across = slice(0, e);
      const values = given.at(batch, here, head, across).load();
      const [many, pairs] = [turnedTogether / 16, 4];
      const dealt = values
        .reshape([many, 2, pairs, 2, e])
        .transpose([4, 0, 2, 1, 3])
        .reshape([e, turnedTogether])
        .layoutCast(layout);
      const shape = [e / readTogether, readTogether, turnedTogether];
      rows.store(dealt.reshape(shape).transpose([1, 0, 2]));
      const whole = rows.load().transpose([1, 0, 2]).reshape([e, turnedTogether]);
      turned.at(batch, head, across, here).store(whole);
    },
  ) as unknown as KernelDefinition;
}

/** The largest product would else not be the largest score. */
function requireScales(form: AttentionForm, argument: unknown, head: Scalar<"i32">): void {
  const { problem, sizes } = form;
  if (problem.qScale === undefined) return;
  const { qScale, kScale } = argument as { readonly [N in "qScale" | "kScale"]: Ref<"f32"> };
  const group = sizes.h / sizes.kv;
  const first = head.mul(group);
  const scale = Math.LOG2E * Math.abs(scaleOf(problem, sizes));
  for (let own = 0; own < group; own += 1) {
    const product = qScale.at(first.add(own)).loadScalar().mul(kScale.at(head).loadScalar());
    assert(
      product.mul(scale).gt(constant(dtypes.f32, 0)),
      "the scales of q and k of attention are more than 0",
    );
  }
}
