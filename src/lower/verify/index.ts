/**
 * The verifier of placed kernels, on every compilation: what the stages before have decided is held against
 * rules that know nothing of how it was found, so that a mistake of theirs is an error and never a wrong
 * result.
 *
 * | rule        | asks                                                                                    |
 * |-------------|-----------------------------------------------------------------------------------------|
 * | form        | do all tiles have layouts, all products, copies and buffers what was decided of them     |
 * | canonical layout | is each layout in canonical form for its shape, over the warps that run the op |
 * | instruction | can the instruction of a product or copy do it, on this target, with memory stored so    |
 * | layout check | do the layouts of operands and results agree with how the op moves elements           |
 * | conversion  | is there a way from one layout to the other                                              |
 * | scratch     | does every op have the scratch that its own types ask for, each agent a part of its own  |
 * | memory      | do buffers lie aligned and inside, and apart from those that live at the same time       |
 * | bounds      | is every bound tested or proved, and can accesses be made by their units                 |
 * | in-flight products | are registers of products that may still run left alone                                  |
 * | product groups | do waits leave no more products running than they say, in the groups that these are      |
 * | dependent launch | do kernels under programmatic dependent launch wait before they access memory       |
 *
 * Each rule is a file, walks the kernel once, and relies on those before it.
 */
import type { Kernel } from "../../ir/node.ts";
import { verifyBounds } from "./bounds.ts";
import { verifyConversions } from "./conversion.ts";
import { verifyDependentLaunch } from "./programmatic-dependent-launch.ts";
import { verifyInFlightProducts } from "./in-flight-products.ts";
import { verifyForm } from "./completeness.ts";
import { verifyProductGroups } from "./product-groups.ts";
import { verifyInstructions } from "./instruction.ts";
import { verifyLayouts } from "./layout-check.ts";
import { verifyMemory } from "./memory.ts";
import { verifyCanonicalLayouts } from "./canonical-layout.ts";
import { verifyScratch } from "./scratch.ts";

/** Throws a TilewrightError for the first rule that the placed kernel breaks. */
export function verifyPlaced(kernel: Kernel): void {
  const placed = verifyForm(kernel);
  verifyCanonicalLayouts(kernel);
  verifyInstructions(kernel, placed);
  verifyLayouts(kernel);
  verifyConversions(kernel);
  verifyScratch(kernel);
  verifyMemory(kernel, placed);
  verifyBounds(kernel, placed);
  verifyInFlightProducts(kernel);
  verifyProductGroups(kernel);
  verifyDependentLaunch(kernel);
}
