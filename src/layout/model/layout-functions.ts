/**
 * Layout functions for the solver: what becomes of a register layout under an operation, for one shape.
 * Each is made once and remembered, since the solver knows a function by its identity.
 *
 *   reduce [64, 128] over 1   (L2 L3 L4 R1 W0 W1 | R0 L0 L1)  ->  (L2 L3 L4 R0 W0 W1)
 *   repeat [64, 1] to [64, 128], from result to source: which lanes need which element of the source
 *                             (L2 L3 L4 R1 W0 W1 | R0 L0 L1)  ->  (L2 L3 L4 R0 W0 W1 |)
 *
 * Texts differ where places do not: `flat(R0 L0)` and `(R0 L0)` are one layout of a vector. Everything
 * that enters or leaves a function is therefore brought to the one spelling that its shape has.
 */
import type { Op } from "../../ir/node.ts";
import { product } from "../algebra/index-bits.ts";
import { joinElements, splitElements, splitShape } from "../algebra/bit-widths.ts";
import { specializeLayout } from "../algebra/expansion.ts";
import {
  broadcastLayout,
  halvesApart,
  halvesTogether,
  reduceLayout,
  sliceLayout,
  transposeLayout,
} from "../algebra/operations.ts";
import type { Broadcast } from "../algebra/operations.ts";
import { axesLayout, fitsShape, replicatedLayout, splat } from "../algebra/register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "../algebra/register-layout.ts";
import { reshapeLayout, splitFlat } from "../algebra/reshape.ts";
import type { LayoutFunction } from "../solver/system.ts";
import { spreadLayouts } from "./broadcast-candidates.ts";

type Shape = readonly number[];

export interface TileFunction extends LayoutFunction<RegisterLayout, RegisterLayout> {
  /** A layout of the argument that is worth trying where the result lies so. */
  source(result: RegisterLayout): RegisterLayout | undefined;
  /** That layout fills registers, and is tried only for the sake of what the user asked for. */
  readonly wasteful: boolean;
  /** Others that lead to the result, in which lanes that hold copies of it share out what it lacks. */
  spread(result: RegisterLayout, bits: number, warps: number): readonly RegisterLayout[];
}

/** Whether a cast leaves elements in another order of registers (`Functions.widen`): integers and floats of 4 bits as f16 or bf16. */
export function widensHalves({ operands: { source }, attributes: { dtype } }: Op<"cast">): boolean {
  if (source.type.kind !== "tile") return false;
  const from = source.type.dtype;
  return from.bits === 4 && (dtype.name === "f16" || dtype.name === "bf16");
}

/** The side of a product whose operand is asked for. */
export type Side = "left" | "right";

type Rule = Pick<TileFunction, "apply" | "source"> & {
  readonly wasteful?: boolean;
  /** Axes of the argument that the result lacks. */
  readonly lacking?: readonly number[];
};

export class Functions {
  readonly #functions = new Map<string, TileFunction>();
  readonly #normalizers = new Map<string, (layout: RegisterLayout) => RegisterLayout>();
  #remembered = 0;

  /** How much it remembers: functions, and what they make of layouts. */
  get size(): number {
    return this.#remembered;
  }

  /** The spelling that stands for all layouts with the same places on this shape. */
  normal(layout: RegisterLayout, shape: Shape): RegisterLayout {
    return this.normalizer(shape)(layout);
  }

  /** `normal` for one shape. */
  normalizer(shape: Shape): (layout: RegisterLayout) => RegisterLayout {
    const key = shape.join();
    const known = this.#normalizers.get(key);
    if (known !== undefined) return known;
    const spellings = new Map<string, RegisterLayout>();
    const made = (layout: RegisterLayout): RegisterLayout => {
      if (layout.kind === "splat") return layout;
      const known = spellings.get(layout.text);
      if (known !== undefined) return known;
      const spelling = specializeLayout(layout, shape);
      spellings.set(layout.text, spelling);
      this.#remembered += 1;
      return spelling;
    };
    this.#normalizers.set(key, made);
    this.#remembered += 1;
    return made;
  }

