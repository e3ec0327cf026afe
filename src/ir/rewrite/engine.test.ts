import { describe, expect, test } from "vitest";
import { bodyText, kernelWith } from "../../../test/support/ir-text.ts";
import { parseModule } from "../parser/parser.ts";
import { printModule } from "../printer.ts";
import { rewriteKernel } from "./engine.ts";
import { defineRules, rule } from "./rules.ts";
import { keepSlots, slotsOf } from "./slots.ts";

const chain = `%5 = unary %a {fn = sqrt} : f32
%6 = unary %5 {fn = sqrt} : f32
%7 = unary %6 {fn = sqrt} : f32
debug_print %7 {format = "{}"}`;

/** Takes one of two nested square roots away. */
const collapse = defineRules("test", {
  collapse: rule("unary", ({ operands }, { definition }) => {
    const inner = definition(operands.source);
    return inner?.kind === "unary" ? operands.source : undefined;
  }),
});

describe("the driver", () => {
  test("applies rules until none fires, and users read the replacement", () => {
    const kernel = rewriteKernel(kernelWith(chain), collapse);
    expect(bodyText(kernel)).toBe(`%5 = unary %a {fn = sqrt} : f32
debug_print %5 {format = "{}"}`);
  });

  test("returns the kernel it was given where no rule fires", () => {
    const kernel = kernelWith('debug_print %a {format = "{}"}');
    expect(rewriteKernel(kernel, collapse)).toBe(kernel);
  });

  test("names the rules that keep firing", () => {
    const kernel = kernelWith('%5 = binary %b, %b {fn = add} : i32 debug_print %5 {format = "{}"}');
    const endless = defineRules("test", {
      there: rule("binary", ({ operands, attributes }, context) =>
        attributes.fn === "add" ? context.createOne("binary", operands, { fn: "mul" }) : undefined,
      ),
      back: rule("binary", ({ operands, attributes }, context) =>
        attributes.fn === "mul" ? context.createOne("binary", operands, { fn: "add" }) : undefined,
      ),
      never: rule("binary", () => undefined),
    });
    expect(() => rewriteKernel(kernel, endless)).toThrow(
      /does not end; these rules keep firing: test: (?:there|back)$/,
    );
  });

  test("looks again at an op when what defines its operands has changed, however far away", () => {
    const replaced = (from: string, to: "abs" | "floor") =>
      rule("unary", ({ operands, attributes }, context) =>
        attributes.fn === from ? context.createOne("unary", operands, { fn: to }) : undefined,
      );
    const rules = defineRules("test", {
      // Of two sweeps, since what a rule creates is looked at in the next: the third op is settled by then.
      first: replaced("sqrt", "abs"),
      second: replaced("abs", "floor"),
      far: rule("unary", ({ operands, attributes }, { definition }) => {
        const inner = attributes.fn === "neg" ? definition(operands.source) : undefined;
        const innermost = inner?.kind === "unary" ? definition(inner.operands.source) : undefined;
        return innermost?.kind === "unary" && innermost.attributes.fn === "floor"
          ? innermost.results[0]
          : undefined;
      }),
    });
    const kernel = kernelWith(`%5 = unary %a {fn = sqrt} : f32
%6 = unary %5 {fn = exp} : f32
%7 = unary %6 {fn = neg} : f32
debug_print %7 {format = "{}"}`);
    expect(bodyText(rewriteKernel(kernel, rules))).toBe(`%5 = unary %a {fn = floor} : f32
%6 = unary %5 {fn = exp} : f32
debug_print %5 {format = "{}"}`);
  });

  test("rejects a replacement of another type, or of another number", () => {
    const kernel = kernelWith(chain);
    const wrongType = defineRules("test", {
      wrong: rule("unary", (_, context) => context.kernel.parameters[3]?.value),
    });
    expect(() => rewriteKernel(kernel, wrongType)).toThrow("rule test: wrong changes the type f32");
    const wrongCount = defineRules("test", { wrong: rule("unary", () => []) });
    expect(() => rewriteKernel(kernel, wrongCount)).toThrow(
      "rule test: wrong gives 0 values for 1",
    );
  });

  test("new ops stand in front of the one they replace and have its location", () => {
    const text = `kernel @k grid [i = 4] threads [main] (
  scalar %0 "a": f32
) {
  %1 = unary %0 {fn = neg} : f32 @ "user.ts":7:3
  debug_print %1 {format = "{}"} @ "user.ts":8:3
  yield
}
`;
    const [kernel] = parseModule(text).kernels;
    const subtract = defineRules("test", {
      subtract: rule("unary", ({ operands, results: [result] }, context) => {
        if (result?.type.kind !== "scalar") return undefined;
        const left = context.createConstant(-0, result.type);
        return context.createOne("binary", { left, right: operands.source }, { fn: "sub" });
      }),
    });
    const after = rewriteKernel(kernel ?? expect.fail(), subtract);
    expect(printModule({ kernels: [after] }, { locations: true })).toContain(`{
  %1 = constant {value = -0, dtype = f32, shape = []} : f32 @ "user.ts":7:3
  %2 = binary %1, %0 {fn = sub} : f32 @ "user.ts":7:3
  debug_print %2 {format = "{}"} @ "user.ts":8:3
`);
  });

  test("after inlining, new ops have the location of the op again", () => {
    const text = `kernel @k grid [i = 4] threads [main] (
  scalar %0 "a": f32
) {
  %1 = scoped body {
    %2 = unary %0 {fn = exp} : f32 @ "user.ts":8:3
    yield %2
  } : f32 @ "user.ts":7:3
  debug_print %1 {format = "{}"}
  yield
}
`;
    const [kernel] = parseModule(text).kernels;
    const unwrap = defineRules("test", {
      unwrap: rule("scoped", ({ regions }, context) => {
        const [source] = context.inline(regions.body, []);
        return source && context.createOne("unary", { source }, { fn: "neg" });
      }),
    });
    const after = rewriteKernel(kernel ?? expect.fail(), unwrap);
    expect(printModule({ kernels: [after] }, { locations: true })).toContain(`{
  %1 = unary %0 {fn = exp} : f32 @ "user.ts":8:3
  %2 = unary %1 {fn = neg} : f32 @ "user.ts":7:3
`);
  });

  test("inlines a region with its parameters replaced, also inside its own regions", () => {
    const body = `%5 = constant {value = 0, dtype = i32, shape = []} : i32
      %6 = loop %5, %b, %b initial(%a) body(%i: i32, %v: f32) {
        %7 = if %c then { %8 = unary %v {fn = neg} : f32 yield %8 } otherwise { yield %v } : f32
        yield %7
      } : f32
      debug_print %6 {format = "{}"}`;
    const unroll = defineRules("test", {
      once: rule("loop", ({ operands, regions }, context) =>
        context.inline(regions.body, [operands.lower, ...operands.initial]),
      ),
    });
    expect(bodyText(rewriteKernel(kernelWith(body), unroll)))
      .toBe(`%5 = constant {value = 0, dtype = i32, shape = []} : i32
%6 = if %c then {
  %7 = unary %a {fn = neg} : f32
  yield %7
} otherwise {
  yield %a
} : f32
debug_print %6 {format = "{}"}`);
  });
});

