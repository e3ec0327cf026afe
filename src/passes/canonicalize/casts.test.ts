/** Conversions one after the other: those that lose nothing in between become one. */
import { expect, test } from "vitest";
import { after } from "../../../test/support/ir-text.ts";
import { deadCode } from "../dead-code.ts";
import { canonicalize } from "./index.ts";

test.each([
  { from: "i32", through: "i64", to: "i8", casts: 2 },
  { from: "u8", through: "i16", to: "i64", casts: 2 },
  { from: "f16", through: "f32", to: "f64", casts: 2 },
  { from: "f16", through: "f32", to: "f16", casts: 1 },
  { from: "bf16", through: "f16", to: "f32", casts: 3 },
  { from: "i8", through: "f32", to: "i4", casts: 3 },
  { from: "u8", through: "f32", to: "u4", casts: 3 },
  { from: "i8", through: "u32", to: "i64", casts: 3 },
  { from: "u8", through: "i8", to: "i32", casts: 3 },
])("$from through $through to $to leaves $casts conversions", ({ from, through, to, casts }) => {
  const cast = (result: string, source: string, dtype: string) =>
    `${result} = cast ${source} {dtype = ${dtype}} : ${dtype}`;
  const lines = [cast("%1", "%a", from), cast("%2", "%1", through), cast("%r", "%2", to)];
  const text = after(
    (kernel) => deadCode(canonicalize(kernel)),
    [...lines, `debug_print %r {format = "{}"}`].join("\n"),
  );
  expect(text.match(/cast/g)).toHaveLength(casts);
});
