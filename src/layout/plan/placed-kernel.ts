/**
 * The placed kernel: what the placement has found, said in the IR. Types of tiles end with their layouts,
 * operands that an op needs elsewhere are converted before it, and ways to copy and scratch are attributes and ops. Where
 * buffers lie is left to `allocate.ts`.
 *
 *   traced                              placed
 *   %3 = load %1 : tile<f32, [64]>      %3 = load %1 : tile<f32, [64], A>
 *   %5 = sort %3 : …                    %4 = alloc_scratch {bytes = 512, agents = 1} : …
 *                                       %5 = convert_layout %3 scratch(%4) : tile<f32, [64], B>
 *                                       %6 = sort %5 : tile<f32, [64], B>
 */
import { u8 } from "../../formats/dtype.ts";
import { changedOp, makeOp, nothing, regionOf } from "../../ir/make-op.ts";
import type { AnyOp, Kernel, Region, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { nextValueId } from "../../ir/rewrite/analysis.ts";
import { changedOperands, changedRegions } from "../../ir/traverse.ts";
import { visitEach } from "../../support/visit-each.ts";
import { isSpread, refType, withLayout } from "../../ir/types.ts";
import type { Type } from "../../ir/types.ts";
import type { Location } from "../../support/location.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { scratchBytes } from "../relayout/steps.ts";
import type { ScratchArea } from "./agents.ts";
import type { Placement } from "./place.ts";

/** The kernel as it was placed. */
export function placedKernel(placement: Placement): Kernel {
  return new Builder(placement).kernel();
}

class Builder {
  readonly #placement: Placement;
  readonly #values = new Map<Value, Value>();
  /** Scratch of each op that has some. */
  readonly #scratch = new Map<AnyOp, { readonly value: Value; readonly itself: boolean }>();
  #nextId: number;

  constructor(placement: Placement) {
    this.#placement = placement;
    this.#nextId = nextValueId(placement.kernel);
  }

  kernel(): Kernel {
    const { kernel, target } = this.#placement;
    const throughout = this.#areas((area) => !area.own && area.region === undefined, kernel);
    const { parameters, ops } = this.#region(kernel.body);
    const body = regionOf({ parameters, ops: Object.freeze([...throughout, ...ops]) });
    const placed = Object.freeze({ target });
    return Object.freeze({ ...kernel, body, placed });
  }

  readonly #region = ({ parameters, ops }: Region): Region => {
    const own = this.#defined(parameters);
    const placed: AnyOp[] = [];
    visitEach(ops, (op) => this.#addPlaced(op, placed));
    return regionOf({ parameters: own, ops: Object.freeze(placed) });
  };

  /** Adds the op, behind what comes before it. */
  #addPlaced(op: AnyOp, ops: AnyOp[]): void {
    const scratch = this.#areas(
      (area) => (area.own ? area.users.some((use) => use.op === op) : area.region === op),
      op,
    );
    const brought = op.kind === "warps" ? this.#brought(op) : undefined;
    const { conversions, operands } = brought ?? this.#converted(op);
    const regions = changedRegions(op, this.#region);
    brought?.outside.forEach((own, value) => this.#values.set(value, own));
    const results = this.#defined(op.results);
    const placed = changedOp(op, { operands, attributes: this.#attributes(op), regions, results });
    ops.push(...scratch, ...conversions, placed);
  }

  /** The op's operands where it needs them, and the conversions that bring them there. */
  #converted(op: AnyOp): {
    readonly conversions: readonly AnyOp[];
    readonly operands: AnyOp["operands"];
  } {
    const needed = this.#placement.needs.get(op);
    const scratch = this.#scratch.get(op);
    if (needed === undefined && scratch === undefined)
      return { conversions: nothing, operands: changedOperands(op, this.#use) };
    const needs = [...(needed ?? [])];
    const made = new Map<string, Value>();
    const conversions: AnyOp[] = [];
    const change = (value: Value): Value => {
      const position = needs.findIndex((need) => need.value === value);
      const [need] = position < 0 ? [] : needs.splice(position, 1);
      const own = this.#use(value);
      if (need === undefined || layoutText(own.type) === need.layout.text) return own;
      const key = `${own.id} ${need.layout.text}`;
      const known = made.get(key);
      if (known !== undefined) return known;
      const conversion = this.#conversion(op, value, need.layout);
      const [result = own] = conversion.results;
      conversions.push(conversion);
      made.set(key, result);
      return result;
    };
    const operands = changedOperands(op, change);
    if (needs.length > 0) throw new Error(`${op.kind} needs what is no operand of it`);
    if (scratch?.itself !== true) return { conversions, operands };
    return { conversions, operands: Object.freeze({ ...operands, scratch: scratch.value }) };
  }

  /** Tiles that warps read in a region of their own, converted before it; until it ends their names mean these, and not what they are outside. */
  #brought(op: AnyOp): {
    readonly conversions: readonly AnyOp[];
    readonly operands: AnyOp["operands"];
    readonly outside: ReadonlyMap<Value, Value>;
  } {
    const conversions: AnyOp[] = [];
    const outside = new Map<Value, Value>();
    for (const { value, layout } of this.#placement.needs.get(op) ?? nothing) {
      const own = this.#use(value);
      if (layoutText(own.type) === layout.text) continue;
      const conversion = this.#conversion(op, value, layout);
      conversions.push(conversion);
      outside.set(value, own);
      for (const result of conversion.results) this.#values.set(value, result);
    }
    return { conversions, operands: op.operands, outside };
  }

  #conversion(op: AnyOp, value: Value, layout: RegisterLayout): AnyOp {
    const source = this.#use(value);
    if (source.type.kind !== "tile") throw new Error("only tiles are converted");
    const [from, to] = [layoutText(source.type), layout.text];
    // Two values that go the same way need not go by the same plan: elements of few bits need no scratch where wider ones do.
    const conversion = this.#placement.conversions.find(
      (each) =>
        each.op === op &&
        each.value === value &&
        each.source.text === from &&
        each.target.text === to,
    );
    const moves = conversion !== undefined && scratchBytes(conversion.plan) > 0;
    const scratch = moves ? this.#scratch.get(op)?.value : undefined;
    return makeOp("convert_layout", {
      operands: { source, ...(scratch && { scratch }) },
      results: [this.#value(withLayout(source.type, to))],
      location: op.location,
    });
  }

  /** The ops that allocate scratch, before an op or at the start of the kernel. */
  #areas(
    belongs: (area: ScratchArea) => boolean,
    { location }: { readonly location: Location },
  ): readonly AnyOp[] {
    const { areas } = this.#placement;
    if (areas.length === 0) return nothing;
    return areas.filter(belongs).map(({ bytes, agents, users }) => {
      const largest = users.reduce((most, each) => (each.bytes > most.bytes ? each : most));
      const name = `scratch of ${opName(largest.op)}`;
      const value = this.#value(refType("smem", u8, [agents, bytes]));
      for (const { op, itself } of users) this.#scratch.set(op, { value, itself });
      const attributes = { bytes, agents, name };
      return makeOp("alloc_scratch", { attributes, results: [value], location });
    });
  }

  /** What the placement has decided of the op. */
  #attributes(op: AnyOp): AnyOp["attributes"] {
    const { copies, shared } = this.#placement;
    const [result] = op.results;
    const layout = result && shared.get(result)?.text;
    if (op.kind !== "copy_async" && layout === undefined) return op.attributes;
    const decided = {
      ...(op.kind === "copy_async" && { by: copies.get(op)?.method }),
      ...(layout !== undefined && { layout }),
    };
    return Object.freeze({ ...op.attributes, ...decided });
  }

  readonly #use = (value: Value): Value => this.#values.get(value) ?? value;

  /** The values with their layouts; the list itself where none has one. */
  #defined(values: readonly Value[]): readonly Value[] {
    const defined = values.map((value) => this.#define(value));
    return defined.every((value, index) => value === values[index])
      ? values
      : Object.freeze(defined);
  }

  /** The value with its layout, in place of the traced one. */
  #define(value: Value): Value {
    const layout = this.#placement.layouts.get(value);
    if (layout === undefined || !isSpread(value.type)) return value;
    const placed = Object.freeze({ id: value.id, type: withLayout(value.type, layout.text) });
    this.#values.set(value, placed);
    return placed;
  }

  #value<T extends Type>(type: T): Value<T> {
    return Object.freeze({ id: this.#nextId++, type });
  }
}

function layoutText(type: Type): string | undefined {
  return isSpread(type) ? type.layout : undefined;
}
