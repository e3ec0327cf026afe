/**
 * Kernels that were compiled ahead of time, as files: the code, and its manifest under the same name with
 * .json after it, so that PTX and a cubin of one kernel lie side by side.
 *
 *   axpy.sm_90a.ptx        axpy.sm_90a.ptx.json       { "code": { "form": "ptx", … }, … }
 *   axpy.sm_90a.cubin      axpy.sm_90a.cubin.json     { "code": { "form": "cubin", … }, … }
 */
import { readFile } from "node:fs/promises";
import type { CompiledCode } from "../ptx/compiled-kernel.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";

export interface CompiledFiles {
  readonly manifest: unknown;
  readonly code: CompiledCode;
}

/** The manifest at `path` and its code. */
export async function readCompiled(path: string): Promise<CompiledFiles> {
  if (typeof path !== "string" || !path.endsWith(".json")) throw notAManifest(path);
  const manifest = await attempt(path, async (): Promise<unknown> =>
    JSON.parse(await readFile(path, "utf8")),
  );
  const form = formOf(manifest);
  const codePath = path.replace(/\.json$/, "");
  const code = await attempt<CompiledCode>(codePath, () =>
    form === "ptx" ? readFile(codePath, "utf8") : readFile(codePath),
  );
  return { manifest, code };
}

function notAManifest(path: unknown): TilewrightError {
  return new TilewrightError({
    code: "TW4022",
    message: `${optionText(path)} is not the name of a manifest`,
    expected: "a name that ends in .json, such as axpy.sm_90a.ptx.json",
    found: optionText(path),
  });
}

/** What the manifest says of its code; one that says nothing is reported when it is looked at. */
function formOf(manifest: unknown): string {
  const { code } = (manifest ?? {}) as { readonly code?: { readonly form?: unknown } };
  return code?.form === "cubin" ? "cubin" : "ptx";
}

async function attempt<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw new TilewrightError({
      code: "TW4022",
      message: `${path} cannot be read`,
      expected: "a file that the process may read",
      found: error instanceof Error ? error.message : String(error),
    });
  }
}
