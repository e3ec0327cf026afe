/**
 * Names of ops through inlining and unrolling: whatever a call is nested in and whatever it holds, an op is called by the
 * calls around it, then by its own name, in loops, branches and combiners too.
 */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { opsWithin } from "../ops/traverse.ts";
import type { AnyGraphOp, GraphModule } from "../ops/node.ts";
import { compilePlan } from "../plan/compile.ts";
import { planText } from "../plan/text.ts";
import { parseGraph } from "../text/index.ts";
import { inlinePass } from "./inline.ts";
import { unrollPass } from "./loops.ts";
import { runPasses } from "./pass-order.ts";

function moduleOf(text: string): GraphModule {
  const [module] = parseGraph(text, "names.mlir");
  if (module === undefined) throw new Error("no program");
  return module;
}

function namesOf(module: GraphModule, kind?: AnyGraphOp["kind"]): readonly string[] {
  const body = module.functions.get("main")?.body;
  if (body === undefined) throw new Error("no @main");
  return [...opsWithin(body)]
    .filter((op) => kind === undefined || op.kind === kind)
    .map(({ name }) => name);
}

interface Block {
  readonly lines: readonly string[];
  /** The names of its ops, in their order, once everything is inlined. */
  readonly names: readonly string[];
  readonly value: string;
}

const scalar = "tensor<f32>";

function region(block: Block, parameters = ""): string {
  const end = `"stablehlo.return"(${block.value}) : (${scalar}) -> ()`;
  return ["{", parameters, ...block.lines, end, "}"].join("\n");
}

/** Writes functions of nested ops that call one another, with a name for each op or none. */
class Writer {
  readonly functions: string[] = [];
  readonly #random: Random;
  #values = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  #fresh(): string {
    return `%v${this.#values++}`;
  }

  block(from: string, depth: number): Block {
    const first = this.#op(from, depth);
    const second = this.#op(first.value, depth);
    return {
      lines: [...first.lines, ...second.lines],
      names: [...first.names, ...second.names],
      value: second.value,
    };
  }

  #op(from: string, depth: number): Block {
    const name = this.#random.below(4) === 0 ? "" : `n${this.#random.below(3)}`;
    const value = this.#fresh();
    const written = this.#written(from, depth, name);
    const location = name === "" ? "" : ` loc("${name}")`;
    return {
      lines: [...written.before, `${value} = ${written.line}${location}`],
      names: written.names,
      value,
    };
  }

  #written(from: string, depth: number, name: string) {
    const kinds = [this.#call, this.#call, this.#loop, this.#branches, this.#reduction] as const;
    const chosen = kinds[this.#random.below(kinds.length)];
    if (depth > 0 && chosen !== undefined) return chosen.call(this, from, depth - 1, name);
    return { before: [], line: `stablehlo.negate ${from} : ${scalar}`, names: [name] };
  }

  #call(from: string, depth: number, name: string) {
    const body = this.block("%x", depth);
    const callee = `@f${this.functions.length}`;
    const head = `func.func private ${callee}(%x: ${scalar}) -> ${scalar} {`;
    this.functions.push([head, ...body.lines, `return ${body.value} : ${scalar} }`].join("\n"));
    return {
      before: [],
      line: `call ${callee}(${from}) : (${scalar}) -> ${scalar}`,
      names: body.names.map((each) => [name, each].filter((part) => part !== "").join("/")),
    };
  }

  #loop(from: string, depth: number, name: string) {
    const [at, state, holds] = [this.#fresh(), this.#fresh(), this.#fresh()];
    const body = this.block(state, depth);
    const test = [
      `{ ^bb0(${at}: ${scalar}):`,
      `${holds} = stablehlo.compare LT, ${at}, ${at} : (${scalar}, ${scalar}) -> tensor<i1> loc("test")`,
      `"stablehlo.return"(${holds}) : (tensor<i1>) -> () }`,
    ].join("\n");
    const regions = `(${test}, ${region(body, `^bb0(${state}: ${scalar}):`)})`;
    return {
      before: [],
      line: `"stablehlo.while"(${from}) ${regions} : (${scalar}) -> ${scalar}`,
      names: [name, "test", ...body.names],
    };
  }

  #branches(from: string, depth: number, name: string) {
    const [kind, type] = this.#random.below(2) === 0 ? ["if", "i1"] : ["case", "i32"];
    const index = this.#fresh();
    const branches = [this.block(from, depth), this.block(from, depth)];
    const regions = `(${branches.map((each) => region(each)).join(", ")})`;
    return {
      before: [
        `${index} = stablehlo.convert ${from} : (${scalar}) -> tensor<${type}> loc("index")`,
      ],
      line: `"stablehlo.${kind}"(${index}) ${regions} : (tensor<${type}>) -> ${scalar}`,
      names: ["index", name, ...branches.flatMap(({ names }) => names)],
    };
  }

  #reduction(from: string, _depth: number, name: string) {
    const [wide, a, b, sum] = [this.#fresh(), this.#fresh(), this.#fresh(), this.#fresh()];
    const add = `${sum} = stablehlo.add ${a}, ${b} : ${scalar} loc("sum")`;
    const combiner = region(
      { lines: [add], names: [], value: sum },
      `^bb0(${a}: ${scalar}, ${b}: ${scalar}):`,
    );
    return {
      before: [`${wide} = stablehlo.reshape ${from} : (${scalar}) -> tensor<1xf32> loc("wide")`],
      line: `"stablehlo.reduce"(${wide}, ${from}) <{dimensions = array<i64: 0>}> (${combiner}) : (tensor<1xf32>, ${scalar}) -> ${scalar}`,
      names: ["wide", name, "sum"],
    };
  }
}

