import { describe, expect, test } from "vitest";
import { context, here } from "../../test/ir-fixtures.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { Builder } from "./builder.ts";
import { scalarType, tileType, typeText } from "./types.ts";

describe("the builder", () => {
  test("gives results the inferred types and ids of their own", () => {
    const builder = new Builder(context);
    builder.openRegion([]);
    const [first] = builder.add("iota", {}, { dtype: i32, shape: [4], axis: 0 }, {}, here);
    const [second] = builder.add("thread_index", {}, {}, {}, here);
    expect(first && typeText(first.type)).toBe("tile<i32, [4]>");
    expect(second && typeText(second.type)).toBe("i32");
    expect(second?.id).not.toBe(first?.id);
  });

  test("keeps copies of lists, so that a caller may go on using its own", () => {
    const builder = new Builder(context);
    builder.openRegion([]);
    const shape = [4, 8];
    builder.add("constant", {}, { value: 0, dtype: f32, shape }, {}, here);
    shape.push(2);
    const region = builder.closeRegion([], here);
    const constant = region.ops[0];
    expect(constant?.kind === "constant" && constant.attributes.shape).toEqual([4, 8]);
    expect(constant?.kind === "constant" && Object.isFrozen(constant.attributes.shape)).toBe(true);
  });

  test("adds to the innermost open region and counts those that are open", () => {
    const builder = new Builder(context);
    builder.openRegion([scalarType(i32)]);
    const [parameter] = builder.openRegion([tileType(f32, [4])]);
    expect(builder.depth).toBe(2);
    if (parameter === undefined) throw new Error("one parameter");
    const inner = builder.closeRegion([parameter], here);
    expect(inner.ops.map(({ kind }) => kind)).toEqual(["yield"]);
    expect(builder.depth).toBe(1);
    builder.abandonRegion();
    expect(() => builder.add("block_sync", {}, {}, {}, here)).toThrow("no region is open");
  });

  test("adds nothing when inference rejects the op", () => {
    const builder = new Builder(context);
    builder.openRegion([]);
    expect(() => builder.add("block_index", {}, { axis: "k" }, {}, here)).toThrow("TW2010");
    expect(builder.closeRegion([], here).ops).toHaveLength(1);
  });
});
