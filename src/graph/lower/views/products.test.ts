/** Products over views: which copies they spare, and that they are the same products. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { takesAll } from "../../../../test/support/sample.ts";
import type { Device } from "../../../device/device.ts";
import { fromNumbers, toElements, toNumbers, fromElements } from "../../../formats/hostarray.ts";
import { bf16 } from "../../../formats/dtype.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { evaluate, tensor } from "../../evaluate/index.ts";
import type { Tensor } from "../../evaluate/index.ts";
import { compilePlan } from "../../plan/compile.ts";
import { allSteps } from "../../plan/plan.ts";
import { Program } from "../../plan/program.ts";
import { planText } from "../../plan/text.ts";
import { parseGraph } from "../../text/index.ts";

let device: Device;
beforeAll(async () => {
  device = await open("simulator", { onNotes: () => undefined });
});
afterAll(() => {
  device.dispose();
});

/** Small whole numbers, whose products and sums are exact. */
function numbers(shape: readonly number[], random: Random): Tensor {
  const count = shape.reduce((all, extent) => all * extent, 1);
  const values = Array.from({ length: count }, () => random.below(3) - 1);
  return tensor("bf16", shape, toElements(fromNumbers(bf16, [count], values)));
}

function values({ data }: Tensor): readonly number[] {
  if (!(data instanceof Uint16Array)) throw new Error("bf16 is stored as its bits");
  return [...toNumbers(fromElements(bf16, [data.length], data))];
}

/** Runs a program, whose results have to be the evaluator's; gives its plan and the launches in it. */
async function agrees(
  text: string,
  inputs: readonly Tensor[],
): Promise<{ readonly plan: string; readonly launches: number }> {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  const plan = compilePlan(module, "main");
  const program = await Program.load(device, plan);
  try {
    const expected = evaluate(module, "main", inputs) as readonly Tensor[];
    const found = await program.run(inputs);
    for (const [i, each] of found.entries())
      expect(values(each), planText(plan)).toEqual(values(expected[i] as Tensor));
  } finally {
    program.dispose();
  }
  const launches = [...allSteps(plan.steps)].length;
  return { plan: planText(plan), launches };
}

const random = new Random(5);
const [b, t, h, d] = [2, 64, 4, 32];
const heads = `%0 = stablehlo.reshape %x : (tensor<${b}x${t}x${3 * h * d}xbf16>) -> tensor<${b}x${t}x3x${h}x${d}xbf16>
${["q", "k", "v"]
  .map(
    (
      name,
      i,
    ) => `%${name}4 = stablehlo.slice %0 [0:${b}, 0:${t}, ${i}:${i + 1}, 0:${h}, 0:${d}] : (tensor<${b}x${t}x3x${h}x${d}xbf16>) -> tensor<${b}x${t}x1x${h}x${d}xbf16>
  %${name} = stablehlo.reshape %${name}4 : (tensor<${b}x${t}x1x${h}x${d}xbf16>) -> tensor<${b}x${t}x${h}x${d}xbf16>`,
  )
  .join("\n")}
%s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<${b}x${t}x${h}x${d}xbf16>, tensor<${b}x${t}x${h}x${d}xbf16>) -> tensor<${b}x${h}x${t}x${t}xbf16>
%o = stablehlo.dot_general %v, %s, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<${b}x${t}x${h}x${d}xbf16>, tensor<${b}x${h}x${t}x${t}xbf16>) -> tensor<${b}x${h}x${d}x${t}xbf16>
%p = stablehlo.transpose %o, dims = [0, 3, 1, 2] : (tensor<${b}x${h}x${d}x${t}xbf16>) -> tensor<${b}x${t}x${h}x${d}xbf16>`;

