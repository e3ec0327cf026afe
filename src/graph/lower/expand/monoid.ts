/**
 * What is known of regions that combine two values of each operand: what they use from around them, and whether initial values change nothing.
 *
 *   (a, b) ─▶ a + log1p(exp(b − a)), from −∞       −∞ with any number, and any number with −∞, is that number
 */
import { evaluate, isTensorDatum, tensor } from "../../evaluate/index.ts";
import type { Tensor } from "../../evaluate/index.ts";
import { elementsOfNumbers, isNumberElement, numbersOf } from "../../evaluate/scalars.ts";
import { tensorOfLiteral } from "../../evaluate/value.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import { capturesOf } from "../../ops/captures.ts";
import type { ElementType } from "../../ops/elements.ts";
import { moduleOf } from "../../ops/node.ts";
import type { GraphRegion, GraphValue } from "../../ops/node.ts";
import { copyOp, copyRegion, inlineRegion } from "../../ops/rebuild.ts";
import type { Substitution } from "../../ops/rebuild.ts";
import { splatValue } from "../../ops/small-floats.ts";

/** A region without uses of what is around it; undefined where it uses more than constants. */
export function closedRegion(builder: GraphBuilder, region: GraphRegion): GraphRegion | undefined {
  const captures = capturesOf(region);
  const constants = builder.ops.filter(
    ({ kind, results }) =>
      kind === "stablehlo.constant" && results.some((value) => captures.includes(value)),
  );
  if (constants.length < captures.length) return undefined;
  const types = region.parameters.map(({ type }) => type);
  return builder.region(types, (inner, parameters) => {
    const copies: Substitution = new Map();
    for (const op of constants) inner.append(copyOp(op, copies));
    return inlineRegion(inner, copyRegion(region, copies), parameters);
  });
}

/** Numbers that a region is tried with: what leaves all of them as they are is taken to change nothing. */
const samples: readonly number[] = [0, 1, -1, 2, 3, 7, 100, -5, 0.5, -2.25, 2 ** -10];

function sampled(element: ElementType, at: number): Tensor {
  const number = samples[at % samples.length] ?? 0;
  const isWhole = Number.isInteger(number) && (number >= 0 || !element.startsWith("u"));
  const own = element === "i1" ? Math.abs(at % 2) : /f/.test(element) || isWhole ? number : 1;
  return tensor(element, [], elementsOfNumbers(element, Float64Array.of(own)));
}

function isSame(one: Tensor, other: Tensor): boolean {
  const [left, right] = [numbersOf(one)[0] ?? 0, numbersOf(other)[0] ?? 0];
  return left === right || (Number.isNaN(left) && Number.isNaN(right));
}

/** The numbers of initial values, where they are constants that leave whatever they are combined with as it is. */
export function identityOf(
  builder: GraphBuilder,
  body: GraphRegion,
  inits: readonly GraphValue[],
): readonly (number | bigint)[] | undefined {
  const literals = inits.flatMap((init) => {
    const op = builder.ops.find(({ results }) => results.includes(init));
    return op?.kind === "stablehlo.constant" && "data" in op.attributes.value
      ? [op.attributes.value]
      : [];
  });
  const numbers = literals.flatMap((each) => splatValue(each) ?? []);
  const elements = literals.map(({ type }) => type.element);
  if (numbers.length < inits.length || !elements.every(isNumberElement)) return undefined;
  const starts = literals.map(tensorOfLiteral);
  const module = moduleOf(body);
  const changesNothing = samples.every((_, at) => {
    const own = elements.map((element, i) => sampled(element, at + 5 * i));
    return [
      [...starts, ...own],
      [...own, ...starts],
    ].every((given) => {
      const found = evaluate(module, "main", given);
      return found.every((each, i) => {
        const wanted = own[i];
        return wanted !== undefined && isTensorDatum(each) && isSame(each, wanted);
      });
    });
  });
  return changesNothing ? numbers : undefined;
}
