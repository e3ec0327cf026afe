/** Programs whose own checks hold results that NumPy computed. */
import { describe, expect, test } from "vitest";
import { readText } from "../../../test/source-files.ts";
import { parseGraph } from "../text/index.ts";
import { verifyGraph } from "../verify/index.ts";
import { evaluate } from "./index.ts";

const file = "test/fixtures/checked/numpy.mlir";
const programs = parseGraph(readText(file), file).flatMap((module) =>
  [...module.functions.keys()].map((name) => ({ name, module })),
);

describe("programs checked by NumPy's results", () => {
  test("there are as many as were made", () => {
    expect(programs).toHaveLength(111);
  });

  test.each(programs)("$name", ({ name, module }) => {
    verifyGraph(module);
    evaluate(module, name, []);
  });
});
