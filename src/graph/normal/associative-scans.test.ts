/**
 * Scans as JAX unrolls them: found again whatever the length, axis and function, and what only looks like one left alone. Results are those of a
 * loop in plain JavaScript over whole numbers and powers of two, whose sums and products are exact.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { numbersOf } from "../evaluate/scalars.ts";
import { moduleOf } from "../ops/node.ts";
import type { GraphModule } from "../ops/node.ts";
import { sizeOf } from "../ops/types.ts";
import { compilePlan } from "../plan/compile.ts";
import { Program } from "../plan/program.ts";
import { planText } from "../plan/text.ts";
import { parseGraph } from "../text/index.ts";
import { vjp } from "../transform/jvp.ts";

let device: Device;
beforeAll(async () => {
  device = await open("simulator", { onNotes: () => undefined });
});
afterAll(() => {
  device.dispose();
});

type Writer = (line: string) => string;
/** Two elements as one, those met first before the others, as ops of arrays of a type. */
type Combine = (
  write: Writer,
  type: string,
  before: readonly string[],
  after: readonly string[],
) => readonly string[];

/** The text of a scan of some arrays along an axis, in JAX's levels; results that nobody asks for are left out by `used`. */
function unrolled(
  shape: readonly number[],
  axis: number,
  element: string,
  parts: number,
  combine: Combine,
  { used = Array.from({ length: parts }, (_, i) => i), capture = "" } = {},
): string {
  const lines: string[] = [];
  const write: Writer = (line) => {
    lines.push(`%t${lines.length} = ${line}`);
    return `%t${lines.length - 1}`;
  };
  const typeOf = (extent: number): string =>
    `tensor<${[...shape.map((each, at) => (at === axis ? extent : each)), element].join("x")}>`;
  const cut = (value: string, from: number, start: number, limit: number, stride: number) => {
    const count = Math.max(0, Math.ceil((limit - start) / stride));
    const ranges = shape.map((each, at) =>
      at === axis ? `${start}:${limit}:${stride}` : `0:${each}`,
    );
    return write(
      `stablehlo.slice ${value} [${ranges.join(", ")}] : (${typeOf(from)}) -> ${typeOf(count)}`,
    );
  };
  const isBool = element === "i1";
  const spread = (value: string, from: number, to: number, low: number): string => {
    const zero = write(
      `stablehlo.constant dense<${isBool ? "false" : element.startsWith("i") ? "0" : "0.0"}> : tensor<${element}>`,
    );
    const at = (each: number): string =>
      `[${shape.map((_, own) => (own === axis ? each : 0)).join(", ")}]`;
    const high = to - low - (2 * from - 1);
    return write(
      `stablehlo.pad ${value}, ${zero}, low = ${at(low)}, high = ${at(high)}, interior = ${at(1)} : (${typeOf(from)}, tensor<${element}>) -> ${typeOf(to)}`,
    );
  };
  const level = (values: readonly string[], n: number): readonly string[] => {
    if (n < 2) return values;
    const odds = Math.floor(n / 2);
    const before = values.map((value) => cut(value, n, 0, n - 1, 2));
    const after = values.map((value) => cut(value, n, 1, n, 2));
    const odd = level(combine(write, typeOf(odds), before, after), odds);
    const rest = Math.ceil(n / 2) - 1;
    const firsts = n % 2 === 0 ? odd.map((value) => cut(value, odds, 0, odds - 1, 1)) : odd;
    const follow = values.map((value) => cut(value, n, 2, n, 2));
    const even = combine(write, typeOf(rest), firsts, follow);
    return values.map((value, i) => {
      const first = cut(value, n, 0, 1, 1);
      const joined = write(
        `stablehlo.concatenate ${first}, ${even[i] ?? ""}, dim = ${axis} : (${typeOf(1)}, ${typeOf(rest)}) -> ${typeOf(rest + 1)}`,
      );
      const sides = [spread(joined, rest + 1, n, 0), spread(odd[i] ?? "", odds, n, 1)];
      return write(`stablehlo.${isBool ? "or" : "add"} ${sides.join(", ")} : ${typeOf(n)}`);
    });
  };
  const inputs = Array.from({ length: parts }, (_, i) => `%x${i}`);
  const whole = typeOf(shape[axis] ?? 0);
  const results = level(inputs, shape[axis] ?? 0);
  const returned = used.map((i) => results[i] ?? "");
  return `func.func @main(${inputs.map((each) => `${each}: ${whole}`).join(", ")}${capture}) -> (${returned.map(() => whole).join(", ")}) {
    ${lines.join("\n    ")}
    return ${returned.join(", ")} : ${returned.map(() => whole).join(", ")} }`;
}

const plain =
  (kind: string): Combine =>
  (write, type, before, after) =>
    before.map((value, i) => write(`stablehlo.${kind} ${value}, ${after[i] ?? ""} : ${type}`));

