/**
 * Runs recorded programs on the ranks of a mesh. A program is made once for each way in which its arguments lie there; what it computes stays
 * with the ranks, under a number, until it is read.
 */
import { RankArray } from "../arrays/rank-runner.ts";
import type { RankRunner } from "../arrays/rank-runner.ts";
import { assembled, cut } from "../graph/evaluate/shards.ts";
import type { Tensor } from "../graph/evaluate/index.ts";
import { dialectAttribute } from "../graph/ops/attribute.ts";
import type { AttributeMap } from "../graph/ops/attribute.ts";
import type { MatmulPrecision } from "../graph/ops/matmul-precision.ts";
import { moduleOf } from "../graph/ops/node.ts";
import type { GraphModule, GraphRegion, GraphValue } from "../graph/ops/node.ts";
import {
  alongAxes,
  isWhole,
  readAxisNames,
  readShardings,
  shardingText,
} from "../graph/ops/sharding.ts";
import type { TensorSharding } from "../graph/ops/sharding.ts";
import { usesOf } from "../graph/lower/groups.ts";
import { isTensor } from "../graph/ops/types.ts";
import { derivativesPass } from "../graph/passes/derivatives.ts";
import { receivedTensor, sentTensor } from "../graph/ranks/link.ts";
import { localize } from "../graph/ranks/localize.ts";
import type { LocalProgram } from "../graph/ranks/localize.ts";
import { byRank } from "../graph/ranks/run-program.ts";
import type { RankTeam } from "../graph/ranks/team.ts";
import { printGraph } from "../graph/text/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";

interface Loaded {
  readonly program: number;
  readonly local: LocalProgram;
}

/** Numbers of programs and arrays, equal in all processes that do the same. */
class Numbers {
  programs = 0;
  arrays = 0;
}

const numbersOfTeams = new WeakMap<RankTeam, Numbers>();

/** An array of ranks: each has a part of it, or all of it. */
class HeldByRanks extends RankArray {
  readonly #team: RankTeam;
  readonly #number: number;
  readonly #shape: readonly number[];
  readonly sharding: TensorSharding | undefined;

  constructor(
    team: RankTeam,
    number: number,
    shape: readonly number[],
    sharding: TensorSharding | undefined,
  ) {
    super();
    this.#team = team;
    this.#number = number;
    this.#shape = shape;
    this.sharding = sharding;
  }

  isOf(team: RankTeam): boolean {
    return team === this.#team;
  }

  get number(): number {
    return this.#number;
  }

