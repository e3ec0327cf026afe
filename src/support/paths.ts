/**
 * Paths in what is written for other machines: relative to the working directory, so that the same source
 * gives the same files wherever it lies. What comes from a package begins at its node_modules.
 *
 *   /srv/ada/desk/kernels/axpy.ts            from /srv/ada/desk   kernels/axpy.ts
 *   /srv/ada/shared/axpy.ts                                       ../shared/axpy.ts
 *   /srv/ada/desk/node_modules/lib/gemm.js                        node_modules/lib/gemm.js
 *   https://example.org/axpy.js, <text>                           as they are
 */

/** The working directory; undefined in a browser, which has none, and where it is gone or the host does not tell. */
export function workingDirectory(): string | undefined {
  const { process } = globalThis as { readonly process?: { readonly cwd?: () => string } };
  try {
    return process?.cwd?.();
  } catch {
    return undefined;
  }
}

/** A path as seen from `folder`, with slashes on every system. */
export function relativePath(given: string, folder: string | undefined): string {
  const path = isAbsolute(given) ? given.replaceAll("\\", "/") : given;
  const inPackage = path.lastIndexOf("/node_modules/");
  if (inPackage >= 0) return path.slice(inPackage + 1);
  if (folder === undefined || !isAbsolute(path)) return path;
  const steps = partsOf(path);
  const from = partsOf(folder);
  let common = 0;
  while (common < from.length && common < steps.length - 1 && steps[common] === from[common])
    common += 1;
  // Another drive, or nothing in common but the root.
  if (common < 2) return path;
  return [...from.slice(common).map(() => ".."), ...steps.slice(common)].join("/");
}

function isAbsolute(path: string): boolean {
  return /^(?:\/|[A-Za-z]:[\\/])/.test(path);
}

function partsOf(path: string): readonly string[] {
  return path.replaceAll("\\", "/").replace(/\/$/, "").split("/");
}
