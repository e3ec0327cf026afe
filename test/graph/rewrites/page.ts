/** `docs/rewrites.md`: how rewrites are checked, and the rules that change numbers on purpose. */
import { inexactRules } from "../../../src/graph/verify/inexact-rules.ts";

const introduction = `# Rewrites of programs

A program is rewritten by passes before kernels are made of it: identities, products of one form, gathers by constants, loops written out. Each pass is checked exactly. A
program is evaluated before and after it over whole numbers modulo 2^32: sums, products, minima, maxima, comparisons and whatever moves elements are those of whole numbers, and
any other function is a fixed hash of its operands and attributes. What is algebraically equal is then equal to the bit, whatever the order of sums.

\`src/graph/verify/rewrites.ts\` has the check: \`checkRewrite(before, after)\` of two programs, \`checkPasses(module, passes)\` of passes, with the name of the first that is wrong.
Every rule of every pass has a program in \`test/graph/rewrites/cases.ts\` in which it applies. Random programs are checked by

\`\`\`sh
npm run fuzz:programs -- --rewrites --count 20000 --seed 1
\`\`\`

Whole numbers of a program stay what they are. What the check does not see is rounding: conversions between formats of floats, orders of sums and the precision of products
(\`matmul-precision\`, [Products of f32](stablehlo.md#products-of-f32)) are no difference to it.
The evaluator's own bits before and after the passes of \`jit\` are compared by the same random programs without \`--rewrites\`.

## Rules that change numbers

These rules put something in an op's place that is near it and not algebraically equal. This table is generated from \`src/graph/verify/inexact-rules.ts\` by \`npm run docs\`; a test
holds that each of them does change results of that arithmetic, and that no other rule does.
`;

/** Rules of a pass that are inexact for one reason, in a row. */
export function renderRewrites(): string {
  const rows = new Map<string, string[]>();
  for (const { pass, rule, reason } of inexactRules) {
    const key = `${pass} | ${reason}`;
    rows.set(key, [...(rows.get(key) ?? []), `\`${rule}\``]);
  }
  const lines = Array.from(rows, ([key, rules]) => {
    const [pass = "", reason = ""] = key.split(" | ");
    return `| ${pass} | ${rules.join(", ")} | ${reason} |`;
  });
  return [
    introduction,
    "| pass | rules | what changes |",
    "| --- | --- | --- |",
    ...lines,
    "",
  ].join("\n");
}