  async read(): Promise<Tensor> {
    const { sharding } = this;
    const team = this.#team;
    const one = async (rank: number): Promise<Tensor> => {
      const answer = await team.ask(rank, { kind: "read", array: this.#number });
      if (answer.kind !== "tensor") throw new Error("a rank answers with an array");
      return receivedTensor(answer.value);
    };
    const [first = 0] = team.ranks;
    if (sharding === undefined) return one(first);
    if (team.ranks.length < team.size)
      throw new TilewrightError({
        code: "TW9710",
        message: "an array is cut over ranks of other processes, and read in one",
        expected: "an array that this process has whole",
        found: shardingText(sharding),
      });
    const parts = await Promise.all(sharding.mesh.ids.map(one));
    return assembled(parts, this.#shape, sharding);
  }

  dispose(): void {
    void this.#team.all({ kind: "drop", arrays: [this.#number] }).catch(() => undefined);
  }
}

export class MeshRunner implements RankRunner {
  readonly #open: () => Promise<RankTeam>;
  readonly #programs = new WeakMap<GraphRegion, Map<string, Promise<Loaded>>>();

  constructor(open: () => Promise<RankTeam>) {
    this.#open = open;
  }

  async run(
    graph: GraphRegion,
    inputs: readonly (Tensor | RankArray)[],
    { matmulPrecision }: { readonly matmulPrecision: MatmulPrecision },
  ): Promise<readonly RankArray[]> {
    const team = await this.#open();
    const numbers = numbersOfTeams.get(team) ?? new Numbers();
    numbersOfTeams.set(team, numbers);
    const given = await Promise.all(
      inputs.map(async (input) =>
        input instanceof RankArray && !(input instanceof HeldByRanks && input.isOf(team))
          ? input.read()
          : input,
      ),
    );
    const shardings = given.map((input, i) =>
      input instanceof HeldByRanks ? input.sharding : wantedOf(graph, graph.parameters[i]),
    );
    const { program, local } = await this.#loaded(team, numbers, graph, shardings, matmulPrecision);
    const parts = given.map((input, i) => {
      const sharding = local.inputs[i];
      if (input instanceof RankArray || sharding === undefined) return undefined;
      return byRank(cut(input, sharding), sharding);
    });
    const outputs = graph.results.map(() => numbers.arrays++);
    await team.each((rank) => ({
      kind: "run",
      program,
      inputs: given.map((input, i) => {
        if (input instanceof HeldByRanks) return input.number;
        if (input instanceof RankArray) throw new Error("arrays of other ranks are read first");
        return sentTensor(parts[i]?.get(rank) ?? input);
      }),
      outputs,
      donated: [],
    }));
    return outputs.map((number, i) => {
      const type = graph.results[i]?.type;
      const shape = type !== undefined && isTensor(type) ? type.shape : [];
      return new HeldByRanks(team, number, shape, local.outputs[i]);
    });
  }

  #loaded(
    team: RankTeam,
    numbers: Numbers,
    graph: GraphRegion,
    shardings: readonly (TensorSharding | undefined)[],
    matmulPrecision: MatmulPrecision,
  ): Promise<Loaded> {
    const all = this.#programs.get(graph) ?? new Map<string, Promise<Loaded>>();
    this.#programs.set(graph, all);
    const key = `${matmulPrecision} ${shardings.map((each) => each && shardingText(each)).join()}`;
    const known = all.get(key);
    if (known !== undefined) return known;
    const program = numbers.programs++;
    const made = load(team, program, withShardings(graph, shardings), matmulPrecision);
    all.set(key, made);
    made.catch(() => all.delete(key));
    return made;
  }
}

async function load(
  team: RankTeam,
  program: number,
  module: GraphModule,
  matmulPrecision: MatmulPrecision,
): Promise<Loaded> {
  const local = localize(module, "main");
  if (local.ranks !== team.size)
    throw new TilewrightError({
      code: "TW9706",
      message: `a mesh of ${local.ranks} ranks is used where there are ${team.size}`,
      expected: `a mesh of ${team.size}`,
      found: `${local.ranks}`,
    });
  const text = printGraph(derivativesPass.run(local.module), { locations: true });
  const settings = { file: "program.mlir", name: "main", donated: [], matmulPrecision } as const;
  await team.all({ kind: "load", program, text, ...settings });
  return { program, local };
}

/** The module of a graph whose arguments lie as they do. */
function withShardings(
  graph: GraphRegion,
  shardings: readonly (TensorSharding | undefined)[],
): GraphModule {
  const module = moduleOf(graph);
  const main = module.functions.get("main");
  if (main === undefined) throw new Error("a graph has a function");
  const parameterAttributes = shardings.map(
    (each): AttributeMap =>
      new Map(
        each === undefined
          ? []
          : [["sdy.sharding", dialectAttribute("sdy.sharding", shardingText(each))]],
      ),
  );
  return { ...module, functions: new Map([["main", { ...main, parameterAttributes }]]) };
}

/** How the bodies that take an argument want it, where they agree: then nothing but its parts is sent. */
function wantedOf(graph: GraphRegion, value: GraphValue | undefined): TensorSharding | undefined {
  if (value === undefined || graph.results.includes(value)) return undefined;
  const found = new Map<string, TensorSharding>();
  for (const op of graph.ops) {
    if (!usesOf(op).includes(value)) continue;
    if (op.kind !== "sdy.manual_computation") return undefined;
    const axes = readAxisNames(op.attributes.manual_axes);
    const shardings = readShardings(op.attributes.in_shardings, new Map(), op.location);
    for (const [i, operand] of op.operands.tensors.entries()) {
      const sharding = shardings[i];
      if (operand !== value || sharding === undefined) continue;
      const own = alongAxes(sharding, axes);
      found.set(shardingText(own), own);
    }
  }
  const [only] = found.values();
  return found.size !== 1 || only === undefined || isWhole(only) ? undefined : only;
}
