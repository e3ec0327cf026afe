import { expect, test } from "vitest";
import { tensor, f32, kernel } from "tilewright";
import type { Backend, Compiled } from "./backend.ts";
import { CompilationCache } from "./compilation.ts";

const { kernel: traced } = kernel({ name: "k", outputs: { out: tensor(f32, [1]) } }, ({ out }) => {
  out.at(0).store(1);
});

/** A cache over a back end that compiles a kernel to its name, and the names in the order of compilation. */
function countingCache(): {
  readonly cache: CompilationCache;
  readonly compiled: string[];
  readonly forgotten: unknown[];
} {
  const compiled: string[] = [];
  const forgotten: unknown[] = [];
  const backend: Pick<Backend, "name" | "sourceLines" | "compile" | "forget"> = {
    forget: (program) => forgotten.push(program),
    name: "counting",
    sourceLines: "all",
    compile: ({ name }): Compiled => {
      compiled.push(name);
      return { program: name, cached: false, notes: [] };
    },
  };
  return { cache: new CompilationCache(backend as Backend, () => undefined), compiled, forgotten };
}

test("20,000 kernels leave as many behind as are kept, the newest", () => {
  const { cache, compiled, forgotten } = countingCache();
  const kernels = Array.from({ length: 20_000 }, (_, index) => ({ ...traced, name: `k${index}` }));
  const first = kernels[0] ?? traced;
  // The first is in use all the time, so never forgotten.
  const firsts = new Set<unknown>();
  for (const each of kernels) {
    cache.compile(each);
    firsts.add(cache.compile(first));
  }
  expect([...firsts]).toEqual(["k0"]);
  expect(compiled).toHaveLength(20_000);
  // What is not kept is given back, once.
  expect(forgotten).toEqual(compiled.slice(1, 20_000 - 1023));
  expect(cache.records).toHaveLength(1024);
  expect(cache.records.at(-1)?.kernel).toBe("k19999");
  cache.compile(kernels[19_500] ?? traced);
  expect(compiled).toHaveLength(20_000);
  cache.compile(kernels[100] ?? traced);
  expect(compiled.slice(20_000)).toEqual(["k100"]);
});
