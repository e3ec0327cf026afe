/**
 * Work that Ctrl-C ends in order: what was found until then is kept, and the command says so before it ends with the status that
 * shells expect of it. A second Ctrl-C ends the process at once, as without this.
 */

/** 128 and the number of SIGINT. */
export const interruptedStatus = 130;

/** What the work gives, which stops where its signal says so; undefined where an interrupt stopped it. */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const controller = new AbortController();
  const { signal } = controller;
  const interrupt = (): void => {
    controller.abort();
  };
  process.once("SIGINT", interrupt);
  try {
    return await work(signal);
  } catch (error) {
    if (signal.aborted && error === signal.reason) return undefined;
    throw error;
  } finally {
    process.removeListener("SIGINT", interrupt);
  }
}
