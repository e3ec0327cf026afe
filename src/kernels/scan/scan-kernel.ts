/**
 * The kernel of a running combination along rows. A block goes through its part of a row piece by piece, and carries
 * what it has met; where rows are few, a row has several parts, and each begins with what came before it:
 *
 *   totals   part totals of x                    one number a part
 *   before   the combination of earlier totals   one number a part
 *   scan     piece after piece, from `before`
 */
import type { DType, HostValue } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { array, cdiv, dim, full, iota, kernel, loop, slice } from "../../lang/index.ts";
import type { Index, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { powerOfTwoFrom } from "../support/sizes.ts";
import { storeWhole } from "../support/strided.ts";
import type { StridedForm } from "../support/strided.ts";

export interface ScanConfiguration {
  /** Rows of a block, and columns of a piece. */
  readonly rows: number;
  readonly columns: number;
  /** Parts of a row that blocks go through side by side. */
  readonly parts: number;
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

export type ScanStage = "totals" | "scan";

/** Arrays: x and out at positions 0 and 1 of the form; numbers of parts lie by rows, [rows…, parts]. */
export function scanKernel(
  stage: ScanStage,
  rule: ScanRule,
  form: StridedForm,
  { rows, columns, parts }: ScanConfiguration,
): KernelDefinition {
  const last = form.axes.length - 1;
  const leads = form.axes.slice(0, -1).map((_, axis) => axis);
  const sizes = form.axes.map((_, axis) =>
    axis === last ? columns : axis === last - 1 ? rows : 1,
  );
  const extent = form.extents[last] ?? 1;
  const grid = Object.fromEntries(
    leads.map((axis) => [`block${axis}`, cdiv(form.extents[axis] ?? 1, sizes[axis] ?? 1)]),
  );
  const ofParts = (columns: number) =>
    array(rule.state, [...leads.map((axis) => form.extents[axis] ?? 1), columns]);
  const isScan = stage === "scan";
  return kernel(
    {
      name: isScan ? "scan" : "scan_totals",
      grid: { ...grid, part: parts },
      inputs: {
        x: form.spec(0, rule.input),
        ...(isScan && parts > 1 && { before: ofParts(parts + 1) }),
      },
      outputs: isScan ? { out: form.spec(1, rule.out) } : { totals: ofParts(parts) },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const starts: readonly Index[] = leads.map((axis) =>
        (argument[`block${axis}`] as Scalar<"i32">).mul(sizes[axis] ?? 1),
      );
      const part = argument["part"] as Scalar<"i32">;
      const share = cdiv(extent, columns * parts);
      const steps = cdiv(extent, columns);
      const from = part.mul(share as never);
      const to = from.add(share as never).minimum(steps as never);
      const partWindow = (ref: Ref, place: Scalar<"i32">): Ref =>
        ref.at(...starts.map((start, axis) => slice(start, sizes[axis] ?? 1)), slice(place, 1));
      const shape = [rows, columns];
      const start = full(rule.state, [rows, 1], rule.identity);
      const first =
        isScan && parts > 1
          ? partWindow(argument["before"] as Ref, rule.reverse ? part.add(1) : part)
              .load()
              .reshape([rows, 1])
          : start;
      const total = loop({ from, to, carry: first }, (index, carry) => {
        // From the end, the first piece is the last.
        const piece = rule.reverse ? from.add(to).sub(index).sub(1) : index;
        const place = [...starts, piece.mul(columns)];
        const window = form.window(argument["x"] as Ref, 0, place, sizes);
        const loaded = window.load().reshape(form.tileShape(0, sizes, [last - 1, last]));
        const isWithin = iota(dtypes.i32, [1, columns], 1)
          .add(piece.mul(columns))
          .lt(extent as never);
        const tile = isWithin.select(
          loaded.cast(rule.state),
          full(rule.state, [1, 1], rule.identity),
        );
        if (isScan) {
          const result = rule.merge(carry, rule.running(tile)).cast(rule.out);
          storeWhole(form.window(argument["out"] as Ref, 1, place, sizes), result, shape);
        }
        return rule.merge(carry, rule.total(tile));
      });
      if (!isScan) storeWhole(partWindow(argument["totals"] as Ref, part), total, [rows, 1]);
    },
  ) as unknown as KernelDefinition;
}

/** What comes before every part: totals, combined and one place further on, with nothing before the first of them. */
export function beforeKernel(rule: ScanRule, parts: number): KernelDefinition {
  const rows = dim("rows");
  const width = powerOfTwoFrom(parts);
  return kernel(
    {
      name: "scan_before",
      grid: { row: rows },
      inputs: { totals: array(rule.state, [rows, parts]) },
      outputs: { before: array(rule.state, [rows, parts + 1]) },
    },
    ({ row, totals, before }) => {
      const loaded = totals.at(slice(row, 1), slice(0, width)).load();
      const isWithin = iota(dtypes.i32, [1, width], 1).lt(parts);
      const nothing = full(rule.state, [1, 1], rule.identity);
      const running = rule.running(isWithin.select(loaded, nothing));
      const place = rule.reverse ? 0 : 1;
      before.at(slice(row, 1), slice(place, width)).store(running);
      before.at(slice(row, 1), slice(rule.reverse ? parts : 0, 1)).store(nothing);
    },
  ) as unknown as KernelDefinition;
}
