/** Buffers in one memory: what is saved by it, and that nothing is lost where a value is still needed. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { takesAll } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { evaluate, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { parseGraph } from "../text/index.ts";
import { compilePlan } from "./compile.ts";
import { Program } from "./program.ts";
import { planText } from "./text.ts";

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

function parsed(text: string) {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  return module;
}

function numbers(shape: readonly number[], random: Random): Tensor {
  const count = shape.reduce((all, extent) => all * extent, 1);
  return tensor(
    "f32",
    shape,
    Float32Array.from({ length: count }, () => random.below(17) - 8),
  );
}

function whole(value: number): Tensor {
  return tensor("i32", [], Int32Array.of(value));
}

/** Runs a program twice, as later runs find what earlier ones left; its results have to be the evaluator's. */
async function agrees(
  text: string,
  inputs: readonly Tensor[],
  donated?: readonly number[],
): Promise<string> {
  const module = parsed(text);
  const plan = compilePlan(module, "main", donated);
  const program = await Program.load(device, plan);
  try {
    const expected = evaluate(module, "main", inputs).map((each) => (each as Tensor).data);
    for (let turn = 0; turn < 2; turn++) {
      const found = await program.run(inputs);
      expect(
        found.map(({ data }) => data),
        planText(plan),
      ).toEqual(expected);
    }
  } finally {
    program.dispose();
  }
  return planText(plan);
}

const random = new Random(1);
const cache = numbers([6, 4], random);
const row = numbers([1, 4], random);
const update = `%zero = stablehlo.constant dense<0> : tensor<i32>
  %new = stablehlo.dynamic_update_slice %cache, %row, %at, %zero : (tensor<6x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>`;
const given = "%cache: tensor<6x4xf32>, %row: tensor<1x4xf32>, %at: tensor<i32>";

describe("updates", () => {
  test("write a row of a donated array alone", async () => {
    const text = `func.func @main(${given}) -> tensor<6x4xf32> {\n${update}\nreturn %new : tensor<6x4xf32> }`;
    for (const at of [-3, 0, 2, 5, 9]) {
      const plan = await agrees(text, [cache, row, whole(at)], [0]);
      expect(plan).toContain(
        "launch dynamic_update_slice_in_place(arg1, arg2) -> result0 over arg0",
      );
    }
    expect(await agrees(text, [cache, row, whole(2)], [])).toContain(
      "launch dynamic_update_slice(",
    );
  });

  test("leave an array that is read afterwards", async () => {
    const text = `func.func @main(${given}) -> (tensor<6x4xf32>, tensor<6x4xf32>) {\n${update}
      %both = stablehlo.add %new, %cache : tensor<6x4xf32>
      return %new, %both : tensor<6x4xf32>, tensor<6x4xf32> }`;
    expect(await agrees(text, [cache, row, whole(2)], [0])).toContain(
      "launch dynamic_update_slice(",
    );
  });

  test("leave an array of which they read another part", async () => {
    const text = `func.func @main(%cache: tensor<6x4xf32>, %at: tensor<i32>) -> tensor<6x4xf32> {
      %row = stablehlo.slice %cache [1:3, 0:4] : (tensor<6x4xf32>) -> tensor<2x4xf32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %new = stablehlo.dynamic_update_slice %cache, %row, %at, %zero : (tensor<6x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>
      return %new : tensor<6x4xf32> }`;
    expect(await agrees(text, [cache, whole(2)], [0])).not.toContain("in_place");
  });

  test("leave an array that is a result as it is", async () => {
    const text = `func.func @main(${given}) -> (tensor<6x4xf32>, tensor<6x4xf32>) {\n${update}
      return %cache, %new : tensor<6x4xf32>, tensor<6x4xf32> }`;
    const plan = await agrees(text, [cache, row, whole(2)], [0]);
    expect(plan).toContain("result0 lies in arg0");
    expect(plan).not.toContain("launch copy");
  });

  test("give two results of one array, each its own", async () => {
    const text = `func.func @main(${given}) -> (tensor<6x4xf32>, tensor<6x4xf32>) {\n${update}
      return %new, %new : tensor<6x4xf32>, tensor<6x4xf32> }`;
    expect(await agrees(text, [cache, row, whole(2)], [0])).toContain("_in_place");
  });

  test("follow each other in one array", async () => {
    const text = `func.func @main(${given}) -> tensor<6x4xf32> {\n${update}
      %one = stablehlo.constant dense<1> : tensor<i32>
      %new2 = stablehlo.dynamic_update_slice %new, %row, %zero, %one : (tensor<6x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>
      return %new2 : tensor<6x4xf32> }`;
    await agrees(text, [cache, row, whole(2)], [0]);
  });

  test("of scatters with one window write that alone, and combine it with what is there", async () => {
    const text = `func.func @main(%x: tensor<6x4xf32>, %u: tensor<4xf32>, %i: tensor<1xi32>) -> tensor<6x4xf32> {
      %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<6x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<6x4xf32>
      return %0 : tensor<6x4xf32> }`;
    for (const at of [-1, 0, 5, 6]) {
      const plan = await agrees(
        text,
        [cache, numbers([4], random), tensor("i32", [1], Int32Array.of(at))],
        [0],
      );
      expect(plan).toContain("launch scatter_in_place(arg2, arg1) -> result0 over arg0");
    }
  });

  test("of scatters with windows that may meet are walked in their order", async () => {
    const text = `func.func @main(%x: tensor<6xf32>, %u: tensor<5xf32>, %i: tensor<5x1xi32>) -> tensor<6xf32> {
      %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        stablehlo.return %b : tensor<f32>
      }) : (tensor<6xf32>, tensor<5x1xi32>, tensor<5xf32>) -> tensor<6xf32>
      return %0 : tensor<6xf32> }`;
    const places = tensor("i32", [5, 1], Int32Array.of(3, 1, 3, 3, 7));
    expect(
      await agrees(text, [numbers([6], random), numbers([5], random), places], [0]),
    ).not.toContain("in_place");
  });
});

