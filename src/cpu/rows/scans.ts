/**
 * Prefix sums of a row, four elements at a time: two shifted additions within a vector, and what came before it on top.
 *
 *   a  b  c  d
 *   a  ab bc cd           + shifted by one
 *   a  ab abc abcd        + shifted by two, + the last lane of the vector before
 */
import { i32, lane, load, op, read, shuffleLanes, splat } from "../loops/builder.ts";
import type { FunctionBuilder, ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression } from "../loops/ir.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";

export type ScanNumbers = "f32" | "i32";

const scalarAdd: { readonly [N in ScanNumbers]: OpcodeName } = { f32: "f32.add", i32: "i32.add" };

/** What changes no number that it is added to, −0 neither. */
function nothing(numbers: ScanNumbers): Expression {
  return numbers === "f32" ? splat("f32x4", -0) : splat("i32x4", 0);
}

/** The prefix sums of a vector, with nothing before it. */
export function prefixSums(
  builder: FunctionBuilder,
  numbers: ScanNumbers,
  value: Expression,
): Expression {
  const zero = nothing(numbers);
  const add = (left: Expression, right: Expression): Expression =>
    builder.keep(op(`${numbers}x4.add`, left, right));
  const once = add(value, shuffleLanes(zero, value, [0, 4, 5, 6]));
  return add(once, shuffleLanes(zero, once, [0, 0, 4, 5]));
}

/** Parameters: source, target (may be the same memory), count. Sums of f32 round in another order than one after the other. */
export function definePrefixSum(module: ModuleBuilder, numbers: ScanNumbers): Callee {
  const names = ["source", "target", "count"];
  return module.define(
    `prefix_sum_${numbers}`,
    names.map(() => "i32" as const),
    [],
    (builder, source, target, count) => {
      if (!source || !target || !count) throw new Error(`a scan takes ${names.join(", ")}`);
      const total = builder.variable(nothing(numbers), "total");
      const shift = builder.keep(i32.sub(target, source));
      const whole = op("i32.and", count, i32.of(-4));
      const middle = builder.keep(i32.add(source, i32.mul(whole, i32.of(4))));
      const end = i32.add(source, i32.mul(count, i32.of(4)));
      builder.countedLoop(source, middle, 16, (at) => {
        const sums = prefixSums(builder, numbers, builder.keep(load("v128.load", at)));
        const result = builder.keep(op(`${numbers}x4.add`, sums, read(total)));
        builder.store("v128.store", i32.add(at, shift), result);
        builder.set(total, shuffleLanes(result, result, [3, 3, 3, 3]));
      });
      const last = builder.variable(lane(`${numbers}x4.extract_lane`, 0, read(total)), "last");
      builder.countedLoop(middle, end, 4, (at) => {
        builder.set(last, op(scalarAdd[numbers], read(last), load(`${numbers}.load`, at)));
        builder.store(`${numbers}.store`, i32.add(at, shift), read(last));
      });
    },
    { names },
  );
}
