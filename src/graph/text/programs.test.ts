import { describe, expect, test } from "vitest";
import { listFiles, readText } from "../../../test/source-files.ts";
import { parseGraph, printGraph } from "./index.ts";

describe("programs that JAX printed", () => {
  for (const file of listFiles("test/fixtures/programs", /\.mlir$/))
    test(`${file} prints to a fixpoint`, () => {
      const modules = parseGraph(readText(file), file);
      expect(modules).toHaveLength(1);
      const once = modules.map((module) => printGraph(module)).join("// -----\n");
      const twice = parseGraph(once, file).map((module) => printGraph(module));
      expect(twice.join("// -----\n")).toBe(once);
    });
});