const recurrence: Combine = (write, type, [a0 = "", b0 = ""], [a1 = "", b1 = ""]) => {
  const a = write(`stablehlo.multiply ${a1}, ${a0} : ${type}`);
  const b = write(`stablehlo.multiply ${a1}, ${b0} : ${type}`);
  return [a, write(`stablehlo.add ${b}, ${b1} : ${type}`)];
};

/** The last element that is not zero: operands may not change places. */
const last: Combine = (write, type, [x = ""], [y = ""]) => {
  const zero = write(`stablehlo.constant dense<0> : ${type}`);
  const isThere = `tensor<${type.slice(7, -1).replace("i32", "i1")}>`;
  const there = write(`stablehlo.compare NE, ${y}, ${zero} : (${type}, ${type}) -> ${isThere}`);
  return [write(`stablehlo.select ${there}, ${y}, ${x} : ${isThere}, ${type}`)];
};

/** A capture that is the same along the axis: x·2 + y − c. */
const captured: Combine = (write, type, [x = ""], [y = ""]) => {
  const c = write(`stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<3xf32>) -> ${type}`);
  const sum = write(`stablehlo.add ${x}, ${y} : ${type}`);
  return [write(`stablehlo.subtract ${sum}, ${c} : ${type}`)];
};

function numbersIn(x: Tensor): readonly number[] {
  return Array.from<number | bigint, number>(numbersOf(x), Number);
}

async function run(text: string, inputs: readonly Tensor[]) {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  return runModule(module, inputs);
}

async function runModule(module: GraphModule, inputs: readonly Tensor[]) {
  const plan = compilePlan(module, "main");
  const program = await Program.load(device, plan);
  try {
    const found = await program.run(inputs);
    return { found: found.map(numbersIn), plan: planText(plan) };
  } finally {
    program.dispose();
  }
}

/** Running values along an axis, of one array or several. */
function running(
  shape: readonly number[],
  axis: number,
  arrays: readonly (readonly number[])[],
  combine: (
    before: readonly number[],
    after: readonly number[],
    inner: number,
  ) => readonly number[],
): readonly (readonly number[])[] {
  const inner = sizeOf(shape.slice(axis + 1));
  const extent = shape[axis] ?? 1;
  const found = arrays.map((array) => [...array]);
  for (let at = 0; at < sizeOf(shape); at++) {
    if (Math.floor(at / inner) % extent === 0) continue;
    const before = found.map((array) => array[at - inner] ?? 0);
    const after = arrays.map((array) => array[at] ?? 0);
    combine(before, after, at % inner).forEach((value, i) => ((found[i] ?? [])[at] = value));
  }
  return found;
}

describe("are scans", () => {
  test.each([4, 5, 7, 16, 33, 100])("sums of %i elements", async (n) => {
    const x = Float32Array.from({ length: 2 * n * 3 }, (_, i) => ((i * 7) % 11) - 5);
    const shape = [2, n, 3];
    const { found, plan } = await run(unrolled(shape, 1, "f32", 1, plain("add")), [
      tensor("f32", shape, x),
    ]);
    expect(found).toEqual(running(shape, 1, [[...x]], ([a = 0], [b = 0]) => [a + b]));
    expect(plan).toContain("operation scanWith(");
    expect(plan.split("\n").filter((line) => /^(launch|operation) /.test(line))).toHaveLength(1);
  });

  test.each([
    [[4, 19], 1, [1]],
    [[24, 3], 0, [1]],
    [[24, 3], 0, [0, 1]],
    [[2, 3, 11], 2, [0]],
  ] as const)(
    "linear recurrences, %o along %i, of which %o are asked for",
    async (shape, axis, used) => {
      const random = new Random(7);
      const draw = (from: readonly number[]) =>
        Float32Array.from(
          { length: sizeOf(shape) },
          () => from[Math.floor(from.length * random.uniform())] ?? 0,
        );
      const [a, b] = [draw([1, -1, 0, 2, 0.5]), draw([1, 2, 3, -4])];
      const text = unrolled(shape, axis, "f32", 2, recurrence, { used: [...used] });
      const { found, plan } = await run(text, [tensor("f32", shape, a), tensor("f32", shape, b)]);
      const all = running(shape, axis, [[...a], [...b]], ([a0 = 0, b0 = 0], [a1 = 0, b1 = 0]) => [
        a1 * a0,
        a1 * b0 + b1,
      ]);
      // No zero has a sign here.
      expect(found.map((each) => each.map((v) => v + 0))).toEqual(
        used.map((i) => all[i]?.map((v) => v + 0)),
      );
      expect(plan).toContain("scanWith(");
      expect(plan).not.toContain("pad");
    },
  );

  test("functions whose operands may not change places", async () => {
    const x = Int32Array.from({ length: 50 }, (_, i) => (i % 7 === 3 ? i : 0));
    const { found, plan } = await run(unrolled([50], 0, "i32", 1, last), [tensor("i32", [50], x)]);
    expect(found).toEqual(running([50], 0, [[...x]], ([a = 0], [b = 0]) => [b === 0 ? a : b]));
    expect(plan).toContain("scanWith(");
  });

  test("truth values, whose halves are joined by `or`", async () => {
    const x = Uint8Array.from({ length: 40 }, (_, i) => (i > 21 ? 1 : 0));
    const { found, plan } = await run(unrolled([40], 0, "i1", 1, plain("or")), [
      tensor("i1", [40], x),
    ]);
    expect(found).toEqual([[...x]]);
    expect(plan).toContain("scanWith(");
  });

  test("functions with what is the same along the axis", async () => {
    const x = Float32Array.from({ length: 33 }, (_, i) => i % 5);
    const c = Float32Array.of(1, -2, 3);
    const text = unrolled([11, 3], 0, "f32", 1, captured, { capture: ", %c: tensor<3xf32>" });
    const { found, plan } = await run(text, [tensor("f32", [11, 3], x), tensor("f32", [3], c)]);
    const wanted = running([11, 3], 0, [[...x]], ([a = 0], [b = 0], inner) => [
      a + b - (c[inner] ?? 0),
    ]);
    expect(found).toEqual(wanted);
    expect(plan).toContain("scanWith(");
  });
});

