/**
 * How often a loop runs, where that can be read from it: a carried counter starts at a constant, the condition
 * compares it with a constant, and the body adds a constant.
 *
 *   while(i = 0, …)  cond i < 10  do i + 1      10
 */
import { elements } from "./elements.ts";
import type { Literal } from "./literal.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "./node.ts";
import { isTensor } from "./types.ts";

type Constants = ReadonlyMap<GraphValue, Literal>;

/** The constant that a value is; defined around the loop or within the region. */
function constantOf(
  value: GraphValue | undefined,
  region: GraphRegion | undefined,
  constants: Constants,
): bigint | undefined {
  if (value === undefined) return undefined;
  const op = region?.ops.find((each) => each.results.includes(value));
  const own = op?.kind === "stablehlo.constant" ? op.attributes.value : undefined;
  const found = own !== undefined && !("kind" in own) ? own : constants.get(value);
  const lane = found?.data[0];
  const whole = typeof lane === "bigint" || (typeof lane === "number" && Number.isInteger(lane));
  return whole && found?.splat === true ? BigInt(lane) : undefined;
}

function definition(value: GraphValue | undefined, region: GraphRegion): AnyGraphOp | undefined {
  return value === undefined ? undefined : region.ops.find((op) => op.results.includes(value));
}

interface Counter {
  readonly index: number;
  readonly limit: bigint;
  readonly direction: "LT" | "LE" | "GT" | "GE" | "NE";
}

const mirrored = { LT: "GT", GT: "LT", LE: "GE", GE: "LE", NE: "NE" } as const;

/**
 * Whether a counter of this type counts past a whole number exactly. Those of small floats are not known, whose literals are bit patterns, nor
 * are truth values, whose sums are no sums.
 */
function wholeNumbers(counter: GraphValue | undefined): (value: bigint) => boolean {
  const type = counter?.type;
  if (type === undefined || !isTensor(type)) return () => false;
  const { kind, bits } = elements[type.element];
  const within = (least: bigint, most: bigint) => (value: bigint) =>
    least <= value && value <= most;
  if (kind === "signed") return within(-(1n << BigInt(bits - 1)), (1n << BigInt(bits - 1)) - 1n);
  if (kind === "unsigned") return within(0n, (1n << BigInt(bits)) - 1n);
  const exact = type.element === "f32" ? 24n : type.element === "f64" ? 53n : undefined;
  return exact === undefined ? () => false : within(-(1n << exact), 1n << exact);
}

/** The parameter that the condition compares with a constant. */
function counterOf(cond: GraphRegion, constants: Constants): Counter | undefined {
  const op = definition(cond.results[0], cond);
  if (op?.kind !== "stablehlo.compare") return undefined;
  const { comparison_direction: direction, compare_type: order } = op.attributes;
  // Zeros differ in total order, and a whole number has no sign of its zero.
  if (direction === "EQ" || order === "TOTALORDER") return undefined;
  const { lhs, rhs } = op.operands;
  const left = cond.parameters.indexOf(lhs);
  const right = cond.parameters.indexOf(rhs);
  const limit = constantOf(left >= 0 ? rhs : lhs, cond, constants);
  if (limit === undefined || (left < 0 && right < 0)) return undefined;
  return left >= 0
    ? { index: left, limit, direction }
    : { index: right, limit, direction: mirrored[direction] };
}

/** What the body adds to a parameter. */
function stepOf(body: GraphRegion, index: number, constants: Constants): bigint | undefined {
  const op = definition(body.results[index], body);
  const parameter = body.parameters[index];
  if (op?.kind === "stablehlo.subtract" && op.operands.lhs === parameter) {
    const step = constantOf(op.operands.rhs, body, constants);
    return step === undefined ? undefined : -step;
  }
  if (op?.kind !== "stablehlo.add") return undefined;
  const { lhs, rhs } = op.operands;
  if (lhs === parameter) return constantOf(rhs, body, constants);
  return rhs === parameter ? constantOf(lhs, body, constants) : undefined;
}

function countUp(start: bigint, step: bigint, { limit, direction }: Counter): number | undefined {
  const distance = limit - start;
  if (step === 0n) return undefined;
  if (direction === "NE")
    return distance % step === 0n && distance / step >= 0n ? Number(distance / step) : undefined;
  const rising = direction === "LT" || direction === "LE";
  if (rising !== step > 0n) return undefined;
  const size = rising ? step : -step;
  const way =
    (rising ? distance : -distance) + (direction === "LE" || direction === "GE" ? 1n : 0n);
  return way <= 0n ? 0 : Number((way + size - 1n) / size);
}

/** The number of times the body runs; undefined where it is not known. */
export function tripCount(
  op: GraphOp<"stablehlo.while">,
  constants: Constants,
): number | undefined {
  const counter = counterOf(op.regions.cond, constants);
  if (counter === undefined) return undefined;
  const start = constantOf(op.operands.operand[counter.index], undefined, constants);
  const step = stepOf(op.regions.body, counter.index, constants);
  if (start === undefined || step === undefined) return undefined;
  const trips = countUp(start, step, counter);
  if (trips === undefined) return undefined;
  // Beyond its element's numbers a counter wraps or stays where it is, and the loop goes on.
  const last = start + BigInt(trips) * step;
  const holds = wholeNumbers(op.operands.operand[counter.index]);
  return holds(start) && holds(last) && holds(counter.limit) ? trips : undefined;
}
