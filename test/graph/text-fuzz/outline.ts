/** A program as plain data, without names, numbers of values and places: what parsing what was printed must give back. */
import type {
  AnyGraphOp,
  GraphModule,
  GraphRegion,
  GraphValue,
} from "../../../src/graph/ops/node.ts";
import { operandsOf, regionsOf } from "../../../src/graph/ops/traverse.ts";
import { typeText } from "../../../src/graph/ops/types.ts";

function plain(_: string, value: unknown): unknown {
  if (value instanceof Map) return [...value];
  if (typeof value === "bigint") return `${value}n`;
  if (Object.is(value, -0)) return "-0";
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (ArrayBuffer.isView(value))
    return Array.from(new Uint8Array(value.buffer, value.byteOffset, value.byteLength)).join();
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)),
  );
}

class Outliner {
  readonly #names = new Map<GraphValue, number>();

  #name(value: GraphValue): number {
    const known = this.#names.get(value) ?? this.#names.size;
    this.#names.set(value, known);
    return known;
  }

  region({ parameters, ops, results }: GraphRegion): unknown {
    return {
      parameters: parameters.map((each) => [this.#name(each), typeText(each.type)]),
      ops: ops.map((op) => this.#op(op)),
      results: results.map((each) => this.#name(each)),
    };
  }

  #op(op: AnyGraphOp): unknown {
    return {
      kind: op.kind,
      operands: operandsOf(op).map((each) => this.#name(each)),
      attributes: op.attributes,
      extra: op.extra,
      regions: regionsOf(op).map((each) => this.region(each)),
      results: op.results.map((each) => [this.#name(each), typeText(each.type)]),
    };
  }
}

export function outlineOf({ name, functions, attributes, foreign }: GraphModule): string {
  const bodies = [...functions.values()].map((each) => ({
    ...each,
    location: undefined,
    body: new Outliner().region(each.body),
  }));
  return JSON.stringify({ name, attributes, foreign, bodies }, plain);
}
