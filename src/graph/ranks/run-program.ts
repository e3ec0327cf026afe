/**
 * A program over whole arrays on ranks: its arrays are cut by its shardings, each rank runs its part, and what they compute is put together
 * again.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { DeviceName } from "../../runtime/open-options.ts";
import { assembled, cut } from "../evaluate/shards.ts";
import type { Tensor } from "../evaluate/value.ts";
import { isTensor } from "../ops/index.ts";
import type { GraphModule, TensorSharding } from "../ops/index.ts";
import type { MatmulPrecision } from "../ops/matmul-precision.ts";
import { functionOf } from "../plan/planned-function.ts";
import { printGraph } from "../text/index.ts";
import { receivedTensor, sentTensor } from "./link.ts";
import { localize } from "./localize.ts";
import { RankTeam } from "./team.ts";
import type { RankThreads } from "./team.ts";

export interface RanksSettings {
  readonly ranks: number;
  readonly device: DeviceName;
  readonly matmulPrecision: MatmulPrecision;
  /** Milliseconds that a call waits for the other ranks. */
  readonly timeout?: number | undefined;
  readonly threads?: RankThreads | undefined;
}

/** The results of a function on whole inputs. */
export async function runOnRanks(
  module: GraphModule,
  name: string,
  inputs: readonly Tensor[],
  { ranks: size, device, matmulPrecision, timeout, threads }: RanksSettings,
): Promise<readonly Tensor[]> {
  const local = localize(module, name);
  requireRanks(name, local.ranks, size);
  const parts = inputs.map((tensor, i) => {
    const sharding = local.inputs[i];
    return sharding === undefined ? undefined : byRank(cut(tensor, sharding), sharding);
  });
  const team = await RankTeam.open({ size, device, timeout, threads });
  try {
    await team.all({
      kind: "load",
      program: 0,
      text: printGraph(local.module, { locations: true }),
      file: `${name}.mlir`,
      name,
      donated: [],
      matmulPrecision,
    });
    const results = functionOf(module, name).body.results.filter(({ type }) => isTensor(type));
    const outputs = results.map((_, i) => i);
    await team.each((rank) => ({
      kind: "run",
      program: 0,
      inputs: inputs.map((whole, i) => sentTensor(parts[i]?.get(rank) ?? whole)),
      outputs,
      donated: [],
    }));
    const whole: Tensor[] = [];
    for (const [i, { type }] of results.entries()) {
      const answers = await team.all({ kind: "read", array: i });
      const tensors = answers.flatMap((answer) =>
        answer.kind === "tensor" ? [receivedTensor(answer.value)] : [],
      );
      const sharding = local.outputs[i];
      const [first] = tensors;
      if (first === undefined || !isTensor(type)) throw new Error("every rank has a result");
      whole.push(
        sharding === undefined
          ? first
          : assembled(
              sharding.mesh.ids.flatMap((id) => tensors.slice(id, id + 1)),
              type.shape,
              sharding,
            ),
      );
    }
    return whole;
  } finally {
    await team.close();
  }
}

/** Parts by the places of the mesh, by rank. */
export function byRank<T>(parts: readonly T[], { mesh }: TensorSharding): ReadonlyMap<number, T> {
  return new Map(
    mesh.ids.flatMap((id, place) => parts.slice(place, place + 1).map((part) => [id, part])),
  );
}

function requireRanks(name: string, wanted: number, found: number): void {
  if (wanted === found) return;
  throw new TilewrightError({
    code: "TW9706",
    message: `@${name} is a program for ${wanted} ranks`,
    expected: `${wanted} ranks`,
    found: `${found}`,
  });
}
