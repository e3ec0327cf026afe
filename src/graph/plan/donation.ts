/**
 * What a program's text says of arguments that its caller gives up, as JAX prints `donate_argnums`:
 *
 *   %arg0: tensor<4xf32> {tf.aliasing_output = 1 : i32}     result 1 is to lie there
 *   %arg1: tensor<4xf32> {jax.buffer_donor = true}          any result may
 */
import type { Attribute } from "../ops/attribute.ts";
import type { GraphFunction } from "../ops/node.ts";
import type { Donated } from "./storage-sharing.ts";

const aliasing = "tf.aliasing_output";
const donor = "jax.buffer_donor";

function isTrue(attribute: Attribute | undefined): boolean {
  return attribute?.kind === "unit" || (attribute?.kind === "flag" && attribute.value);
}

export function donatedBy({ parameterAttributes }: GraphFunction): Donated {
  const donated = new Map<number, number | undefined>();
  for (const [index, attributes] of parameterAttributes.entries()) {
    const result = attributes.get(aliasing);
    if (result?.kind === "integer") donated.set(index, Number(result.value));
    else if (isTrue(attributes.get(donor))) donated.set(index, undefined);
  }
  return donated;
}