describe("slots", () => {
  const body = `%5, %6 = while %a, %b condition(%7: f32, %8: i32) {
  yield %c
} body(%9: f32, %10: i32) {
  yield %9, %10
} : f32, i32
debug_print %6 {format = "{}"}`;

  test("hold what belongs to a result", () => {
    const kernel = kernelWith(body);
    const [loop] = kernel.body.ops;
    if (loop?.kind !== "while") return expect.fail();
    const { condition, body: inner } = loop.regions;
    expect(slotsOf(loop)).toEqual(
      [0, 1].map((slot) => ({
        result: loop.results[slot],
        initial: loop.operands.initial[slot],
        parameters: [condition.parameters[slot], inner.parameters[slot]],
        yielded: [inner.parameters[slot]],
      })),
    );
  });

  test("are dropped whole", () => {
    const kernel = kernelWith(body);
    const [loop, ...others] = kernel.body.ops;
    if (loop === undefined) return expect.fail();
    const slim = keepSlots(loop, ({ result }) => result === loop.results[1]);
    const changed = {
      ...kernel,
      body: Object.freeze({ ...kernel.body, ops: Object.freeze([slim, ...others]) }),
    };
    expect(bodyText(changed)).toBe(`%5 = while %b condition(%6: i32) {
  yield %c
} body(%7: i32) {
  yield %7
} : i32
debug_print %5 {format = "{}"}`);
  });
});
