/**
 * A program over whole arrays as the program of each of its ranks: bodies of `sdy.manual_computation` work on parts already, and what is
 * around them is computed by every rank for itself, on arrays that all have whole. Where one of these is cut otherwise than it has to be,
 * ranks exchange parts.
 *
 *   func @main(%x: tensor<8xf32> {sharded along d})     func @main(%x: tensor<1xf32>)
 *     sdy.manual_computation(%x) [{"d"}] {                all_reduce %x …
 *       all_reduce …                               ──▶
 *
 * An op outside on an array that is cut is refused: which part of its result a rank should have would have to be found out.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { GraphBuilder } from "../infer/builder.ts";
import {
  alongAxes,
  cutsOf,
  graphRegion,
  graphValue,
  groupsAlong,
  inlineRegion,
  isTensor,
  isWhole,
  literal,
  meshesOf,
  partAt,
  partShape,
  readAxisNames,
  readShardings,
  replaceOperands,
  sameSharding,
  shardingAttribute,
  tensorType,
  textNameOf,
} from "../ops/index.ts";
import type {
  AnyGraphOp,
  AttributeMap,
  AxisPart,
  GraphModule,
  GraphOp,
  GraphValue,
  ProcessMesh,
  TensorSharding,
} from "../ops/index.ts";
import { usesOf } from "../lower/groups.ts";
import { inlinePass } from "../passes/inline.ts";
import { functionOf, only } from "../plan/planned-function.ts";

/** The program of one rank, and how whole arrays are cut for its arguments and put together of its results. */
export interface LocalProgram {
  readonly module: GraphModule;
  /** Undefined for arrays that every rank has whole. */
  readonly inputs: readonly (TensorSharding | undefined)[];
  readonly outputs: readonly (TensorSharding | undefined)[];
  readonly ranks: number;
}

/** What a rank holds of a value of the program. */
interface Held {
  readonly value: GraphValue;
  /** Undefined where it has all of it. */
  readonly sharding: TensorSharding | undefined;
}

export function localize(module: GraphModule, name: string): LocalProgram {
  const meshes = meshesOf(module);
  const inlined = inlinePass.run(only(module, name));
  const main = functionOf(inlined, name);
  const { body, location } = main;
  const localizer = new Localizer(meshes);
  const inputs = body.parameters.map((_, i) =>
    cutOnly(shardingAttribute(main.parameterAttributes[i], meshes, location)),
  );
  const parameters = body.parameters.map((value, i) =>
    localizer.parameter(value, inputs[i], location),
  );
  for (const op of body.ops) localizer.op(op);
  const wanted = body.results.map((_, i) =>
    shardingAttribute(main.resultAttributes[i], meshes, location),
  );
  const held = body.results.map((value, i) => localizer.result(value, wanted[i], location));
  const region = graphRegion(
    parameters,
    localizer.builder.ops,
    held.map(({ value }) => value),
  );
  const ranks = ranksOf(module, [...meshes.values(), ...localizer.meshes]);
  const partitions = { kind: "integer", value: BigInt(ranks), type: "i32" } as const;
  const local = {
    ...main,
    body: region,
    parameterAttributes: withoutSharding(main.parameterAttributes),
    resultAttributes: withoutSharding(main.resultAttributes),
  };
  return {
    module: {
      ...inlined,
      functions: new Map([...inlined.functions, [name, local]]),
      attributes: new Map([...module.attributes, ["mhlo.num_partitions", partitions]]),
    },
    inputs,
    outputs: held.map(({ sharding }) => sharding),
    ranks,
  };
}

function withoutSharding(lists: readonly AttributeMap[]): readonly AttributeMap[] {
  return lists.map((each) => new Map([...each].filter(([key]) => key !== "sdy.sharding")));
}

function cutOnly(sharding: TensorSharding | undefined): TensorSharding | undefined {
  return sharding === undefined || isWhole(sharding) ? undefined : sharding;
}

function ranksOf({ attributes }: GraphModule, meshes: readonly ProcessMesh[]): number {
  const said = attributes.get("mhlo.num_partitions");
  const replicas = attributes.get("mhlo.num_replicas");
  const count = said?.kind === "integer" ? Number(said.value) : 1;
  const times = replicas?.kind === "integer" ? Number(replicas.value) : 1;
  return Math.max(count * times, ...meshes.map(({ ids }) => ids.length));
}

class Localizer {
  readonly builder = new GraphBuilder();
  readonly #meshes: ReadonlyMap<string, ProcessMesh>;
  readonly #held = new Map<GraphValue, Held>();
  /** Those that stand in shardings themselves. */
  readonly meshes: ProcessMesh[] = [];

  constructor(meshes: ReadonlyMap<string, ProcessMesh>) {
    this.#meshes = meshes;
  }

  parameter(
    value: GraphValue,
    sharding: TensorSharding | undefined,
    location: Location,
  ): GraphValue {
    const { type } = value;
    const local =
      sharding === undefined || !isTensor(type)
        ? graphValue(type)
        : graphValue(tensorType(type.element, partShape(type.shape, sharding, location)));
    this.#held.set(value, { value: local, sharding });
    return local;
  }

  op(op: AnyGraphOp): void {
    this.builder.origin = { name: op.name, location: op.location };
    if (op.kind === "sdy.manual_computation") {
      this.#manual(op);
      return;
    }
    if (op.kind === "sdy.sharding_constraint") {
      // It says how a value would best lie, and changes nothing of it.
      for (const value of op.results) this.#held.set(value, this.#of(op.operands.input));
      return;
    }
    for (const value of usesOf(op)) {
      const sharding = this.#held.get(value)?.sharding;
      if (sharding !== undefined) throw toBePropagated(op, sharding);
    }
    const operand = (value: GraphValue): GraphValue => this.#held.get(value)?.value ?? value;
    this.builder.append(replaceOperands(op, operand));
    for (const value of op.results) this.#held.set(value, { value, sharding: undefined });
  }

