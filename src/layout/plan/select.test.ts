/** Instructions of products as a stage: an attribute of every dot, and windows in place of the loads that wgmma stands for. */
import { expect, test } from "vitest";
import { pipelinedDot } from "../../../test/support/lowered-kernels.ts";
import { flashAttention } from "../../../test/support/placed-kernels.ts";
import type { AnyOp, Kernel, Op } from "../../ir/node.ts";
import { parseModule } from "../../ir/parser/parser.ts";
import { printKernel } from "../../ir/printer.ts";
import { operandValues, walkOps } from "../../ir/traverse.ts";
import { simplify } from "../../lower/simplify.ts";
import { targets } from "../../targets/target.ts";
import { windowsOf } from "../model/windows.ts";
import { selectInstructions } from "./select.ts";
import type { Refusals } from "./select.ts";

function opsOf({ body }: Kernel): readonly AnyOp[] {
  const ops: AnyOp[] = [];
  walkOps(body, (op) => void ops.push(op));
  return ops;
}

function dotsOf(kernel: Kernel): readonly Op<"dot">[] {
  return opsOf(kernel).filter((op) => op.kind === "dot");
}

function select(kernel: Kernel, refused: Refusals = new Map()) {
  const windows = windowsOf(kernel);
  return selectInstructions(kernel, { windows, target: targets.sm_90a, refused });
}

test.each([
  ["a pipelined dot", pipelinedDot()],
  ["attention", flashAttention()],
])("%s with its instructions is IR that reads back", (_, { kernel: traced }) => {
  const { kernel, products } = select(simplify(traced));
  const text = printKernel(kernel);
  expect(parseModule(text).kernels.map((each) => printKernel(each))).toEqual([text]);
  const dots = dotsOf(kernel);
  expect(dots.length).toBeGreaterThan(0);
  for (const dot of dots)
    expect(dot.attributes.instruction).toBe(products.get(dot)?.instruction ?? "none");
});

test("loads that wgmma stands for are gone, and nothing else is", () => {
  const traced = simplify(pipelinedDot().kernel);
  const { kernel } = select(traced);
  const read = dotsOf(kernel).flatMap((dot) =>
    operandValues(dot).filter(({ type }) => type.kind === "ref"),
  );
  expect(read.length).toBeGreaterThan(0);
  const loads = (each: Kernel): number => opsOf(each).filter(({ kind }) => kind === "load").length;
  expect(loads(traced) - loads(kernel)).toBe(read.length);
  expect(opsOf(traced).length - opsOf(kernel).length).toBe(read.length);
});

test("a product that is refused wgmma has another instruction and its loads, and tells why", () => {
  const traced = simplify(pipelinedDot().kernel);
  const results = dotsOf(traced).flatMap((dot) => dot.results);
  const { kernel, products } = select(traced, new Map(results.map((each) => [each, "of this"])));
  expect(opsOf(kernel)).toHaveLength(opsOf(traced).length);
  for (const { instruction, reason } of products.values())
    expect([instruction, reason]).toEqual(["mma.sync", "no wgmma: of this"]);
});