describe("nothing is moved", () => {
  test("where heads are cut out of one array and put side by side", async () => {
    const text = `func.func @main(%x: tensor<${b}x${t}x${3 * h * d}xbf16>) -> tensor<${b}x${t}x${h * d}xbf16> {\n${heads}
      %r = stablehlo.reshape %p : (tensor<${b}x${t}x${h}x${d}xbf16>) -> tensor<${b}x${t}x${h * d}xbf16>
      return %r : tensor<${b}x${t}x${h * d}xbf16> }`;
    const { plan, launches } = await agrees(text, [numbers([b, t, 3 * h * d], random)]);
    expect(launches, plan).toBe(2);
  });

  test("where they are cut out of what was computed, which is computed once", async () => {
    const type = `tensor<${b}x${t}x${3 * h * d}xbf16>`;
    const text = `func.func @main(%y: ${type}) -> tensor<${b}x${t}x${h}x${d}xbf16> {
      %x = stablehlo.negate %y : ${type}\n${heads}\nreturn %p : tensor<${b}x${t}x${h}x${d}xbf16> }`;
    const { plan, launches } = await agrees(text, [numbers([b, t, 3 * h * d], random)]);
    expect(launches, plan).toBe(3);
  });

  test("where heads share keys, as they are broadcast or as rows", async () => {
    const [groups, each, tokens] = [2, 4, 128];
    const broadcast = `func.func @main(%q: tensor<${tokens}x${groups * each}x${d}xbf16>, %c: tensor<${tokens}x${groups}x${d}xbf16>) -> tensor<${groups * each}x${tokens}x${tokens}xbf16> {
      %b = stablehlo.broadcast_in_dim %c, dims = [0, 1, 3] : (tensor<${tokens}x${groups}x${d}xbf16>) -> tensor<${tokens}x${groups}x${each}x${d}xbf16>
      %k = stablehlo.reshape %b : (tensor<${tokens}x${groups}x${each}x${d}xbf16>) -> tensor<${tokens}x${groups * each}x${d}xbf16>
      %s = stablehlo.dot_general %q, %k, batching_dims = [1] x [1], contracting_dims = [2] x [2] : (tensor<${tokens}x${groups * each}x${d}xbf16>, tensor<${tokens}x${groups * each}x${d}xbf16>) -> tensor<${groups * each}x${tokens}x${tokens}xbf16>
      return %s : tensor<${groups * each}x${tokens}x${tokens}xbf16> }`;
    const folded = `func.func @main(%q: tensor<${tokens}x${groups * each}x${d}xbf16>, %k: tensor<${tokens}x${groups}x${d}xbf16>) -> tensor<${groups}x${each}x${tokens}x${tokens}xbf16> {
      %r = stablehlo.reshape %q : (tensor<${tokens}x${groups * each}x${d}xbf16>) -> tensor<${tokens}x${groups}x${each}x${d}xbf16>
      %s = stablehlo.dot_general %k, %r, batching_dims = [1] x [1], contracting_dims = [2] x [3] : (tensor<${tokens}x${groups}x${d}xbf16>, tensor<${tokens}x${groups}x${each}x${d}xbf16>) -> tensor<${groups}x${tokens}x${tokens}x${each}xbf16>
      %o = stablehlo.transpose %s, dims = [0, 3, 2, 1] : (tensor<${groups}x${tokens}x${tokens}x${each}xbf16>) -> tensor<${groups}x${each}x${tokens}x${tokens}xbf16>
      return %o : tensor<${groups}x${each}x${tokens}x${tokens}xbf16> }`;
    const inputs = [
      numbers([tokens, groups * each, d], random),
      numbers([tokens, groups, d], random),
    ];
    for (const text of [broadcast, folded]) {
      const { plan, launches } = await agrees(text, inputs);
      expect(launches, plan).toBe(1);
    }
  });

  test("in loops either", async () => {
    const [n, type] = [128, "tensor<128x128xbf16>"];
    const text = `func.func @main(%x: tensor<${n}x${2 * n}xbf16>) -> ${type} {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %z = stablehlo.constant dense<0.0> : ${type}
      %0:2 = stablehlo.while(%i = %c0, %a = %z) : tensor<i32>, ${type} cond {
        %n = stablehlo.constant dense<9> : tensor<i32>
        %q = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %q : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        %w = stablehlo.slice %x [0:${n}, ${n}:${2 * n}] : (tensor<${n}x${2 * n}xbf16>) -> ${type}
        %d = stablehlo.dot_general %w, %w, contracting_dims = [1] x [1] : (${type}, ${type}) -> ${type}
        %s = stablehlo.subtract %d, %a : ${type}
        stablehlo.return %j, %s : tensor<i32>, ${type}
      }
      return %0#1 : ${type} }`;
    const { plan } = await agrees(text, [numbers([n, 2 * n], random)]);
    expect(plan).toContain("arg0 from 128 [128, 128] by [256, 1]");
  });
});

test("a transpose that others use as well, or whose operand is a result, is made", async () => {
  const type = "tensor<128x128xbf16>";
  const text = `func.func @main(%x: ${type}, %y: ${type}) -> (${type}, ${type}) {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (${type}, ${type}) -> ${type}
    %1 = stablehlo.transpose %0, dims = [1, 0] : (${type}) -> ${type}
    return %0, %1 : ${type}, ${type} }`;
  const { launches } = await agrees(text, [
    numbers([128, 128], random),
    numbers([128, 128], random),
  ]);
  expect(launches).toBe(2);
});

