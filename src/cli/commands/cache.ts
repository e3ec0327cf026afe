/**
 * `tilewright cache`: the compiled kernels that are kept on disk.
 *
 *   $ tilewright cache list
 *   kernel   target   code      last used
 *   axpy     sm_90a   12.4 KiB  2025-06-01 12:30:00
 *   1 kernel, 13.1 KiB of 1 GiB in ~/.cache/tilewright
 */
import { cacheEntries } from "../../cuda/cache/kernel-cache.ts";
import { cacheSettings } from "../../cuda/cache/settings.ts";
import type { CacheSettings } from "../../cuda/cache/settings.ts";
import { FileStore } from "../../cuda/cache/store.ts";
import type { CacheAction } from "../options.ts";
import { formatBytes, formatTable } from "../output.ts";
import type { Output } from "../output.ts";

export async function cacheCommand(
  action: CacheAction,
  output: Output,
  settings: CacheSettings = cacheSettings(),
): Promise<number> {
  const { folder } = settings;
  if (folder === undefined) {
    output.line("the cache is off: TILEWRIGHT_CACHE says so");
    output.document({ folder: null });
    return 0;
  }
  actions[action]({ ...settings, folder }, output);
  return 0;
}

type Action = (settings: CacheSettings & { readonly folder: string }, output: Output) => void;

const actions: { readonly [A in CacheAction]: Action } = {
  path: ({ folder }, output) => {
    output.line(folder);
    output.document({ folder });
  },

  clear: ({ folder, limitBytes }, output) => {
    const removed = new FileStore(folder, limitBytes).clear();
    output.line(`removed ${counted(removed, "file")} from ${folder}`);
    output.document({ folder, removed });
  },

  list: ({ folder, limitBytes }, output) => {
    const { kernels, bytes } = cacheEntries(new FileStore(folder, limitBytes));
    const rows = kernels.map(({ name, target, codeBytes, used }) => [
      name,
      target,
      formatBytes(codeBytes),
      used.toISOString().slice(0, 19).replace("T", " "),
    ]);
    if (rows.length > 0)
      for (const line of formatTable([["kernel", "target", "code", "last used"], ...rows]))
        output.line(line);
    const limit = `${formatBytes(bytes)} of ${formatBytes(limitBytes)}`;
    output.line(`${counted(kernels.length, "kernel")}, ${limit} in ${folder}`);
    output.document({ folder, bytes, limitBytes, kernels });
  },
};

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
