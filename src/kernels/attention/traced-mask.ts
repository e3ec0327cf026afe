/** A mask as the ops that it records, traced once on a tile of rows and columns, to be asked about ranges of them. */
import type { Value } from "../../ir/node.ts";
import { countUses, definingOps } from "../../ir/rewrite/analysis.ts";
import { dtypes } from "../../formats/dtype.ts";
import { iota, kernel, smem } from "../../lang/index.ts";
import { origin } from "../../lang/traced.ts";
import { attentionArrays } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { endsWhere } from "./mask-intervals.ts";
import type { Arithmetic, Ends } from "./mask-intervals.ts";
import type { ScorePlace } from "./problem.ts";
import { askedMask } from "./scores.ts";

/** The ends of where scores are. */
export type PlaceEnds<T> = { readonly [N in keyof ScorePlace]: Ends<T> };

export interface TracedMask {
  /** Whether the mask looks at the number of the batch, and of the head. */
  readonly asks: { readonly [N in "batch" | "head"]: boolean };
  /** Whether rows see columns: from 1 where all of them do, to 0 where none does. */
  readonly endsOf: <T>(arithmetic: Arithmetic<T>, place: PlaceEnds<T>) => Ends<T>;
}

/** The mask of a problem on tiles of a shape; undefined where it has none. */
export function tracedMask(
  form: AttentionForm,
  shape: { readonly rows: number; readonly columns: number },
): TracedMask | undefined {
  const { mask } = form.problem;
  if (mask === undefined) return undefined;
  const { rows, columns } = shape;
  const { inputs, dimensions } = attentionArrays(form);
  let found: { readonly place: ScorePlace; readonly result: Value } | undefined;
  const { kernel: traced } = kernel(
    {
      name: "attention_mask",
      grid: { head: dimensions.h, batch: dimensions.b },
      inputs,
      scratch: { seen: smem(dtypes.bool, [rows, columns]) },
    },
    (argument) => {
      const { batch, head } = argument;
      const row = iota(dtypes.i32, [rows, 1], { axis: 0 });
      const column = iota(dtypes.i32, [1, columns], { axis: 1 });
      const place = { batch, head, row, column };
      const seen = askedMask(mask, place, shape, form.location);
      argument.seen.store(seen);
      found = { place, result: seen[origin].value };
    },
  );
  if (found === undefined) throw new Error("kernels are traced at once");
  const { place, result } = found;
  const definitions = definingOps(traced.body);
  const values = placeValues(place);
  const uses = countUses(traced.body);
  return {
    asks: { batch: uses.has(values.batch), head: uses.has(values.head) },
    endsOf: (arithmetic, ends) => {
      const given = new Map(
        (["batch", "head", "row", "column"] as const).map((name) => [values[name], ends[name]]),
      );
      const seen = endsWhere(arithmetic, definitions, given)(result);
      return seen ?? { low: arithmetic.of(0), high: arithmetic.of(1) };
    },
  };
}

function placeValues({ batch, head, row, column }: ScorePlace): {
  readonly [N in keyof ScorePlace]: Value;
} {
  return {
    batch: batch[origin].value,
    head: head[origin].value,
    row: row[origin].value,
    column: column[origin].value,
  };
}