describe("inlining", () => {
  test("ops of a loop in a called function are named after the call", () => {
    const names = namesOf(
      inlinePass.run(
        moduleOf(`
          func.func @main(%a: tensor<f32>) -> tensor<f32> {
            %0 = call @f(%a) : (tensor<f32>) -> tensor<f32> loc("x")
            %1 = call @f(%0) : (tensor<f32>) -> tensor<f32> loc("y")
            return %1 : tensor<f32> }
          func.func private @f(%a: tensor<f32>) -> tensor<f32> {
            %0 = stablehlo.while(%s = %a) : tensor<f32>
            cond {
              %p = stablehlo.compare LT, %s, %a : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("while/cond/lt")
              stablehlo.return %p : tensor<i1>
            } do {
              %n = func.call @g(%s) : (tensor<f32>) -> tensor<f32> loc("while/body/g")
              stablehlo.return %n : tensor<f32>
            } loc("while")
            return %0 : tensor<f32> }
          func.func private @g(%a: tensor<f32>) -> tensor<f32> {
            %0 = stablehlo.sine %a : tensor<f32> loc("sin")
            return %0 : tensor<f32> }`),
      ),
    );
    expect(names).toEqual(
      ["x", "y"].flatMap((call) => [
        `${call}/while`,
        `${call}/while/cond/lt`,
        `${call}/while/body/g/sin`,
      ]),
    );
  });

  for (let seed = 1; seed <= 12; seed++)
    test(`calls, loops, branches and combiners nested at random, seed ${seed}`, () => {
      const writer = new Writer(new Random(seed));
      const { lines, names, value } = writer.block("%x", 4);
      const text = [
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {",
        ...lines,
        `return ${value} : tensor<f32> }`,
        ...writer.functions,
      ].join("\n");
      expect(namesOf(inlinePass.run(moduleOf(text)))).toEqual(names);
    });
});

/** Two calls of a function with a loop of some trips, as JAX names them. */
function loops(trips: number): GraphModule {
  return moduleOf(`
    func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32> loc("jit(f)/first")
      %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32> loc("jit(f)/second")
      return %1 : tensor<8xf32> }
    func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %end = stablehlo.constant dense<${trips}> : tensor<i32>
      %0:2 = stablehlo.while(%i = %zero, %s = %a) : tensor<i32>, tensor<8xf32>
      cond {
        %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("while/cond/lt")
        stablehlo.return %p : tensor<i1>
      } do {
        %n = stablehlo.sine %s : tensor<8xf32> loc("while/body/sin")
        %m = stablehlo.negate %n : tensor<8xf32>
        %j = stablehlo.add %i, %one : tensor<i32> loc("while/body/add")
        stablehlo.return %j, %m : tensor<i32>, tensor<8xf32>
      } loc("while")
      return %0#1 : tensor<8xf32> }`);
}

describe("loops", () => {
  const calls = ["jit(f)/first", "jit(f)/second"] as const;

  test("ops of loops that are written out keep their names; one without is called as the loop", () => {
    const inlined = unrollPass.run(inlinePass.run(loops(2)));
    expect(namesOf(inlined, "stablehlo.while")).toEqual([]);
    expect(namesOf(inlined, "stablehlo.sine")).toEqual(
      calls.flatMap((call) => [`${call}/while/body/sin`, `${call}/while/body/sin`]),
    );
    // An op without a name is called as the function's call since that was inlined.
    expect(namesOf(inlined, "stablehlo.negate")).toEqual(calls.flatMap((call) => [call, call]));
    const alone = unrollPass.run(
      moduleOf(`func.func @main(%a: tensor<f32>) -> tensor<f32> {
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %0:2 = stablehlo.while(%i = %zero, %s = %a) : tensor<i32>, tensor<f32>
        cond {
          %p = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        } do {
          %n = stablehlo.sine %s : tensor<f32>
          %j = stablehlo.add %i, %one : tensor<i32>
          stablehlo.return %j, %n : tensor<i32>, tensor<f32>
        } loc("loop")
        return %0#1 : tensor<f32> }`),
    );
    expect(namesOf(alone, "stablehlo.sine")).toEqual(["loop"]);
  });

  test("the launches of a plan are named after calls and loops", () => {
    const module = loops(100);
    expect(namesOf(runPasses(module), "stablehlo.sine")).toEqual(
      calls.map((call) => `${call}/while/body/sin`),
    );
    const lines = planText(compilePlan(module, "main")).split("\n");
    for (const call of calls) expect(lines.join("\n")).toContain(`${call}/while`);
  });
});
