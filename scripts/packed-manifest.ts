/** The manifest as npm packs it: without what only this repository's own scripts read. */
import manifest from "../package.json" with { type: "json" };

export function packedManifest(): string {
  const { scripts: _scripts, devDependencies: _tools, ...packed } = manifest;
  return `${JSON.stringify(packed, undefined, 2)}\n`;
}
