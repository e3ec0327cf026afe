/** The passes that every program goes through, in their order. */
import type { GraphModule } from "../ops/node.ts";
import { csePass } from "./cse.ts";
import { dcePass } from "./dce.ts";
import { foldPass } from "./fold.ts";
import { inlinePass } from "./inline.ts";
import { hoistPass, unrollPass } from "./loops.ts";
import type { GraphPass } from "./pass.ts";
import { simplifyPass } from "./simplify.ts";

/** Unrolling comes before folding, so that counters become constants; hoisting before merging. */
export const standardPasses: readonly GraphPass[] = Object.freeze([
  inlinePass,
  unrollPass,
  simplifyPass,
  foldPass,
  hoistPass,
  csePass,
  simplifyPass,
  dcePass,
]);

/** Runs passes one after another; a user's own go wherever they are put. */
export function runPasses(
  module: GraphModule,
  passes: readonly GraphPass[] = standardPasses,
): GraphModule {
  return passes.reduce((each, pass) => pass.run(each), module);
}
