/**
 * Kernels that were compiled ahead of time, as files: a manifest, and the code beside it under the same
 * name with the ending that the manifest tells.
 *
 *   axpy.sm_90a.json     { "code": { "form": "ptx", … }, … }
 *   axpy.sm_90a.ptx
 */
import { readFile } from "node:fs/promises";
import type { CompiledCode } from "../ptx/compiled-kernel.ts";
import { TilewrightError } from "../support/diagnostics.ts";

export interface CompiledFiles {
  readonly manifest: unknown;
  readonly code: CompiledCode;
}

/** The manifest at `path` and its code. */
export async function readCompiled(path: string): Promise<CompiledFiles> {
  const manifest = await attempt(path, async (): Promise<unknown> =>
    JSON.parse(await readFile(path, "utf8")),
  );
  const form = formOf(manifest);
  const codePath = `${path.replace(/\.json$/, "")}.${form}`;
  const code = await attempt<CompiledCode>(codePath, () =>
    form === "ptx" ? readFile(codePath, "utf8") : readFile(codePath),
  );
  return { manifest, code };
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
      found: error instanceof Error ? error.message : String(error),
    });
  }
}
