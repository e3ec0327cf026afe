/**
 * Which tests a change asks for first, by where they lie: what imports a file of the library is half of all tests.
 *
 *   src/ir/print.ts        ─▶ src/ir/print.test.ts, then the other tests of src/ir
 *   test/fuzz/seeds.ts     ─▶ the tests of test/fuzz
 *   test/support/sample.ts, scripts/mutate.ts  ─▶ the tests that import it
 *   docs/language.md       ─▶ the tests of pages and of their programs
 *
 * To these come the tests of the repository itself: layers, counts, headers, generated pages, faults.
 */
import { posix } from "node:path";

export interface TouchedTests {
  /** Changed tests, those beside changed files and those that import changed scripts and fixtures. */
  readonly nearest: readonly string[];
  readonly repository: readonly string[];
  /** The other tests of changed folders. */
  readonly folders: readonly string[];
}

const repositoryTests = [
  "architecture",
  "ratchets",
  "folder-headers",
  "docs-generated",
  "mutations",
];
const pageTests = ["snippets", "recipes"];

const inTest = (name: string): string => `test/${name}.test.ts`;

/** The tests for changed files; `tests` are all there are, by their text. */
export function touchedTests(
  changed: readonly string[],
  tests: ReadonlyMap<string, string>,
): TouchedTests {
  const all = [...tests.keys()];
  const within = (folder: string): readonly string[] =>
    all.filter((test) => posix.dirname(test) === folder);
  const importing = (file: string): readonly string[] =>
    all.filter((test) => tests.get(test)?.includes(`/${posix.basename(file)}"`));

  const near = changed.flatMap((file): readonly string[] => {
    if (tests.has(file)) return [file];
    if (/^(docs\/|README|CONTRIBUTING).*\.md$/.test(file)) return pageTests.map(inTest);
    if (file.startsWith("examples/")) return [inTest("examples")];
    if (/^(scripts|bench|test\/support)\/|^test\/[^/]*$/.test(file)) return importing(file);
    return [file.replace(/\.ts$/, ".test.ts")];
  });
  const around = changed.flatMap((file): readonly string[] => {
    if (!/^(src|test)\/.+\//.test(file) || file.startsWith("test/support/")) return [];
    const folder = posix.dirname(file);
    const own = within(folder);
    return own.length > 0 ? own : within(posix.dirname(folder));
  });

  const known = (names: readonly string[], others: readonly string[] = []): readonly string[] =>
    [...new Set(names)].filter((name) => tests.has(name) && !others.includes(name));
  const nearest = known(near);
  const repository = known(repositoryTests.map(inTest), nearest);
  return { nearest, repository, folders: known(around, [...nearest, ...repository]) };
}

/** The tests that fit into so many seconds of work, the shortest first, and those that do not. */
export function withinSeconds(
  tests: readonly string[],
  secondsOf: (test: string) => number,
  seconds: number,
): { readonly taken: readonly string[]; readonly left: readonly string[] } {
  let sum = 0;
  const taken = tests
    .toSorted((a, b) => secondsOf(a) - secondsOf(b))
    .filter((test) => {
      sum += secondsOf(test);
      return sum <= seconds;
    });
  return { taken, left: tests.filter((test) => !taken.includes(test)) };
}
