/** Convolutions over operands with holes are the same without: over whole numbers, whose sums are exact. */
import { expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { evaluate, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { compilePlan } from "../plan/compile.ts";
import { planText } from "../plan/text.ts";
import { opsWithin } from "../ops/traverse.ts";
import { runPasses } from "../passes/pass-order.ts";
import { parseGraph } from "../text/index.ts";
import { withoutHolesPass } from "./pass.ts";

const count = process.env["TILEWRIGHT_CASES"] === "all" ? 5000 : 60;
const seed = 20261119;

interface Case {
  readonly lhs: readonly number[];
  readonly rhs: readonly number[];
  readonly out: readonly number[];
  readonly window: string;
  readonly groups: number;
}

/** One or two spatial axes, channels last, with everything that a window can have. */
function drawnCase(random: Random): Case {
  const rank = 1 + random.below(2);
  const draw = (least: number, most: number): readonly number[] =>
    Array.from({ length: rank }, () => least + random.below(most - least + 1));
  const [extent, taps] = [draw(1, 6), draw(1, 5)];
  const [stride, dilation, holes] = [draw(1, 3), draw(1, 3), draw(1, 4)];
  const low = draw(-1, 4);
  const high = draw(-1, 4);
  const reverse = draw(0, 1).map((each) => each === 1);
  const places = extent.map((each, i) => {
    const span = (each - 1) * (holes[i] ?? 1) + 1 + (low[i] ?? 0) + (high[i] ?? 0);
    const window = ((taps[i] ?? 1) - 1) * (dilation[i] ?? 1) + 1;
    return Math.floor((span - window) / (stride[i] ?? 1)) + 1;
  });
  if (places.some((each) => each < 1)) return drawnCase(random);
  const groups = 1 + random.below(2);
  const features = 1 + random.below(2);
  const outputs = groups * (1 + random.below(3));
  return {
    lhs: [2, ...extent, features * groups],
    rhs: [...taps, features, outputs],
    out: [2, ...places, outputs],
    groups,
    window:
      `stride = [${stride.join()}], pad = [${low.map((each, i) => `[${each}, ${high[i] ?? 0}]`).join()}], ` +
      `lhs_dilate = [${holes.join()}], rhs_dilate = [${dilation.join()}], reverse = [${reverse.join()}]`,
  };
}

function textOf({ lhs, rhs, out, window, groups }: Case): string {
  const [left, right, result] = [lhs, rhs, out].map((shape) => `tensor<${shape.join("x")}xf32>`);
  const spatial = lhs
    .slice(2)
    .map((_, i) => i)
    .join();
  const numbers = `[b, ${spatial}, f]x[${spatial}, i, o]->[b, ${spatial}, f]`;
  return `func.func @main(%x: ${left}, %w: ${right}) -> ${result} {
    %0 = stablehlo.convolution(%x, %w) dim_numbers = ${numbers}, window = {${window}} {batch_group_count = 1 : i64, feature_group_count = ${groups} : i64} : (${left}, ${right}) -> ${result}
    return %0 : ${result} }`;
}

const pass = withoutHolesPass(() => false);

test(`${count} convolutions of any windows, seed ${seed}`, () => {
  const random = new Random(seed);
  let changed = 0;
  for (let at = 0; at < count; at += 1) {
    const drawn = drawnCase(random);
    const text = textOf(drawn);
    const [module] = parseGraph(text);
    if (module === undefined) throw new Error("the text has a program");
    const normal = runPasses(module, [pass]);
    const body = normal.functions.get("main")?.body ?? { parameters: [], ops: [], results: [] };
    const convolutions = [...opsWithin(body)].filter(
      ({ kind }) => kind === "stablehlo.convolution",
    );
    if (convolutions.length !== 1 || body.ops.length !== 1) changed += 1;
    const inputs = [drawn.lhs, drawn.rhs].map((shape) =>
      tensor(
        "f32",
        shape,
        Float32Array.from(
          { length: shape.reduce((all, extent) => all * extent, 1) },
          () => random.below(9) - 4,
        ),
      ),
    );
    const [wanted] = evaluate(module, "main", inputs) as readonly Tensor[];
    const [found] = evaluate(normal, "main", inputs) as readonly Tensor[];
    expect(found, text).toEqual(wanted);
  }
  expect(changed).toBeGreaterThan(count / 2);
});

test("the gradient of a transposed convolution's kernel is a product", () => {
  const types = "(tensor<16x64x64x64xf32>, tensor<16x128x128x64xf32>) -> tensor<2x2x64x64xf32>";
  const [module] =
    parseGraph(`func.func @main(%x: tensor<16x64x64x64xf32>, %g: tensor<16x128x128x64xf32>) -> tensor<2x2x64x64xf32> {
    %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ${types}
    return %0 : tensor<2x2x64x64xf32> }`);
  if (module === undefined) throw new Error("the text has a program");
  expect(planText(compilePlan(module, "main"))).not.toMatch(/(launch|operation) convolution/);
});
