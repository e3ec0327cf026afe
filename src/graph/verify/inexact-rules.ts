/**
 * Rules of passes that change numbers on purpose: what they put in an op's place is near it, and not algebraically equal. All others are checked
 * exactly (`rewrites.ts`). `docs/rewrites.md` has them as a table.
 */

export interface InexactRule {
  readonly pass: string;
  readonly rule: string;
  /** What is another number afterwards, and by how much. */
  readonly reason: string;
}

const functions = "a function is computed by others, to the bounds of its own tests";
const orders = "numbers are compared by their bits, which exact arithmetic does not have";

/** Functions of complex numbers, which are functions of their parts. */
const complexFunctions = [
  ...["abs", "cbrt", "cosine", "divide", "exponential", "exponential_minus_one", "fft", "log"],
  ...["log_plus_one", "logistic", "power", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh", "atan2"],
].map((name) => `stablehlo.${name}`);

const otherComplexFunctions = [
  ...["acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan"],
].map((name) => `chlo.${name}`);

export const inexactRules: readonly InexactRule[] = [
  {
    pass: "fold",
    rule: "of floats",
    reason: "constants are rounded to their format, as the evaluator does: the same bits",
  },
  ...[
    "expandCholesky",
    "expandTriangularSolve",
    "expandInference",
    "expandTraining",
    "expandGradient",
  ].map((rule) => ({ pass: "expand", rule, reason: functions })),
  ...["expandSort", "byWords"].map((rule) => ({ pass: "expand", rule, reason: orders })),
  ...[...complexFunctions, ...otherComplexFunctions].map((rule) => ({
    pass: "split complex",
    rule,
    reason: functions,
  })),
];

const known = new Set(inexactRules.map(({ pass, rule }) => `${pass} ${rule}`));

export function isInexact(pass: string, rule: string): boolean {
  return known.has(`${pass} ${rule}`);
}
