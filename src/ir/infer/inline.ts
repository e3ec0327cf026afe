/**
 * Inference for instructions that the user wrote. Their results have the types that are declared, as texts:
 *
 *   f32            once for each element: the shape is that of the operands
 *   f32[16, 8]     once for each lane: a tile of its own, which lies as its layout says
 */
import { dtypes } from "../../formats/dtype.ts";
import { shapeText } from "../size.ts";
import { dataShape, dataType, sameType, typeText } from "../types.ts";
import type { DataType } from "../types.ts";
import { dataOperand, fail, requireTileShape, sameTypeLists, typesText } from "./checks.ts";
import type { Draft } from "./inference-input.ts";

type InlineDraft = Draft<"inline_ptx" | "inline_ptx_memory">;

export function inlinePtx(draft: InlineDraft): readonly DataType[] {
  const { sources, meaning } = draft.operands;
  const given = sources.map((source) => dataOperand(draft, "an operand", source));
  const results =
    draft.attributes.layouts === undefined ? eachElement(draft, given) : eachLane(draft, given);
  const meant = meaning.map(({ type }) => type);
  if (meaning.length > 0 && !sameTypeLists(meant, results))
    fail(draft, "TW2016", "the meaning of inlinePtx gives other results than are declared", {
      expected: typesText(results),
      found: typesText(meant),
    });
  return results;
}

function eachElement(draft: InlineDraft, given: readonly DataType[]): readonly DataType[] {
  const [first, ...others] = given;
  if (first === undefined)
    return fail(draft, "TW2016", "inlinePtx has no operand", {
      expected: "at least one tile or scalar",
      found: "none",
    });
  for (const other of others)
    if (!sameType(dataType(first.dtype, dataShape(other)), first))
      fail(draft, "TW2016", "operands of inlinePtx have different shapes", {
        expected: shapeText(dataShape(first)),
        found: typeText(other),
      });
  return draft.attributes.types.map((text) => {
    const { dtype, shape } = declared(draft, text);
    if (shape !== undefined)
      fail(draft, "TW2016", "a result of inlinePtx has a shape and no layout", {
        expected: "a number format",
        found: text,
      });
    return dataType(dtype, dataShape(first));
  });
}

function eachLane(draft: InlineDraft, given: readonly DataType[]): readonly DataType[] {
  const { types, layouts = [] } = draft.attributes;
  if (layouts.length !== given.length + types.length)
    fail(draft, "TW2016", "inlinePtx needs a layout for each operand and each result", {
      expected: `${given.length + types.length} layouts`,
      found: String(layouts.length),
    });
  return types.map((text) => {
    const { dtype, shape } = declared(draft, text);
    if (shape === undefined)
      return fail(draft, "TW2016", "a result of inlinePtx has a layout and no shape", {
        expected: `a shape such as ${text}[16, 8]`,
        found: text,
      });
    requireTileShape(draft, shape);
    return dataType(dtype, shape);
  });
}

function declared(draft: InlineDraft, text: string) {
  const [, name = "", list] = /^(\w+)(?:\[([\d, ]+)\])?$/.exec(text) ?? [];
  const dtype = Object.values(dtypes).find((each) => each.name === name);
  if (dtype === undefined)
    return fail(draft, "TW2001", `${text} is no type of a result of inline_ptx`, {
      expected: "f32 or f32[16, 8]",
      found: text,
    });
  return { dtype, shape: list?.split(",").map(Number) };
}
