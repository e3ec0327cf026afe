/**
 * Derivatives of ops that work element by element: the tangent times the derivative at the operand. At kinks
 * (abs, maximum, clamp) the values are JAX's: a tie of maximum goes half to each side.
 */
import type { GraphBuilder } from "../infer/builder.ts";
import type { chloOps } from "../ops/chlo.ts";
import type { elementwiseOps } from "../ops/elementwise.ts";
import type { GraphValue } from "../ops/node.ts";
import {
  addValues,
  binary,
  broadcastInDim,
  compare,
  divide,
  like,
  multiply,
  negate,
  scaled,
  select,
  subtract,
  typeOfValue,
  unary,
} from "./arithmetic.ts";
import { isDifferentiable } from "./context.ts";
import type { JvpContext, JvpRule, JvpRules, Tangent } from "./context.ts";
import {
  absRule,
  complexRule,
  conjugateRule,
  imaginaryRule,
  realRule,
  signRule,
} from "./jvp-complex.ts";
import { conversion, negation, required, scaling, selection, single } from "./maps.ts";
import { refused, zero } from "./nondifferentiable.ts";
import { through } from "./jvp-by-decomposition.ts";

interface Place {
  readonly builder: GraphBuilder;
  readonly x: GraphValue;
  /** The op's result. */
  readonly y: GraphValue;
}

interface OneOperand {
  readonly operands: { readonly operand: GraphValue };
  readonly results: readonly GraphValue[];
}

interface TwoOperands {
  readonly operands: { readonly lhs: GraphValue; readonly rhs: GraphValue };
  readonly results: readonly GraphValue[];
}

/** The rule of a function of one operand, from its derivative. */
function derivative(at: (place: Place) => GraphValue) {
  return (op: OneOperand, context: JvpContext): readonly Tangent[] => {
    const { builder } = context;
    const x = op.operands.operand;
    const tangent = context.tangent(x);
    const y = required(op.results[0]);
    return [context.map(tangent, () => scaling(at({ builder, x, y })))];
  };
}

function one({ builder, x }: Place): GraphValue {
  return like(builder, x, 1);
}

/** 1 + s · v². */
function onePlusSquare(place: Place, value: GraphValue, sign: 1 | -1): GraphValue {
  const square = multiply(place.builder, value, value);
  const combine = sign === 1 ? addValues : subtract;
  return combine(place.builder, one(place), square);
}

/** The rule of a function of two operands, from its two derivatives. */
function partials(
  left: (place: {
    builder: GraphBuilder;
    x: GraphValue;
    y: GraphValue;
    z: GraphValue;
  }) => GraphValue,
  right: (place: {
    builder: GraphBuilder;
    x: GraphValue;
    y: GraphValue;
    z: GraphValue;
  }) => GraphValue,
) {
  return (op: TwoOperands, context: JvpContext): readonly Tangent[] => {
    const { builder } = context;
    const { lhs: x, rhs: y } = op.operands;
    const place = { builder, x, y, z: required(op.results[0]) };
    return [
      context.sum([
        context.map(context.tangent(x), () => scaling(left(place))),
        context.map(context.tangent(y), () => scaling(right(place))),
      ]),
    ];
  };
}

/** 1, 0, or a half at ties, as a number of the operands' type. */
function share(
  direction: "GT" | "LT",
): (place: { builder: GraphBuilder; x: GraphValue; y: GraphValue }) => GraphValue {
  return ({ builder, x, y }) => {
    const wins = compare(builder, direction, x, y);
    const ties = compare(builder, "EQ", x, y);
    const half = select(builder, ties, like(builder, x, 0.5), like(builder, x, 0));
    return select(builder, wins, like(builder, x, 1), half);
  };
}

const flipped = { GT: "LT", LT: "GT" } as const;

function extreme(direction: "GT" | "LT") {
  return partials(share(direction), share(flipped[direction]));
}

const addRule: JvpRule<"stablehlo.add"> = (op, context) => [
  context.sum([context.tangent(op.operands.lhs), context.tangent(op.operands.rhs)]),
];

