/** What an inference rule is given. */
import type { Location } from "../../support/location.ts";
import type { Kernel } from "../node.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "../ops.ts";
import type { Type } from "../types.ts";

/** An op before its results exist. */
export interface Draft<K extends OpKind = OpKind> {
  readonly kind: K;
  readonly operands: OpOperands<K>;
  readonly attributes: OpAttributes<K>;
  readonly regions: OpRegions<K>;
  readonly location: Location;
}

/** What an op may refer to by name. */
export type InferContext = Pick<Kernel, "grid" | "threads" | "warps" | "dimensions">;

/** One rule a kind: checks the draft and gives the types of its results. */
export type InferRules<K extends OpKind = OpKind> = {
  readonly [P in K]: (draft: Draft<P>, context: InferContext) => readonly Type[];
};
