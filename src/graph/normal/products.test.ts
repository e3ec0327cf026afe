/** Products in their normal form are the same products: random forms over whole numbers, whose sums are exact. */
import { describe, expect, test } from "vitest";
import { takesAll } from "../../../test/support/sample.ts";
import { Random } from "../../support/random.ts";
import { evaluate, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import type { GraphModule } from "../ops/node.ts";
import { opsWithin } from "../ops/traverse.ts";
import { dcePass } from "../passes/dce.ts";
import { runPasses } from "../passes/pass-order.ts";
import { parseGraph, printGraph } from "../text/index.ts";
import { matmulPrecisionPass, normalProductsPass, turnProductsPass } from "./pass.ts";

const passes = [turnProductsPass, matmulPrecisionPass("f32"), normalProductsPass, dcePass];

function parsed(text: string): GraphModule {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  return module;
}

function whole(shape: readonly number[], random: Random): Tensor {
  const count = shape.reduce((all, extent) => all * extent, 1);
  return tensor(
    "f32",
    shape,
    Float32Array.from({ length: count }, () => random.below(9) - 4),
  );
}

function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  return items
    .map((item) => ({ item, key: random.uniform() }))
    .sort((left, right) => left.key - right.key)
    .map(({ item }) => item);
}

interface Drawn {
  readonly text: string;
  readonly left: readonly number[];
  readonly right: readonly number[];
}

type Axis = readonly [name: string, extent: number];

const none: Axis = ["", 1];

/** A product of axes in any order, some of extent 1; operands and the result may be transposed. */
function draw(random: Random): Drawn {
  const axes = (role: string, least: number): readonly Axis[] =>
    Array.from({ length: least + random.below(3 - least) }, (_, i) => [
      `${role}${i}`,
      random.below(4) === 0 ? 1 : 2 + random.below(3),
    ]);
  const [batch, rows, columns] = [axes("b", 0), axes("m", 0), axes("n", 0)];
  const depth = [...axes("k", 1), ["k", 3 + random.below(12)] as const];
  const left = shuffled([...batch, ...rows, ...depth], random);
  const right = shuffled([...batch, ...columns, ...depth], random);
  const pairs = shuffled(depth, random);
  const turns = [left, right].map((own) =>
    random.below(3) === 0
      ? shuffled(
          own.map((_, axis) => axis),
          random,
        )
      : undefined,
  );
  const shapes = [left, right].map((own) => own.map(([, extent]) => extent));
  const taken = [left, right].map((own, i) => turns[i]?.map((axis) => own[axis] ?? none) ?? own);
  const place = (i: 0 | 1, names: readonly Axis[]): string =>
    names.map(([name]) => taken[i]?.findIndex(([own]) => own === name) ?? 0).join(", ");
  const free = (i: 0 | 1, role: string) =>
    (taken[i] ?? []).filter(([name]) => name.startsWith(role));
  const result = [...batch, ...free(0, "m"), ...free(1, "n")].map(([, extent]) => extent);
  const typeOf = (shape: readonly number[]): string => `tensor<${[...shape, "f32"].join("x")}>`;
  const lines: string[] = [];
  const operands = ["%x", "%y"].map((name, i) => {
    const turn = turns[i];
    const [own = [], made = []] = [shapes[i], taken[i]?.map(([, extent]) => extent)];
    if (turn === undefined) return name;
    lines.push(
      `${name}t = stablehlo.transpose ${name}, dims = [${turn.join(", ")}] : (${typeOf(own)}) -> ${typeOf(made)}`,
    );
    return `${name}t`;
  });
  const types = taken.map((own) => typeOf(own.map(([, extent]) => extent)));
  lines.push(
    `%p = stablehlo.dot_general ${operands.join(", ")}, batching_dims = [${place(0, batch)}] x [${place(1, batch)}], ` +
      `contracting_dims = [${place(0, pairs)}] x [${place(1, pairs)}] : (${types.join(", ")}) -> ${typeOf(result)}`,
  );
  const last = shuffled(
    result.map((_, axis) => axis),
    random,
  );
  const made = typeOf(last.map((axis) => result[axis] ?? 1));
  lines.push(
    `%r = stablehlo.transpose %p, dims = [${last.join(", ")}] : (${typeOf(result)}) -> ${made}`,
  );
  const [leftShape = [], rightShape = []] = shapes;
  return {
    text: `func.func @main(%x: ${typeOf(leftShape)}, %y: ${typeOf(rightShape)}) -> ${made} {
      ${lines.join("\n      ")}
      return %r : ${made} }`,
    left: leftShape,
    right: rightShape,
  };
}

