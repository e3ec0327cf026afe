/** What recorded ops are called: the functions, loops and branches around them, wherever a function is called from. */
import { describe, expect, test } from "vitest";
import { opsWithin } from "../graph/ops/traverse.ts";
import { moduleOf } from "../graph/ops/node.ts";
import { derivativesPass } from "../graph/passes/derivatives.ts";
import { runPasses } from "../graph/passes/pass-order.ts";
import {
  add,
  array,
  astype,
  checkpoint,
  cond,
  grad,
  jit,
  less,
  mul,
  scan,
  sin,
  sum,
  switchCase,
  vmap,
  whileLoop,
} from "./index.ts";
import type { NDArray } from "./index.ts";
import { recordFunction } from "./trace-function.ts";

type F32 = NDArray<"f32">;

/** The names of a function's ops, as they are recorded and after passes. */
function namesOf(f: (...args: F32[]) => unknown, ...args: F32[]): readonly string[] {
  const { graph } = recordFunction("main", f, args);
  const passed = runPasses(derivativesPass.run(moduleOf(graph))).functions.get("main")?.body;
  if (passed === undefined) throw new Error("no @main");
  return [graph, passed].flatMap((each) => [...opsWithin(each)].map(({ name }) => name));
}

const inner = jit((x: F32) => mul(sin(x), 2), { name: "inner" });
const sine = "jit(inner)/sine";
const x = array([1, 2, 3]);
const row = array(Array.from({ length: 20 }, () => 1));

/** Fails unless all ops are named within `main` and those that are sines as told. */
function expectSines(names: readonly string[], ...sines: readonly string[]): void {
  expect(names.filter((name) => name !== "main" && !name.startsWith("main/"))).toEqual([]);
  const found = new Set(names.filter((name) => name.endsWith("/sine")));
  expect([...found].sort()).toEqual([...sines].sort());
}

describe("a compiled function that is called from several places", () => {
  test("is named after each", () => {
    expectSines(
      namesOf((a) => inner(a), x),
      `main/${sine}`,
    );
    const outer = jit((a: F32) => add(inner(a), 1), { name: "outer" });
    expectSines(
      namesOf((a) => add(outer(a), inner(a)), x),
      `main/${sine}`,
      `main/jit(outer)/${sine}`,
    );
  });

  test("also from the body and the condition of a loop", () => {
    const names = namesOf(
      (a) =>
        whileLoop(
          (s: F32) => less(sum(inner(s)), 100),
          (s) => inner(mul(s, 2)),
          a,
        ),
      x,
    );
    expectSines(names, `main/while/cond/${sine}`, `main/while/body/${sine}`);
  });

  test("from loops within loops", () => {
    const again = (s: F32): F32 =>
      whileLoop(
        (t: F32) => less(sum(t), 5),
        (t) => inner(t),
        s,
      );
    const outer = jit((a: F32) => whileLoop((s: F32) => less(sum(s), 100), again, a), {
      name: "outer",
    });
    expectSines(
      namesOf((a) => outer(a), x),
      `main/jit(outer)/while/body/while/body/${sine}`,
    );
  });

  test("from branches", () => {
    expectSines(
      namesOf(
        (a) =>
          cond(
            less(sum(a), 1),
            () => inner(a),
            () => sin(a),
          ),
        x,
      ),
      `main/if/true/${sine}`,
      "main/if/false/sine",
    );
    expectSines(
      namesOf((a) => switchCase(astype(sum(a), "i32"), [() => sin(a), () => inner(a)]), x),
      "main/case/branch0/sine",
      `main/case/branch1/${sine}`,
    );
  });

  test.each([
    ["that are written out", x],
    ["of many trips", row],
  ])("from scans %s", (_, rows) => {
    expectSines(
      namesOf(
        (a) => scan((carry: F32, each: F32) => [add(carry, each), inner(carry)], array(0), a),
        rows,
      ),
      `main/scan/${sine}`,
    );
  });
});

describe("derivatives and batches", () => {
  test("ops of a gradient are named after those they differentiate", () => {
    expectSines(
      namesOf((a) => grad((b: F32) => sum(mul(inner(b), b)))(a), x),
      `main/grad/${sine}`,
    );
    expectSines(
      namesOf(
        (a) =>
          grad((b: F32) =>
            sum(scan((c: F32, r: F32) => [add(c, inner(r)), sin(c)], array(0), b)[1]),
          )(a),
        row,
      ),
      `main/grad/scan/${sine}`,
      "main/grad/scan/sine",
    );
    const kept = checkpoint((b: F32) => inner(mul(b, b)));
    expectSines(
      namesOf((a) => grad((b: F32) => sum(kept(b)))(a), x),
      `main/grad/checkpoint/${sine}`,
    );
  });

  test("vmap", () => {
    expectSines(
      namesOf(
        (a) => vmap((b: F32) => sum(mul(inner(b), b)))(a),
        array([
          [1, 2],
          [3, 4],
        ]),
      ),
      `main/vmap/${sine}`,
    );
  });
});