describe("donation in text", () => {
  const body = `{ %one = stablehlo.constant dense<1.0> : tensor<4xf32>
    %0 = stablehlo.add %y, %one : tensor<4xf32>
    %1 = stablehlo.reverse %x, dims = [0] : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32> }`;
  const donating = (x: string, y: string): string =>
    `func.func @main(%x: tensor<4xf32>${x}, %y: tensor<4xf32>${y}) -> (tensor<4xf32>, tensor<4xf32>) ${body}`;
  const inputs = [numbers([4], random), numbers([4], random)];

  test("is what the plan does", async () => {
    const both = await agrees(
      donating(" {jax.buffer_donor = true}", " {tf.aliasing_output = 0 : i32}"),
      inputs,
    );
    expect(both.match(/result\d lies in arg\d/g)).toEqual(["result0 lies in arg1"]);
    expect(await agrees(donating("", " {jax.buffer_donor = false}"), inputs)).not.toContain(
      "lies in",
    );
    // What is asked for goes before what the text says.
    const asked = compilePlan(parsed(donating(" {jax.buffer_donor = true}", "")), "main", [1]);
    expect([...asked.aliases]).toEqual([[0, 1]]);
  });

  test("puts a result where it says, unless that is still read", async () => {
    const text = `func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %y: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = stablehlo.add %x, %y : tensor<4xf32>
      %1 = stablehlo.multiply %x, %y : tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32> }`;
    await agrees(text, inputs);
  });

  test("an argument that is returned as it is stays where it is", async () => {
    const text = `func.func @main(%x: tensor<4xf32> {jax.buffer_donor = true}, %y: tensor<4xf32> {jax.buffer_donor = true}) -> (tensor<4xf32>, tensor<4xf32>) {
      return %y, %x : tensor<4xf32>, tensor<4xf32> }`;
    const plan = await agrees(text, inputs);
    expect(plan).toContain("result0 lies in arg1\nresult1 lies in arg0\nlaunches 0,");
  });
});

const step = (
  body: string,
  carries: string,
  init: string,
): string => `func.func @main(%x: tensor<6x4xf32>, %y: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<6x4xf32>
  %0:4 = stablehlo.while(%i = %c0, ${init}) : tensor<i32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
  cond {
    %n = stablehlo.constant dense<TRIPS> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    ${body}
    stablehlo.return %j, ${carries} : tensor<i32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
  }
  return %0#1, %0#2 : tensor<6x4xf32>, tensor<6x4xf32> }`;

