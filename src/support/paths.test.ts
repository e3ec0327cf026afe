import { expect, test } from "vitest";
import process from "node:process";
import { relativePath, workingDirectory } from "./paths.ts";

test.each([
  ["/home/ada/work/kernels/axpy.ts", "/home/ada/work", "kernels/axpy.ts"],
  ["/home/ada/work/axpy.ts", "/home/ada/work/", "axpy.ts"],
  ["/home/ada/shared/axpy.ts", "/home/ada/work", "../shared/axpy.ts"],
  ["/home/ada/axpy.ts", "/home/ada/work/deep/er", "../../../axpy.ts"],
  ["/home/ada/working/axpy.ts", "/home/ada/work", "../working/axpy.ts"],
  ["/home/ada/work/node_modules/lib/gemm.js", "/home/bob", "node_modules/lib/gemm.js"],
  ["/a/node_modules/b/node_modules/c/d.js", "/a", "node_modules/c/d.js"],
  ["/opt/axpy.ts", "/home/ada", "/opt/axpy.ts"],
  ["C:/work/axpy.ts", "C:\\work", "axpy.ts"],
  ["D:/work/axpy.ts", "C:\\work", "D:/work/axpy.ts"],
  ["https://example.org/axpy.js", "/home/ada", "https://example.org/axpy.js"],
  ["axpy.ts", "/home/ada", "axpy.ts"],
  ["<text>", "/home/ada", "<text>"],
])("%s from %s is %s", (path, folder, expected) => {
  expect(relativePath(path, folder)).toBe(expected);
});

test("a host without a working directory leaves paths alone", () => {
  expect(relativePath("/home/ada/axpy.ts", undefined)).toBe("/home/ada/axpy.ts");
  expect(workingDirectory()).toBe(process.cwd());
});
