/** Messages for modules that nobody here knows: they are loaded by the addresses that come with them. */
import type { ModuleTask } from "../../workers/port.ts";

/** Such a module. */
interface Serving {
  readonly serve: (message: unknown) => unknown;
}

const loaded = new Map<string, Promise<Serving>>();

export async function serveModule({ address, message }: ModuleTask): Promise<unknown> {
  const serving = loaded.get(address) ?? (import(address) as Promise<Serving>);
  loaded.set(address, serving);
  return (await serving).serve(message);
}
