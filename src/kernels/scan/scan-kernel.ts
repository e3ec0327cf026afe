/**
 * The kernel of a running combination along rows: a block goes through its rows piece by piece, and carries what it has
 * met. Where rows are fewer than processors, several blocks share a row (`shared-scan.ts`).
 */
import type { DType, HostValue } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { cdiv, constant, full, kernel, loop } from "../../lang/index.ts";
import type { Index, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { storeWhole } from "../support/strided.ts";
import type { StridedForm } from "../support/strided.ts";

export interface ScanConfiguration {
  /** Rows of a block, and columns of a piece. */
  readonly rows: number;
  readonly columns: number;
  /** Blocks that share a row. */
  readonly workers: number;
}

/** What is combined, and how. */
export interface ScanRule {
  readonly state: DType;
  readonly identity: HostValue;
  readonly out: DType;
  readonly input: DType;
  readonly reverse: boolean;
  readonly merge: (left: Tile, right: Tile) => Tile;
  readonly total: (tile: Tile) => Tile;
  readonly running: (tile: Tile) => Tile;
}

/** What has been met along a row so far, and nothing yet. */
export function nothing({ state, identity }: ScanRule, rows: number): Tile {
  return full(state, [rows, 1], identity);
}

/** A piece of rows as it is combined; what lies outside of them is nothing. */
export function loadedPiece(
  rule: ScanRule,
  form: StridedForm,
  x: Ref,
  place: readonly Index[],
  sizes: readonly number[],
): Tile {
  const last = form.axes.length - 1;
  const loaded = form.window(x, 0, place, sizes).load({ fill: rule.identity as number });
  return loaded.reshape(form.tileShape(0, sizes, [last - 1, last])).cast(rule.state);
}

/** Arrays: x and out at positions 0 and 1 of the form. */
export function scanKernel(
  rule: ScanRule,
  form: StridedForm,
  { rows, columns }: ScanConfiguration,
): KernelDefinition {
  const last = form.axes.length - 1;
  const leads = form.axes.slice(0, -1).map((_, axis) => axis);
  const sizes = form.axes.map((_, axis) =>
    axis === last ? columns : axis === last - 1 ? rows : 1,
  );
  const grid = Object.fromEntries(
    leads.map((axis) => [`block${axis}`, cdiv(form.extents[axis] ?? 1, sizes[axis] ?? 1)]),
  );
  return kernel(
    {
      name: "scan",
      grid,
      inputs: { x: form.spec(0, rule.input) },
      outputs: { out: form.spec(1, rule.out) },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const starts: readonly Index[] = leads.map((axis) =>
        (argument[`block${axis}`] as Scalar<"i32">).mul(sizes[axis] ?? 1),
      );
      const steps = constant(dtypes.i32, 0).add(cdiv(form.extents[last] ?? 1, columns) as never);
      loop({ to: steps, carry: nothing(rule, rows) }, (index, carry) => {
        // From the end, the first piece is the last.
        const piece = rule.reverse ? steps.sub(index).sub(1) : index;
        const place = [...starts, piece.mul(columns)];
        const tile = loadedPiece(rule, form, argument["x"] as Ref, place, sizes);
        const result = rule.merge(carry, rule.running(tile)).cast(rule.out);
        storeWhole(form.window(argument["out"] as Ref, 1, place, sizes), result, [rows, columns]);
        return rule.merge(carry, rule.total(tile));
      });
    },
  ) as unknown as KernelDefinition;
}
