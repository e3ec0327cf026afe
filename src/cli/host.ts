/** What runs the command: Node.js, or a runtime that stands in for one and says which version it stands for. */

export interface Host {
  readonly name: "Node.js" | "Bun" | "Deno";
  /** Its own version, as it writes it. */
  readonly version: string;
  /** The version of Node.js whose modules it has. */
  readonly nodeVersion: string;
}

interface HostProcess {
  readonly version: string;
  readonly versions: { readonly [part: string]: string | undefined };
}

/** The runtime of a process: others name themselves beside Node in its versions. */
export function hostOf({ version, versions }: HostProcess): Host {
  const { bun, deno } = versions;
  if (bun !== undefined) return { name: "Bun", version: bun, nodeVersion: version };
  if (deno !== undefined) return { name: "Deno", version: deno, nodeVersion: version };
  return { name: "Node.js", version, nodeVersion: version };
}