  reduce(shape: Shape, axes: readonly number[]): TileFunction {
    const kept = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
    const reduced = kept.map((axis) => shape[axis] ?? 1);
    const spread: Broadcast = { from: reduced, to: shape, axes: kept };
    return this.#make(`reduce ${shape.join()} over ${axes.join()}`, shape, reduced, {
      apply: (layout) => reduceLayout(layout, shape, axes),
      source: (result) => broadcastLayout(result, spread),
      wasteful: true,
      lacking: axes,
    });
  }

  /** From the layout of a repeated tile to what each lane needs of the tile that is repeated. */
  repeat(spread: Broadcast): TileFunction {
    const { from, to, axes } = spread;
    const kept = axes.filter((axis, index) => from[index] === to[axis]);
    const dropped = to.map((_, axis) => axis).filter((axis) => !kept.includes(axis));
    const keptShape = kept.map((axis) => to[axis] ?? 1);
    return this.#make(`repeat ${from.join()} to ${to.join()} at ${axes.join()}`, to, from, {
      apply: (layout) => {
        if (layout.kind === "splat") return splat;
        if (kept.length === 0) return replicatedLayout;
        const needed = reduceLayout(layout, to, dropped);
        return needed && reshapeLayout(needed, keptShape, from);
      },
      source: (result) => broadcastLayout(result, spread),
      lacking: dropped,
    });
  }

  reshape(from: Shape, to: Shape): TileFunction {
    return this.#make(`reshape ${from.join()} to ${to.join()}`, from, to, {
      apply: (layout) => reshapeLayout(layout, from, to),
      source: (result) => reshapeLayout(result, to, from),
    });
  }

  transpose(shape: Shape, permutation: readonly number[]): TileFunction {
    const to = permutation.map((axis) => shape[axis] ?? 1);
    const back = permutation.map((_, axis) => permutation.indexOf(axis));
    return this.#make(`transpose ${shape.join()} by ${permutation.join()}`, shape, to, {
      apply: (layout) => transposeLayout(layout, shape, permutation),
      source: (result) => transposeLayout(result, to, back),
    });
  }

  /** What casts from 4 to 16 bits do: of two elements in a word of the result, one is half a word of the source away. */
  widen(shape: Shape): TileFunction {
    return this.#make(`widen ${shape.join()}`, shape, shape, {
      apply: (layout) => halvesTogether(layout, shape),
      source: (result) => halvesApart(result, shape),
    });
  }

  /** Each element as several narrower ones along the last axis. */
  split(shape: Shape, parts: number): TileFunction {
    const to = splitShape(shape, parts);
    return this.#make(`split ${shape.join()} by ${parts}`, shape, to, {
      apply: (layout) => splitElements(layout, shape, parts),
      source: (result) => joinElements(result, to, parts),
    });
  }

  slice(shape: Shape, starts: readonly number[], sizes: Shape): TileFunction {
    return this.#make(
      `slice ${sizes.join()} at ${starts.join()} of ${shape.join()}`,
      shape,
      sizes,
      {
        apply: (layout) => sliceLayout(layout, shape, starts, sizes),
        source: (result) => result,
      },
    );
  }

  /** What a lane that adds up products by itself needs of an operand: whole rows, or whole columns. */
  factor(side: Side, [m = 1, n = 1]: Shape, k: number): TileFunction {
    const to = side === "left" ? [m, k] : [k, n];
    return this.#make(`${side} of ${m},${n} by ${k}`, [m, n], to, {
      apply: (layout) => {
        const own = layout.kind === "flat" ? splitFlat(layout, [m, n]) : layout;
        return own === undefined || own.kind === "splat" ? undefined : factorLayout(own, side);
      },
      source: () => undefined,
    });
  }

  #make(
    name: string,
    from: Shape,
    to: Shape,
    { apply, source, wasteful = false, lacking = [] }: Rule,
  ): TileFunction {
    const known = this.#functions.get(name);
    if (known !== undefined) return known;
    const whole = this.#remembering(to, from, source);
    const made: TileFunction = {
      name,
      apply: this.#remembering(from, to, apply),
      source: whole,
      wasteful,
      spread: (result, bits, warps) => {
        const own = lacking.length === 0 ? undefined : whole(result);
        return own === undefined ? [] : spreadLayouts(own, lacking, { shape: from, bits, warps });
      },
    };
    this.#functions.set(name, made);
    this.#remembered += 1;
    return made;
  }

  #remembering(
    from: Shape,
    to: Shape,
    compute: (layout: RegisterLayout) => RegisterLayout | undefined,
  ): (layout: RegisterLayout) => RegisterLayout | undefined {
    const results = new Map<string, RegisterLayout | undefined>();
    const normalize = this.normalizer(to);
    return (layout) => {
      if (results.has(layout.text)) return results.get(layout.text);
      const result = fitsShape(layout, from) ? compute(layout) : undefined;
      const fits = result !== undefined && fitsShape(result, to) && product(to) > 0;
      const normal = fits ? normalize(result) : undefined;
      results.set(layout.text, normal);
      this.#remembered += 1;
      return normal;
    };
  }
}

/** What is remembered for kernels to come: some MB at most. */
const mostRemembered = 2 ** 15;

let common = new Functions();

/** The functions that all kernels share, which have shapes and layouts in common; a kernel keeps those that it is given. */
export function commonFunctions(): Functions {
  if (common.size > mostRemembered) common = new Functions();
  return common;
}

function factorLayout(layout: DistributedLayout, side: Side): RegisterLayout {
  const [rows = [], columns = []] = layout.axes.length < 2 ? [[], ...layout.axes] : layout.axes;
  return side === "left" ? axesLayout([rows, []]) : axesLayout([[], columns]);
}