/** The sum of all products of results and weights, differentiated by the inputs. */
function gradientOf(text: string): GraphModule {
  const [module] = parseGraph(text);
  const main = module?.functions.get("main");
  if (main === undefined) throw new Error("the text has a program");
  return moduleOf(vjp(main.body));
}

describe("derivatives are scans from the end", () => {
  const shape = [2, 21];
  const random = new Random(3);
  const draw = (from: readonly number[]) =>
    Float32Array.from({ length: 42 }, () => from[Math.floor(from.length * random.uniform())] ?? 0);
  const [a, b, y] = [draw([1, -1, 2, 0.5]), draw([1, 2, 3, -4]), draw([1, 0, -2, 3])];

  test.each([
    ["linear recurrences", [a, b], unrolled(shape, 1, "f32", 2, recurrence, { used: [1] })],
    ["products", [a], unrolled(shape, 1, "f32", 1, plain("multiply"))],
  ] as const)("of %s", async (_, inputs, text) => {
    const { found, plan } = await runModule(gradientOf(text), [
      ...inputs.map((each) => tensor("f32", shape, each)),
      tensor("f32", shape, y),
    ]);
    const isProduct = inputs.length === 1;
    const first = isProduct ? 1 : 0;
    const byFactors = new Float64Array(42);
    const byTerms = new Float64Array(42);
    for (const row of [0, 21]) {
      const h: number[] = [];
      for (let t = 0; t < 21; t++)
        h.push((a[row + t] ?? 0) * (h[t - 1] ?? first) + (isProduct ? 0 : (b[row + t] ?? 0)));
      let g = 0;
      for (let t = 20; t >= 0; t--) {
        g = (y[row + t] ?? 0) + (t === 20 ? 0 : (a[row + t + 1] ?? 0) * g);
        byTerms[row + t] = g;
        byFactors[row + t] = g * (h[t - 1] ?? first);
      }
    }
    const wanted = isProduct ? [byFactors] : [byFactors, byTerms];
    const gradients = found.slice(-wanted.length);
    for (const [i, own] of wanted.entries())
      for (const [at, value] of own.entries()) {
        const error = Math.abs((gradients[i]?.[at] ?? NaN) - value);
        expect(error).toBeLessThanOrEqual(1e-4 * Math.max(1, Math.abs(value)));
      }
    expect(plan.match(/scanWith/g)?.length).toBeGreaterThan(1);
    expect(
      plan.split("\n").filter((line) => /^(launch|operation) /.test(line)).length,
    ).toBeLessThan(9);
  });
});

test.each([
  [
    "another function at one level",
    (text: string) =>
      text.replace(/(stablehlo\.)add( %t\d+, %t\d+ : tensor<5xf32>)/, "$1subtract$2"),
  ],
  ["other elements at one place", (text: string) => text.replace("[1:20:2]", "[0:19:2]")],
  ["an end that is no zero", (text: string) => text.replace("dense<0.0>", "dense<1.0>")],
])("what has %s stays as it is", async (_, change) => {
  const text = unrolled([20], 0, "f32", 1, plain("add"));
  const changed = change(text);
  expect(changed).not.toBe(text);
  const x = Float32Array.from({ length: 20 }, (__, i) => i);
  const { plan } = await run(changed, [tensor("f32", [20], x)]);
  // An inner level that is whole may still be one.
  expect(plan).not.toMatch(/scanWith\(arg0/);
});