const subtractRule: JvpRule<"stablehlo.subtract"> = (op, context) => {
  const right = context.tangent(op.operands.rhs);
  const negated = context.map(right, () => negation(typeOfValue(op.operands.rhs)));
  return [context.sum([context.tangent(op.operands.lhs), negated])];
};

const convertRule: JvpRule<"stablehlo.convert"> = (op, context) => {
  const tangent = context.tangent(op.operands.operand);
  const to = typeOfValue(required(op.results[0]));
  if (!isDifferentiable(required(op.results[0]))) return [undefined];
  return [context.map(tangent, () => conversion(typeOfValue(op.operands.operand), to))];
};

const selectRule: JvpRule<"stablehlo.select"> = (op, context) => {
  const { pred, on_true: onTrue, on_false: onFalse } = op.operands;
  const tangents = [context.tangent(onTrue), context.tangent(onFalse)];
  const present = tangents.filter((each) => each !== undefined);
  if (present.length === 0) return [undefined];
  const active = { onTrue: tangents[0] !== undefined, onFalse: tangents[1] !== undefined };
  return context.mode.linear(selection(pred, typeOfValue(onTrue), active), present);
};

/** The operand strictly between the bounds, or the bound that the result is; nothing where the operand is one, as JAX has it. */
const clampRule: JvpRule<"stablehlo.clamp"> = (op, context) =>
  through(op, context, (builder) => {
    const { operand } = op.operands;
    const type = typeOfValue(operand);
    const [min, max] = [op.operands.min, op.operands.max].map((bound) =>
      typeOfValue(bound).shape.length === type.shape.length
        ? bound
        : broadcastInDim(builder, bound, type.shape, []),
    ) as [GraphValue, GraphValue];
    const both = (left: GraphValue, right: GraphValue): GraphValue =>
      binary(builder, "stablehlo.and", left, right);
    const less = (left: GraphValue, right: GraphValue): GraphValue =>
      compare(builder, "LT", left, right);
    // Where the bounds cross, the result is the upper one, whatever the operand is.
    const isMax = less(max, binary(builder, "stablehlo.maximum", operand, min));
    const isMin = both(less(operand, min), less(min, max));
    const isInside = both(less(min, operand), less(operand, max));
    const fixed = select(builder, isMin, min, like(builder, operand, 0));
    return [select(builder, isInside, operand, select(builder, isMax, max, fixed))];
  });

const reducePrecisionRule: JvpRule<"stablehlo.reduce_precision"> = (op, context) => {
  const round = (builder: GraphBuilder, operand: GraphValue): GraphValue =>
    builder.one("stablehlo.reduce_precision", { operand }, op.attributes);
  const type = typeOfValue(op.operands.operand);
  return [context.map(context.tangent(op.operands.operand), () => single(type, round, round))];
};

/** y · x^(y - 1), which is 0 where y is 0, whatever x is; and log(x) · x^y, which is 0 where x is 0. */
const powerRule = partials(
  ({ builder, x, y }) => {
    const isConstant = compare(builder, "EQ", y, like(builder, y, 0));
    const one = like(builder, y, 1);
    const exponent = select(builder, isConstant, one, subtract(builder, y, one));
    const slope = multiply(builder, y, binary(builder, "stablehlo.power", x, exponent));
    return select(builder, isConstant, like(builder, slope, 0), slope);
  },
  ({ builder, x, z }) => {
    const atZero = compare(builder, "EQ", x, like(builder, x, 0));
    const safe = select(builder, atZero, like(builder, x, 1), x);
    return multiply(builder, unary(builder, "stablehlo.log", safe), z);
  },
);

const atan2Rule = partials(
  ({ builder, x, y }) => divide(builder, y, hypotenuse(builder, x, y)),
  ({ builder, x, y }) => negate(builder, divide(builder, x, hypotenuse(builder, x, y))),
);

function hypotenuse(builder: GraphBuilder, x: GraphValue, y: GraphValue): GraphValue {
  return addValues(builder, multiply(builder, x, x), multiply(builder, y, y));
}