describe("loops", () => {
  const inputs = [numbers([6, 4], random), numbers([6, 4], random)];
  const trips = [12, 13];

  test("whose turns read one array and write another let them take turns", async () => {
    const text = step(
      "%r = stablehlo.reverse %a, dims = [0] : tensor<6x4xf32>\n%s = stablehlo.add %r, %b : tensor<6x4xf32>",
      "%s, %b, %d",
      "%a = %x, %b = %y, %d = %z",
    );
    for (const count of trips) {
      const plan = await agrees(text.replace("TRIPS", String(count)), inputs);
      expect(plan).toContain("repeat 6 times {");
      const [, turn = ""] = /\{\n([^}]*)\}/.exec(plan) ?? [];
      expect(turn.match(/launch add/g)).toHaveLength(2);
      expect(turn).not.toContain("copy");
    }
  });

  test("write a row of a stack in place", async () => {
    const rows =
      "%zero = stablehlo.constant dense<0> : tensor<i32>\n%row = stablehlo.slice %a [0:1, 0:4] : (tensor<6x4xf32>) -> tensor<1x4xf32>\n%s = stablehlo.dynamic_update_slice %b, %row, %i, %zero : (tensor<6x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>\n%t = stablehlo.add %a, %a : tensor<6x4xf32>";
    for (const count of trips) {
      const plan = await agrees(
        step(rows, "%t, %s, %d", "%a = %x, %b = %z, %d = %z").replace("TRIPS", String(count)),
        inputs,
      );
      const [, turn = ""] = /\{\n([^}]*)\}/.exec(plan) ?? [];
      expect(turn).toContain("dynamic_update_slice_in_place");
      expect(turn).not.toContain("copy");
    }
  });

  test.each([
    ["swap", "", "%b, %a, %d"],
    ["rotate", "%s = stablehlo.add %a, %b : tensor<6x4xf32>", "%d, %s, %a"],
    [
      "hand one value to two",
      "%s = stablehlo.reverse %a, dims = [0] : tensor<6x4xf32>",
      "%s, %s, %d",
    ],
    [
      "begin with one value",
      "%s = stablehlo.add %a, %a : tensor<6x4xf32>\n%t = stablehlo.add %b, %s : tensor<6x4xf32>",
      "%s, %t, %d",
    ],
    [
      "end with what a turn began with",
      "%s = stablehlo.reverse %b, dims = [0] : tensor<6x4xf32>",
      "%s, %a, %b",
    ],
    [
      "read what they have written",
      "%s = stablehlo.add %a, %b : tensor<6x4xf32>\n%r = stablehlo.reverse %s, dims = [0] : tensor<6x4xf32>\n%t = stablehlo.subtract %r, %a : tensor<6x4xf32>",
      "%s, %t, %d",
    ],
  ])("that %s", async (_, body, carries) => {
    for (const [i, count] of trips.entries())
      for (const init of ["%a = %x, %b = %y, %d = %x", "%a = %x, %b = %x, %d = %z"])
        for (const donated of takesAll ? [[], [0], [0, 1]] : [i === 0 ? [] : [0, 1]])
          await agrees(step(body, carries, init).replace("TRIPS", String(count)), inputs, donated);
  });

  test("carry one of two stacks that are written alike", async () => {
    const rows =
      "%s = stablehlo.reverse %a, dims = [0] : tensor<6x4xf32>\n%t = stablehlo.reverse %b, dims = [0] : tensor<6x4xf32>";
    const plan = await agrees(
      step(rows, "%s, %t, %d", "%a = %x, %b = %x, %d = %z").replace("TRIPS", "12"),
      inputs,
    );
    const [, turn = ""] = /\{\n([^}]*)\}/.exec(plan) ?? [];
    expect(turn.match(/launch reverse/g)).toHaveLength(2);
  });
});

