/** interpreter.run_parallel: a grid of functions as processes, rows replicas, columns partitions. */
import type { GraphOp } from "../ops/index.ts";
import type { Datum } from "./value.ts";
import { atOnce, unsupported } from "./frame.ts";
import type { Frame, Session, Steps } from "./frame.ts";
import { runProcesses } from "./processes.ts";

export function* runGrid(
  op: GraphOp<"interpreter.run_parallel">,
  frame: Frame,
): Steps<readonly Datum[]> {
  const { session } = frame;
  const { programs, infeed: queues = [] } = op.attributes;
  const partitions = programs[0]?.length ?? 0;
  let inputs = frame.data(op.operands.inputs);
  const processes = programs.flatMap((row, replica) =>
    row.map((name, partition) => {
      const own: Session = {
        ...session,
        place: { replica, partition },
        replicas: programs.length,
        partitions,
      };
      const count = session.module.functions.get(name)?.body.parameters.length ?? 0;
      const taken = inputs.slice(0, count);
      inputs = inputs.slice(count);
      return session.runFunction(name, taken, own, op);
    }),
  );
  let next = 0;
  const infeed = (): readonly Datum[] | undefined => {
    const queue = queues[next++];
    if (queue === undefined) return undefined;
    const fed = atOnce(session.runFunction(queue, [], session, op));
    if (fed === undefined) throw unsupported(op, "a queue of the host cannot wait for processes");
    return fed.value;
  };
  return (yield* runProcesses(processes, infeed)).flat();
}