/** A product of at least 2²⁰ whose operands are cut out of arrays whose axes lie in any order, and whose result is moved. */
function draw(draws: Random): {
  readonly text: string;
  readonly shapes: readonly (readonly number[])[];
} {
  const axes = (role: string, most: number, extents: readonly number[]) =>
    Array.from({ length: draws.below(most + 1) }, (_, i) => ({
      name: `${role}${i}`,
      extent: draws.pick(extents),
    }));
  const batch = axes("b", 2, [2]);
  const rows = [...axes("m", 1, [2]), { name: "m", extent: 128 }];
  const columns = [...axes("n", 1, [2]), { name: "n", extent: batch.length === 2 ? 40 : 136 }];
  const depth = [{ name: "k", extent: draws.pick([64, 72]) }];
  const shuffled = <T>(list: readonly T[]): readonly T[] =>
    list
      .map((item) => ({ item, key: draws.uniform() }))
      .sort((one, other) => one.key - other.key)
      .map(({ item }) => item);
  const lines: string[] = [];
  const shapes: (readonly number[])[] = [];
  const type = (shape: readonly number[]): string => `tensor<${[...shape, "bf16"].join("x")}>`;
  type Named = { readonly name: string; readonly extent: number };
  const moved = (
    from: string,
    name: string,
    own: readonly Named[],
    wanted: readonly Named[],
  ): void => {
    const order = wanted.map((axis) => own.indexOf(axis));
    const [one, other] = [own, wanted].map((list) => type(list.map(({ extent }) => extent)));
    lines.push(
      `${name} = stablehlo.transpose ${from}, dims = [${order.join(", ")}] : (${one}) -> ${other}`,
    );
  };
  const operand = (name: string, needed: readonly Named[]): readonly Named[] => {
    const shared = needed.filter(({ name: each }) => each.startsWith("b") && draws.below(3) === 0);
    const lying = shuffled(needed.filter((axis) => !shared.includes(axis)));
    // The larger array has room beside some axes.
    const room = lying.map(() => draws.pick([0, 0, 8]));
    const at = room.map((each) => (each === 0 ? 0 : draws.pick([0, 8])));
    const whole = lying.map(({ extent }, i) => extent + (room[i] ?? 0));
    shapes.push(whole);
    const cut = lying.map(({ extent }, i) => `${at[i] ?? 0}:${(at[i] ?? 0) + extent}`);
    lines.push(
      `%${name}1 = stablehlo.slice %${name} [${cut.join(", ")}] : (${type(whole)}) -> ${type(lying.map(({ extent }) => extent))}`,
    );
    const all = shuffled([...lying, ...shared]);
    const dims = lying.map((axis) => all.indexOf(axis));
    lines.push(
      `%${name}2 = stablehlo.broadcast_in_dim %${name}1, dims = [${dims.join(", ")}] : (${type(lying.map(({ extent }) => extent))}) -> ${type(all.map(({ extent }) => extent))}`,
    );
    return all;
  };
  const [x, y] = [
    operand("x", [...batch, ...rows, ...depth]),
    operand("y", [...batch, ...columns, ...depth]),
  ];
  const places = (own: readonly Named[], list: readonly Named[]): string =>
    list.map((axis) => own.indexOf(axis)).join(", ");
  const ofX = x.filter((axis) => rows.includes(axis));
  const ofY = y.filter((axis) => columns.includes(axis));
  const made = [...batch, ...ofX, ...ofY];
  const text = (list: readonly Named[]): string => type(list.map(({ extent }) => extent));
  const batching =
    batch.length === 0 ? "" : `batching_dims = [${places(x, batch)}] x [${places(y, batch)}], `;
  lines.push(
    `%0 = stablehlo.dot_general %x2, %y2, ${batching}contracting_dims = [${places(x, depth)}] x [${places(y, depth)}] : (${text(x)}, ${text(y)}) -> ${text(made)}`,
  );
  const wanted = shuffled(made);
  moved("%0", "%1", made, wanted);
  return {
    shapes,
    text: `func.func @main(%x: ${type(shapes[0] ?? [])}, %y: ${type(shapes[1] ?? [])}) -> ${text(wanted)} {\n${lines.join("\n")}\nreturn %1 : ${text(wanted)} }`,
  };
}

const programs = takesAll ? 200 : 3;

test(`${programs} random products`, { timeout: 600_000 }, async () => {
  let viewed = 0;
  for (let seed = 1; seed <= programs; seed++) {
    const draws = new Random(seed);
    const { text, shapes } = draw(draws);
    try {
      const { plan } = await agrees(
        text,
        shapes.map((shape) => numbers(shape, draws)),
      );
      if (plan.includes(" by [")) viewed += 1;
    } catch (error) {
      throw new Error(`seed ${seed}:\n${text}`, { cause: error });
    }
  }
  expect(viewed).toBeGreaterThan(programs / 4);
});
