/**
 * `sdy.manual_computation`: its body runs on every process of the mesh, on the parts of whole operands, and its results are put together.
 * Axes that are not manual are whole: every process along them computes the same.
 */
import { alongAxes, isTensor, meshesOf, readAxisNames, readShardings } from "../ops/index.ts";
import type { GraphOp } from "../ops/index.ts";
import { unsupported } from "./frame.ts";
import type { Frame, Session, Steps } from "./frame.ts";
import { runProcesses } from "./processes.ts";
import { assembled, cut } from "./shards.ts";
import type { Datum, Tensor } from "./value.ts";

export function* manualComputation(
  op: GraphOp<"sdy.manual_computation">,
  frame: Frame,
): Steps<readonly Datum[]> {
  const { session } = frame;
  if (session.partitions > 1) throw unsupported(op, "it stands within another one");
  const meshes = meshesOf(session.module);
  const axes = readAxisNames(op.attributes.manual_axes);
  const along = (attribute: typeof op.attributes.in_shardings) =>
    readShardings(attribute, meshes, op.location).map((each) => alongAxes(each, axes));
  const inputs = along(op.attributes.in_shardings);
  const outputs = along(op.attributes.out_shardings);
  const mesh = (inputs[0] ?? outputs[0])?.mesh;
  if (mesh === undefined) return [];
  const parts = frame.tensors(op.operands.tensors).map((tensor, i) => {
    const sharding = inputs[i];
    return sharding === undefined ? [] : cut(tensor, sharding, op.location);
  });
  const programs = mesh.ids.map((partition, place) => {
    const own: Session = {
      ...session,
      place: { replica: 0, partition },
      replicas: 1,
      partitions: mesh.ids.length,
    };
    const given = parts.flatMap((each) => each.slice(place, place + 1));
    return session.runRegion(op.regions.body, given, frame.fork(own));
  });
  // Processes are found by their numbers.
  const ordered = programs.map((_, id) => programs[mesh.ids.indexOf(id)] ?? programs[id]);
  const results = yield* runProcesses(
    ordered.filter((each) => each !== undefined),
    () => undefined,
  );
  return op.results.map(({ type }, i) => {
    const sharding = outputs[i];
    if (sharding === undefined || !isTensor(type)) throw unsupported(op, "a result is no array");
    const local = mesh.ids.flatMap((id) => (results[id] ?? []).slice(i, i + 1));
    const tensors = local.filter((datum): datum is Tensor => datum.kind === "tensor");
    return assembled(tensors, type.shape, sharding);
  });
}
