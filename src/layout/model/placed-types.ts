/** Where the values of a placed kernel lie, as their types say. */
import type { Value } from "../../ir/node.ts";
import { isSpread } from "../../ir/types.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { knownLayout } from "../algebra/text.ts";

export function layoutOf({ type, id }: Value): RegisterLayout {
  if (!isSpread(type) || type.layout === undefined) throw new Error(`%${id} has no layout`);
  return knownLayout(type.layout);
}