/** x - trunc(x / y) · y. */
const remainderRule = partials(
  ({ builder, x }) => like(builder, x, 1),
  ({ builder, x, y }) => {
    const quotient = divide(builder, x, y);
    const sign = unary(builder, "stablehlo.sign", quotient);
    const size = unary(builder, "stablehlo.floor", unary(builder, "stablehlo.abs", quotient));
    return negate(builder, multiply(builder, sign, size));
  },
);

const unaryRules = {
  "stablehlo.cbrt": derivative(({ builder, y }) =>
    divide(builder, like(builder, y, 1 / 3), multiply(builder, y, y)),
  ),
  "stablehlo.cosine": derivative(({ builder, x }) =>
    negate(builder, unary(builder, "stablehlo.sine", x)),
  ),
  "stablehlo.exponential": derivative(({ y }) => y),
  "stablehlo.exponential_minus_one": derivative((place) =>
    addValues(place.builder, place.y, one(place)),
  ),
  "stablehlo.log": derivative((place) => divide(place.builder, one(place), place.x)),
  "stablehlo.log_plus_one": derivative((place) =>
    divide(place.builder, one(place), addValues(place.builder, one(place), place.x)),
  ),
  "stablehlo.logistic": derivative((place) =>
    multiply(place.builder, place.y, subtract(place.builder, one(place), place.y)),
  ),
  "stablehlo.rsqrt": derivative(({ builder, x, y }) =>
    scaled(builder, divide(builder, y, x), -0.5),
  ),
  "stablehlo.sine": derivative(({ builder, x }) => unary(builder, "stablehlo.cosine", x)),
  "stablehlo.sqrt": derivative(({ builder, y }) => divide(builder, like(builder, y, 0.5), y)),
  "stablehlo.tan": derivative((place) => onePlusSquare(place, place.y, 1)),
  "stablehlo.tanh": derivative((place) => onePlusSquare(place, place.y, -1)),
};

const negateRule: JvpRule<"stablehlo.negate"> = (op, context) => [
  context.map(context.tangent(op.operands.operand), () =>
    negation(typeOfValue(op.operands.operand)),
  ),
];

export const elementwiseJvp: JvpRules<keyof typeof elementwiseOps> = {
  ...unaryRules,
  "stablehlo.abs": absRule,
  "stablehlo.negate": negateRule,
  "stablehlo.add": addRule,
  "stablehlo.subtract": subtractRule,
  "stablehlo.multiply": partials(
    ({ y }) => y,
    ({ x }) => x,
  ),
  "stablehlo.divide": partials(
    ({ builder, y }) => divide(builder, like(builder, y, 1), y),
    ({ builder, y, z }) => negate(builder, divide(builder, z, y)),
  ),
  "stablehlo.maximum": extreme("GT"),
  "stablehlo.minimum": extreme("LT"),
  "stablehlo.power": powerRule,
  "stablehlo.atan2": atan2Rule,
  "stablehlo.remainder": remainderRule,
  "stablehlo.convert": convertRule,
  "stablehlo.select": selectRule,
  "stablehlo.clamp": clampRule,
  "stablehlo.reduce_precision": reducePrecisionRule,
  "stablehlo.ceil": zero,
  "stablehlo.floor": zero,
  "stablehlo.round_nearest_afz": zero,
  "stablehlo.round_nearest_even": zero,
  "stablehlo.sign": signRule,
  "stablehlo.is_finite": zero,
  "stablehlo.compare": zero,
  "stablehlo.and": zero,
  "stablehlo.or": zero,
  "stablehlo.xor": zero,
  "stablehlo.not": zero,
  "stablehlo.popcnt": zero,
  "stablehlo.count_leading_zeros": zero,
  "stablehlo.shift_left": zero,
  "stablehlo.shift_right_arithmetic": zero,
  "stablehlo.shift_right_logical": zero,
  "stablehlo.bitcast_convert": zero,
  "stablehlo.real": realRule,
  "stablehlo.imag": imaginaryRule,
  "stablehlo.complex": complexRule,
  "stablehlo.uniform_quantize": refused,
  "stablehlo.uniform_dequantize": refused,
};