  result(value: GraphValue, wanted: TensorSharding | undefined, location: Location): Held {
    const held = this.#of(value);
    if (wanted === undefined) return held;
    this.builder.origin = { name: "", location };
    const target = cutOnly(wanted);
    return { value: this.#resharded(held, target, location), sharding: target };
  }

  #of(value: GraphValue): Held {
    return this.#held.get(value) ?? { value, sharding: undefined };
  }

  #manual(op: GraphOp<"sdy.manual_computation">): void {
    const axes = readAxisNames(op.attributes.manual_axes);
    const read = (attribute: typeof op.attributes.in_shardings): readonly TensorSharding[] =>
      readShardings(attribute, this.#meshes, op.location).map((each) => alongAxes(each, axes));
    const [inputs, outputs] = [read(op.attributes.in_shardings), read(op.attributes.out_shardings)];
    this.meshes.push(...[...inputs, ...outputs].map(({ mesh }) => mesh));
    const given = op.operands.tensors.map((value, i) =>
      this.#resharded(this.#of(value), cutOnly(inputs[i]), op.location),
    );
    const results = inlineRegion(this.builder, op.regions.body, given);
    for (const [i, value] of op.results.entries()) {
      const result = results[i];
      if (result !== undefined)
        this.#held.set(value, { value: result, sharding: cutOnly(outputs[i]) });
    }
  }

  /** A value cut in another way: what is cut otherwise is gathered, and then cut. */
  #resharded(
    { value, sharding: from }: Held,
    to: TensorSharding | undefined,
    location: Location,
  ): GraphValue {
    const { type } = value;
    if (!isTensor(type) || from === to) return value;
    if (from !== undefined && to !== undefined && sameSharding(from, to)) return value;
    let moved = value;
    const axes = type.shape.map((_, axis) => axis);
    const parts = (sharding: TensorSharding | undefined, axis: number): readonly AxisPart[] =>
      sharding?.dimensions[axis] ?? [];
    const sameMesh = from === undefined || to === undefined || sameMeshes(from.mesh, to.mesh);
    const stays = (axis: number): boolean =>
      sameMesh && JSON.stringify(parts(from, axis)) === JSON.stringify(parts(to, axis));
    for (const axis of axes)
      if (from !== undefined && !stays(axis) && cutsOf(parts(from, axis)) > 1)
        moved = this.#gathered(moved, axis, from.mesh, parts(from, axis));
    for (const axis of axes)
      if (to !== undefined && !stays(axis) && cutsOf(parts(to, axis)) > 1)
        moved = this.#cut(moved, axis, to.mesh, parts(to, axis), location);
    return moved;
  }

  #gathered(
    value: GraphValue,
    axis: number,
    mesh: ProcessMesh,
    parts: readonly AxisPart[],
  ): GraphValue {
    return this.builder.one(
      "stablehlo.all_gather",
      { operands: [value] },
      {
        all_gather_dim: axis,
        replica_groups: groupsAlong(mesh, parts),
        channel_handle: { handle: 1, type: 1 },
        use_global_device_ids: true,
      },
    );
  }

  /** The part of this rank, found by its number in a table. */
  #cut(
    value: GraphValue,
    axis: number,
    mesh: ProcessMesh,
    parts: readonly AxisPart[],
    location: Location,
  ): GraphValue {
    const { type } = value;
    if (!isTensor(type)) return value;
    const { builder } = this;
    const dimensions = type.shape.map((_, at) => (at === axis ? parts : []));
    const local = partShape(type.shape, { mesh, dimensions }, location);
    const extent = local[axis] ?? 0;
    const table = new Int32Array(mesh.ids.length);
    for (const [place, id] of mesh.ids.entries()) table[id] = extent * partAt(place, parts);
    const i32 = (values: Int32Array, shape: readonly number[]): GraphValue =>
      builder.one("stablehlo.constant", {}, { value: literal(tensorType("i32", shape), values) });
    const number = builder.one("stablehlo.partition_id", {}, {});
    const id = builder.one(
      "stablehlo.convert",
      { operand: number },
      {},
      { types: [tensorType("i32", [])] },
    );
    const row = builder.one(
      "stablehlo.dynamic_slice",
      { operand: i32(table, [table.length]), start_indices: [id] },
      { slice_sizes: [1] },
    );
    const start = builder.one(
      "stablehlo.reshape",
      { operand: row },
      {},
      { types: [tensorType("i32", [])] },
    );
    const zero = i32(Int32Array.of(0), []);
    return builder.one(
      "stablehlo.dynamic_slice",
      { operand: value, start_indices: local.map((_, at) => (at === axis ? start : zero)) },
      { slice_sizes: local },
    );
  }
}

function sameMeshes(left: ProcessMesh, right: ProcessMesh): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

function toBePropagated(op: AnyGraphOp, { dimensions }: TensorSharding): TilewrightError {
  const axes = [...new Set(dimensions.flat().map(({ axis }) => axis))].join(", ");
  return new TilewrightError({
    code: "TW9707",
    message: `${textNameOf(op)} works on an array that is cut along ${axes}, outside of sdy.manual_computation`,
    location: op.location,
    expected: "ops on cut arrays within sdy.manual_computation, until shardings are propagated",
    found: textNameOf(op),
  });
}
