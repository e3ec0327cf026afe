/**
 * Computes ops whose operands are constants. The computation is the simulator's own, on elements of one
 * element, so a folded constant has the bits that running the op would give:
 *
 *   %0 = constant {value = 1, dtype = bf16, shape = [64]}
 *   %1 = constant {value = 3, dtype = bf16, shape = [64]}
 *   %2 = binary %0, %1 {fn = div}        =>   constant {value = 0.333984375, dtype = bf16, …}
 *
 * A result that a literal cannot say exactly, such as a NaN with a payload, is left alone. What the
 * kernel's grid fixes is constant too: the index along an axis of one block, the one thread's index.
 */
import {
  binaryElements,
  classifyElements,
  compareElements,
  unaryElements,
} from "../formats/arithmetic/elementwise.ts";
import { fusedMultiplyAddElements } from "../formats/arithmetic/fused.ts";
import { convertElements } from "../formats/convert.ts";
import { allocateElements } from "../formats/dtype.ts";
import type { DType, Elements } from "../formats/dtype.ts";
import { packElements, unpackElements } from "../formats/packed.ts";
import { readElement, writeElement } from "../formats/values.ts";
import type { GridAxis, Kernel, Op, Value } from "../ir/node.ts";
import type { OpKind } from "../ir/ops.ts";
import { rewriteKernel } from "../ir/rewrite/engine.ts";
import type { Settled } from "../ir/rewrite/engine.ts";
import { defineRules, rule } from "../ir/rewrite/rules.ts";
import type { RewriteContext, Rule } from "../ir/rewrite/rules.ts";
import type { Literal } from "../ir/schema.ts";
import { isData } from "../ir/types.ts";

interface Operand {
  readonly dtype: DType;
  readonly elements: Elements;
}

function elementOf(dtype: DType, literal: Literal): Elements {
  const elements = allocateElements(dtype, 1);
  writeElement(dtype, elements, 0, literal);
  return elements;
}

function bytesOf({ buffer, byteOffset, byteLength }: Elements): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The element as a literal, where writing the literal gives the element's bits back. */
function literalOf(dtype: DType, elements: Elements): Literal | undefined {
  const literal = readElement(dtype, elements, 0);
  const again = bytesOf(elementOf(dtype, literal));
  return bytesOf(elements).every((byte, index) => byte === again[index]) ? literal : undefined;
}

function constantOperand(value: Value, context: RewriteContext): Operand | undefined {
  const literal = context.literal(value);
  if (literal === undefined || !isData(value.type)) return undefined;
  const { dtype } = value.type;
  return { dtype, elements: elementOf(dtype, literal) };
}

/** A rule that computes the op's one result from the elements of its operands. */
function fold<K extends OpKind>(
  kind: K,
  operands: (op: Op<K>) => readonly Value[],
  compute: (op: Op<K>, operands: readonly Operand[], target: Operand) => void,
): Rule<K> {
  return rule(kind, (op, context) => {
    const given = operands(op);
    // Of nearly all ops some operand is no constant, which is seen before any is made into elements.
    for (const value of given) if (context.literal(value) === undefined) return undefined;
    const constants = given.flatMap((value) => constantOperand(value, context) ?? []);
    const [result] = op.results;
    if (constants.length !== given.length || !result || !isData(result.type)) return undefined;
    const { dtype } = result.type;
    const target = { dtype, elements: allocateElements(dtype, 1) };
    compute(op, constants, target);
    const literal = literalOf(dtype, target.elements);
    return literal === undefined ? undefined : context.createConstant(literal, result.type);
  });
}

type OneOperand = readonly [Operand];
type TwoOperands = readonly [Operand, Operand];
type ThreeOperands = readonly [Operand, Operand, Operand];

const foldUnary = fold(
  "unary",
  ({ operands }) => [operands.source],
  ({ attributes }, operands, target) => {
    const [source] = operands as OneOperand;
    unaryElements(attributes.fn, source.dtype, source.elements, target.elements, attributes);
  },
);

const foldClassify = fold(
  "classify",
  ({ operands }) => [operands.source],
  ({ attributes }, operands, target) => {
    const [source] = operands as OneOperand;
    classifyElements(attributes.fn, source.dtype, source.elements, target.elements as Uint8Array);
  },
);

const foldBinary = fold(
  "binary",
  ({ operands }) => [operands.left, operands.right],
  ({ attributes }, operands, target) => {
    const [left, right] = operands as TwoOperands;
    const { fn } = attributes;
    binaryElements(fn, left.dtype, left.elements, right.elements, target.elements, attributes);
  },
);

const foldCompare = fold(
  "compare",
  ({ operands }) => [operands.left, operands.right],
  ({ attributes }, operands, target) => {
    const [left, right] = operands as TwoOperands;
    const flags = target.elements as Uint8Array;
    compareElements(attributes.predicate, left.dtype, left.elements, right.elements, flags);
  },
);

const foldFused = fold(
  "fma",
  ({ operands }) => [operands.a, operands.b, operands.c],
  ({ attributes }, operands, target) => {
    const [a, b, c] = operands as ThreeOperands;
    const { elements } = target;
    fusedMultiplyAddElements(a.dtype, a.elements, b.elements, c.elements, elements, attributes);
  },
);

const foldCast = fold(
  "cast",
  ({ operands }) => [operands.source],
  ({ attributes: { overflow, rounding } }, operands, target) => {
    const [source] = operands as OneOperand;
    const choices = { overflow, rounding };
    convertElements(source.dtype, target.dtype, source.elements, target.elements, choices);
  },
);

const foldBitcast = fold(
  "bitcast",
  ({ operands }) => [operands.source],
  (_, operands, target) => {
    const [source] = operands as OneOperand;
    const bytes = packElements(source.dtype, source.elements);
    bytesOf(target.elements).set(bytesOf(unpackElements(target.dtype, bytes, 1)));
  },
);

const elementwise = defineRules("fold", {
  unary: foldUnary,
  classify: foldClassify,
  binary: foldBinary,
  compare: foldCompare,
  fma: foldFused,
  cast: foldCast,
  bitcast: foldBitcast,
});

/** A rule for a scalar that the grid may fix. */
function fixedByGrid<K extends "block_index" | "grid_size" | "cluster_rank">(
  kind: K,
  fixed: (axis: GridAxis) => number | undefined,
): Rule<K> {
  return rule(kind, ({ attributes, results: [result] }, context) => {
    const { axis } = attributes as Op<"block_index">["attributes"];
    const found = context.kernel.grid.find(({ name }) => name === axis);
    const value = found && fixed(found);
    if (value === undefined || !result || !isData(result.type)) return undefined;
    return context.createConstant(value, result.type);
  });
}

const launch = defineRules("fold", {
  "index of the only block": fixedByGrid("block_index", ({ extent }) =>
    extent === 1 ? 0 : undefined,
  ),
  "size of a static grid": fixedByGrid("grid_size", ({ extent }) =>
    typeof extent === "number" ? extent : undefined,
  ),
  "rank without a cluster": fixedByGrid("cluster_rank", ({ cluster }) =>
    cluster === 1 ? 0 : undefined,
  ),
  "index of the only thread": rule("thread_index", ({ results: [result] }, context) =>
    context.kernel.threads.length === 1 && result && isData(result.type)
      ? context.createConstant(0, result.type)
      : undefined,
  ),
});

const foldingRules = Object.freeze([...elementwise, ...launch]);

export function foldConstants(kernel: Kernel, settled?: Settled): Kernel {
  return rewriteKernel(kernel, foldingRules, settled);
}