test("random products", () => {
  const seed = 71;
  const random = new Random(seed);
  let changed = 0;
  for (let turn = 0; turn < (takesAll ? 5000 : 200); turn += 1) {
    const { text, left, right } = draw(random);
    const module = parsed(text);
    const normal = runPasses(module, passes);
    const inputs = [whole(left, random), whole(right, random)];
    const [wanted] = evaluate(module, "main", inputs) as readonly Tensor[];
    const [found] = evaluate(normal, "main", inputs) as readonly Tensor[];
    expect(found, `seed ${seed}, turn ${turn}:\n${text}`).toEqual(wanted);
    if (printGraph(normal) !== printGraph(module)) changed += 1;
  }
  expect(changed).toBeGreaterThan(50);
});

/** The kinds of ops in a program's normal form. */
function kindsOf(text: string): readonly string[] {
  const main = runPasses(parsed(text), passes).functions.get("main");
  return main === undefined ? [] : [...opsWithin(main.body)].map(({ kind }) => kind);
}

describe("nothing is moved", () => {
  test.each([
    [
      "where contracted axes lie in another order on both sides",
      "tensor<64x8x16xf32>, tensor<8x16x32xf32>",
      "contracting_dims = [2, 1] x [1, 0]",
      "tensor<64x32xf32>",
    ],
    [
      "where a matrix lies by columns",
      "tensor<16x64xf32>, tensor<16x32xf32>",
      "contracting_dims = [0] x [0]",
      "tensor<64x32xf32>",
    ],
    [
      "where axes of extent 1 stand between",
      "tensor<16x1x64x1x32xf32>, tensor<16x8x1x32xf32>",
      "batching_dims = [0, 3] x [0, 2], contracting_dims = [4] x [3]",
      "tensor<16x1x1x64x8xf32>",
    ],
  ])("%s", (_, operands, numbers, result) => {
    const [left = "", right = ""] = operands.split(", ");
    const kinds = kindsOf(`func.func @main(%x: ${left}, %y: ${right}) -> ${result} {
      %0 = stablehlo.dot_general %x, %y, ${numbers} : (${left}, ${right}) -> ${result}
      return %0 : ${result} }`);
    expect(kinds).toContain("stablehlo.dot_general");
    expect(kinds).not.toContain("stablehlo.transpose");
  });

  test("where the result is transposed: the operands change sides", () => {
    const kinds =
      kindsOf(`func.func @main(%x: tensor<40x64xf32>, %y: tensor<40x32xf32>) -> tensor<32x64xf32> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<40x64xf32>, tensor<40x32xf32>) -> tensor<64x32xf32>
      %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
      return %1 : tensor<32x64xf32> }`);
    expect(kinds).toEqual(["stablehlo.dot_general"]);
  });
});

describe("products of f32 say how they are multiplied", () => {
  const product = (precision: string): string => `
    func.func @main(%x: tensor<32x64xf32>, %y: tensor<64x32xf32>) -> tensor<32x32xf32> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]${precision} : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
      return %0 : tensor<32x32xf32> }`;
  test.each([
    ["", "f32", "tf32 3"],
    ["", "tf32", "tf32 1"],
    [", precision = [DEFAULT, DEFAULT]", "tf32", "tf32 1"],
    [", precision = [HIGH, HIGH]", "tf32", "bf16 3"],
    [", precision = [HIGHEST, HIGHEST]", "tf32", "bf16 6"],
  ] as const)("%s, by %s: %s", (precision, byDefault, wanted) => {
    const main = runPasses(parsed(product(precision)), [
      matmulPrecisionPass(byDefault),
    ]).functions.get("main");
    const [op] = main?.body.ops ?? [];
    if (op?.kind !== "stablehlo.dot_general") throw new Error("the product comes first");
    const { algorithm } = op.attributes;
    expect(`${algorithm?.lhs_precision_type} ${algorithm?.num_primitive_operations}`).toBe(wanted);
  });
});
