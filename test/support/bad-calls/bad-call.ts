/** How a bad call is written down: a function of the library, where it is called, and what its parameters take. */
import * as library from "tilewright";
import type { Parameter } from "./junk.ts";
import { inKernel } from "./surroundings.ts";
import type { Body } from "./surroundings.ts";

export interface BadCall {
  readonly name: string;
  /** The export that is called, where several entry points have one of its name, or where it is in a namespace. */
  readonly of?: unknown;
  readonly parameters: readonly Parameter[];
  readonly call: (...values: readonly unknown[]) => unknown;
}

/** A function of the library as a program without types sees it. */
export type Untyped = (...values: readonly unknown[]) => unknown;
export const untyped = library as unknown as { readonly [name: string]: Untyped };

export function method(owner: object, name: string): Untyped {
  const found = (owner as { readonly [name: string]: unknown })[name];
  if (typeof found !== "function") throw new Error(`there is no method ${name}`);
  const call = found as Untyped;
  return (...values) => call.apply(owner, [...values]);
}

/** A function of the host. */
export function host(name: string, ...parameters: readonly Parameter[]): BadCall {
  const call = untyped[name];
  if (call === undefined) throw new Error(`there is no export ${name}`);
  return { name, of: call, parameters, call };
}

/** A function of the language, called in a body. */
export function traced(name: string, ...parameters: readonly Parameter[]): BadCall {
  const call = untyped[name];
  if (call === undefined) throw new Error(`there is no export ${name}`);
  return {
    name,
    of: call,
    parameters,
    call: (...values) => {
      inKernel((body) => call(...values.map((value) => fromBody(value, body))));
    },
  };
}

/** Values that exist in a body alone are named outside of it. */
export class InBody {
  readonly pick: (body: Body) => unknown;
  constructor(pick: (body: Body) => unknown) {
    this.pick = pick;
  }
}

export const given = (pick: (body: Body) => unknown) => (): unknown => new InBody(pick);

export function fromBody(value: unknown, body: Body): unknown {
  if (value instanceof InBody) return value.pick(body);
  return Array.isArray(value) ? value.map((each: unknown) => fromBody(each, body)) : value;
}

/** A method of something in a body. */
export function member(
  owner: keyof Body,
  name: string,
  ...parameters: readonly Parameter[]
): BadCall {
  return {
    name: `body ${owner}.${name}`,
    parameters,
    call: (...values) => {
      inKernel((body) =>
        method(body[owner], name)(...values.map((value) => fromBody(value, body))),
      );
    },
  };
}
