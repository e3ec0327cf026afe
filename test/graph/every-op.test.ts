/** Every op that has a program in the table: batches against loops, derivatives against central differences. */
import { describe, expect, test } from "vitest";
import { operandsOf, regionsOf } from "../../src/graph/ops/index.ts";
import type { GraphRegion } from "../../src/graph/ops/index.ts";
import { bodyOf, checkText } from "../support/central-differences.ts";
import { everyWay } from "../support/batch-loops.ts";
import { opCases } from "./every-op.ts";

const cases = Object.entries(opCases).flatMap(([kind, found]) =>
  "none" in found ? [] : [{ kind, ...found }],
);

function kindsOf({ ops }: GraphRegion): readonly string[] {
  return ops.flatMap((op) => [op.kind, ...regionsOf(op).flatMap(kindsOf)]);
}

describe("programs of every op", () => {
  test.each(cases)("$kind", ({ kind, text, derivative, range = [0.2, 0.9] }) => {
    const body = bodyOf(text);
    expect(kindsOf(body)).toContain(kind);
    expect(body.ops.flatMap(operandsOf).length).toBeGreaterThan(0);
    everyWay(text);
    if (derivative === true) checkText(text, ...range);
  });

  test("are most of them", () => {
    expect(cases.length).toBeGreaterThan(95);
  });
});
