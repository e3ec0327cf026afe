/**
 * What a thread of the host can be asked to do. Each message says which task it is of, and the task's code is loaded when its first message
 * comes: a thread of the CPU device needs nothing of the emulator.
 */
import type { Job } from "../../emulator/host-workers/job.ts";
import type { ModuleTask } from "../../workers/port.ts";
import type { RangeTask } from "../../cpu/pool/control.ts";

export type Task = Job | RangeTask | ModuleTask;

type Handlers = {
  readonly [T in Task["task"]]: () => Promise<
    (task: Extract<Task, { readonly task: T }>) => unknown
  >;
};

const handlers: Handlers = {
  emulation: async () => {
    const { Worksite } = await import("../../emulator/host-workers/work.ts");
    const site = new Worksite();
    return (job) => site.do(job);
  },
  ranges: async () => {
    const { serveRanges } = await import("../../cpu/pool/serve.ts");
    return serveRanges;
  },
  module: async () => {
    const { serveModule } = await import("./modules.ts");
    return serveModule;
  },
};

const loaded = new Map<Task["task"], Promise<(task: never) => unknown>>();

/** Does what a message asks for; gives the answer. */
export async function doTask(task: Task): Promise<unknown> {
  const handler = loaded.get(task.task) ?? handlers[task.task]();
  loaded.set(task.task, handler);
  return (await handler)(task as never);
}