/** Programs over arrays of two shapes: updates, views, sums, loops, and any of them as results. */
function draw(seed: number): { readonly text: string; readonly donated: readonly number[] } {
  const draws = new Random(seed);
  const type = "tensor<6x4xf32>";
  let next = 0;
  const lines: string[] = [];
  const body = (known: string[], depth: number, indent: string): void => {
    const value = (): string => draws.pick(known);
    const add = (text: string): string => {
      const name = `%v${next++}`;
      lines.push(`${indent}${name} = ${text}`);
      known.push(name);
      return name;
    };
    for (let left = 2 + draws.below(4); left > 0; left--) {
      const kind = draws.below(depth > 0 ? 7 : 6);
      if (kind === 0) add(`stablehlo.add ${value()}, ${value()} : ${type}`);
      if (kind === 1) add(`stablehlo.reverse ${value()}, dims = [${draws.below(2)}] : ${type}`);
      if (kind === 2) add(`stablehlo.negate ${value()} : ${type}`);
      if (kind >= 3 && kind < 6) {
        const from = draws.below(4);
        const rows = `%w${next++}`;
        lines.push(
          `${indent}${rows} = stablehlo.slice ${value()} [${from}:${from + 2}, 0:4] : (${type}) -> tensor<2x4xf32>`,
        );
        add(
          `stablehlo.dynamic_update_slice ${value()}, ${rows}, ${draws.pick(["%at", "%c0", "%c3"])}, %c0 : (${type}, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> ${type}`,
        );
      }
      if (kind === 6) loop(known, depth - 1, indent);
    }
  };
  const loop = (known: string[], depth: number, indent: string): void => {
    const own = next++;
    const count = 1 + draws.below(3);
    const names = Array.from({ length: count }, (_, i) => `%p${own}_${i}`);
    const init = names.map((name) => `${name} = ${draws.pick(known)}`);
    const types = ["tensor<i32>", ...names.map(() => type)].join(", ");
    lines.push(
      `${indent}%l${own}:${count + 1} = stablehlo.while(%i${own} = %c0, ${init.join(", ")}) : ${types} cond {`,
      `${indent}  %n${own} = stablehlo.constant dense<${9 + draws.below(2)}> : tensor<i32>`,
      `${indent}  %q${own} = stablehlo.compare LT, %i${own}, %n${own} : (tensor<i32>, tensor<i32>) -> tensor<i1>`,
      `${indent}  stablehlo.return %q${own} : tensor<i1> } do {`,
      `${indent}  %k${own} = stablehlo.constant dense<1> : tensor<i32>`,
      `${indent}  %j${own} = stablehlo.add %i${own}, %k${own} : tensor<i32>`,
    );
    const inside = draws.below(2) === 0 ? [...known, ...names] : [...names];
    body(inside, depth, `${indent}  `);
    const results = names.map(() => `${draws.pick(inside.slice(-5))}`);
    lines.push(
      `${indent}  stablehlo.return %j${own}, ${results.join(", ")} : ${types}`,
      `${indent}}`,
    );
    for (let i = 1; i <= count; i++) known.push(`%l${own}#${i}`);
  };
  const known = ["%x", "%y", "%z"];
  body(known, 1, "  ");
  const results = Array.from({ length: 1 + draws.below(3) }, () => draws.pick(known.slice(-4)));
  const types = results.map(() => type).join(", ");
  const text = `func.func @main(%x: ${type}, %y: ${type}, %z: ${type}, %at: tensor<i32>) -> (${types}) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c3 = stablehlo.constant dense<3> : tensor<i32>
${lines.join("\n")}
  return ${results.join(", ")} : ${types} }`;
  return { text, donated: [0, 1, 2].filter(() => draws.below(2) === 0) };
}

const count = takesAll ? 2000 : 40;

test(`${count} random programs of updates and loops`, async () => {
  for (let seed = 1; seed <= count; seed++) {
    const { text, donated } = draw(seed);
    const values = new Random(seed);
    const inputs = [0, 1, 2].map(() =>
      tensor(
        "f32",
        [6, 4],
        Float32Array.from({ length: 24 }, () => values.below(5) - 2),
      ),
    );
    try {
      await agrees(text, [...inputs, whole(values.below(8) - 1)], donated);
    } catch (error) {
      throw new Error(`seed ${seed}, donated ${donated.join()}:\n${text}`, { cause: error });
    }
  }
});
