/** What this package's source was built to, for files that name the source: its own tests and benchmarks do, and nobody else has it. */
const ownSource = new URL("../../src/", import.meta.url).href;
const ownBuild = new URL("../", import.meta.url).href;

/** The module that was built from a file of this package's source; undefined for every other file. */
export function builtFrom(url: string): string | undefined {
  if (!url.startsWith(ownSource) || !url.endsWith(".ts")) return undefined;
  return url.replace(ownSource, ownBuild).replace(/ts$/, "js");
}
