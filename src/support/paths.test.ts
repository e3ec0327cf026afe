import { expect, test } from "vitest";
import process from "node:process";
import { relativePath, workingDirectory } from "./paths.ts";

test.each([
  ["/srv/ada/desk/kernels/axpy.ts", "/srv/ada/desk", "kernels/axpy.ts"],
  ["/srv/ada/desk/axpy.ts", "/srv/ada/desk/", "axpy.ts"],
  ["/srv/ada/shared/axpy.ts", "/srv/ada/desk", "../shared/axpy.ts"],
  ["/srv/ada/axpy.ts", "/srv/ada/desk/deep/er", "../../../axpy.ts"],
  ["/srv/ada/desktop/axpy.ts", "/srv/ada/desk", "../desktop/axpy.ts"],
  ["/srv/ada/desk/node_modules/lib/gemm.js", "/srv/bob", "node_modules/lib/gemm.js"],
  ["/a/node_modules/b/node_modules/c/d.js", "/a", "node_modules/c/d.js"],
  ["/opt/axpy.ts", "/srv/ada", "/opt/axpy.ts"],
  ["C:/desk/axpy.ts", "C:\\desk", "axpy.ts"],
  ["C:\\desk\\deep\\axpy.ts", "C:\\desk", "deep/axpy.ts"],
  ["C:\\desk\\node_modules\\lib\\gemm.js", "C:\\desk", "node_modules/lib/gemm.js"],
  ["D:/desk/axpy.ts", "C:\\desk", "D:/desk/axpy.ts"],
  ["https://example.org/axpy.js", "/srv/ada", "https://example.org/axpy.js"],
  ["axpy.ts", "/srv/ada", "axpy.ts"],
  ["<text>", "/srv/ada", "<text>"],
])("%s from %s is %s", (path, folder, expected) => {
  expect(relativePath(path, folder)).toBe(expected);
});

test("a host without a working directory leaves paths alone", () => {
  expect(relativePath("/srv/ada/axpy.ts", undefined)).toBe("/srv/ada/axpy.ts");
  expect(workingDirectory()).toBe(process.cwd());
});