/** scale · exp(s · v²). */
function gaussian(place: Place, value: GraphValue, scale: number, sign: 1 | -1): GraphValue {
  const { builder } = place;
  const square = multiply(builder, value, value);
  const exponent = sign === 1 ? square : negate(builder, square);
  return scaled(builder, unary(builder, "stablehlo.exponential", exponent), scale);
}

function rsqrtOf(place: Place, value: GraphValue): GraphValue {
  return unary(place.builder, "stablehlo.rsqrt", value);
}

const twoOverRootPi = 2 / Math.sqrt(Math.PI);

function polygamma(place: Place, order: number): GraphValue {
  const { builder, x } = place;
  return builder.one("chlo.polygamma", { n: like(builder, x, order), x }, {});
}

/** x² - 1. */
function squareMinusOne(place: Place): GraphValue {
  return negate(place.builder, onePlusSquare(place, place.x, -1));
}

const chloUnary = {
  "chlo.acos": derivative((place) =>
    negate(place.builder, rsqrtOf(place, onePlusSquare(place, place.x, -1))),
  ),
  "chlo.acosh": derivative((place) => rsqrtOf(place, squareMinusOne(place))),
  "chlo.asin": derivative((place) => rsqrtOf(place, onePlusSquare(place, place.x, -1))),
  "chlo.asinh": derivative((place) => rsqrtOf(place, onePlusSquare(place, place.x, 1))),
  "chlo.atan": derivative((place) =>
    divide(place.builder, one(place), onePlusSquare(place, place.x, 1)),
  ),
  "chlo.atanh": derivative((place) =>
    divide(place.builder, one(place), onePlusSquare(place, place.x, -1)),
  ),
  "chlo.cosh": derivative(({ builder, x }) => unary(builder, "chlo.sinh", x)),
  "chlo.sinh": derivative(({ builder, x }) => unary(builder, "chlo.cosh", x)),
  "chlo.digamma": derivative((place) => polygamma(place, 1)),
  "chlo.lgamma": derivative(({ builder, x }) => unary(builder, "chlo.digamma", x)),
  "chlo.erf": derivative((place) => gaussian(place, place.x, twoOverRootPi, -1)),
  "chlo.erfc": derivative((place) => gaussian(place, place.x, -twoOverRootPi, -1)),
  "chlo.erf_inv": derivative((place) => gaussian(place, place.y, 1 / twoOverRootPi, 1)),
  "chlo.square": derivative(({ builder, x }) => scaled(builder, x, 2)),
  "chlo.tan": derivative((place) => onePlusSquare(place, place.y, 1)),
};

/** The next polygamma, for a constant order. */
const polygammaRule: JvpRule<"chlo.polygamma"> = (op, context) => {
  const { n, x } = op.operands;
  if (context.hasTangent(n)) return refused(op, context);
  const { builder } = context;
  return [
    context.map(context.tangent(x), () => {
      const next = addValues(builder, n, like(builder, n, 1));
      return scaling(builder.one("chlo.polygamma", { n: next, x }, {}));
    }),
  ];
};

/** -s · ζ(s + 1, q), for a constant s. */
const zetaRule: JvpRule<"chlo.zeta"> = (op, context) => {
  const { x: s, q } = op.operands;
  if (context.hasTangent(s)) return refused(op, context);
  const { builder } = context;
  return [
    context.map(context.tangent(q), () => {
      const next = addValues(builder, s, like(builder, s, 1));
      const zeta = builder.one("chlo.zeta", { x: next, q }, {});
      return scaling(negate(builder, multiply(builder, s, zeta)));
    }),
  ];
};

export const chloElementwiseJvp: JvpRules<
  Exclude<keyof typeof chloOps, "chlo.top_k" | "chlo.scan" | "chlo.ragged_dot">
> = {
  ...chloUnary,
  "chlo.polygamma": polygammaRule,
  "chlo.is_inf": zero,
  "chlo.is_neg_inf": zero,
  "chlo.is_pos_inf": zero,
  "chlo.mulhi": zero,
  "chlo.next_after": zero,
  "chlo.asin_acos_kernel": refused,
  "chlo.bessel_i1e": refused,
  "chlo.conj": conjugateRule,
  "chlo.zeta": zetaRule,
};
