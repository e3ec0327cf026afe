/**
 * The rule of every op kind: what it computes.
 *
 *   "stablehlo.transpose": (op, frame) => [ … ]      from the values of its operands to those of its results
 */
import type { GraphRules } from "../../ops/index.ts";
import type { Frame, RuleResult } from "../frame.ts";
import { chloRules } from "./chlo.ts";
import { controlRules } from "./control.ts";
import { distributionRules } from "./distribution.ts";
import { elementwiseRules } from "./elementwise.ts";
import { productRules } from "./products.ts";
import { reductionRules } from "./reductions.ts";
import { shapeRules } from "./shapes.ts";
import { testingRules } from "./testing.ts";

export const evaluationRules: GraphRules<[Frame], RuleResult> = {
  ...elementwiseRules,
  ...shapeRules,
  ...productRules,
  ...reductionRules,
  ...controlRules,
  ...distributionRules,
  ...chloRules,
  ...testingRules,
};
