/** A PTX module as its user sees it: the entries that can be launched, and what each takes. */
import type { PtxFunction, PtxModule, PtxType, StateSpace, Variable } from "../../ptx/module.ts";
import { madeBy, thisCopy } from "../../support/duplicate-library.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { targets } from "../../targets/target.ts";
import type { Target } from "../../targets/target.ts";
import { variableBytes } from "../program/symbols.ts";

/** A parameter of a kernel. */
export interface EntryParameter {
  /** The parameter's name. */
  readonly name: string;
  /** As written: "u64", "f32", "b8". */
  readonly type: PtxType;
  /** Of an array such as `.b8 map[128]`. */
  readonly count: number | undefined;
  /** Elements of a vector, such as those of `.v2`. */
  readonly vector: 2 | 4 | undefined;
  /** The bytes that it takes. */
  readonly bytes: number;
  /** Of a parameter that says `.ptr`: the space that it points into, or "generic". */
  readonly pointer: StateSpace | "generic" | undefined;
}

/** A kernel of a module. */
export interface Entry {
  /** The kernel's name. */
  readonly name: string;
  /** The kernel's parameters, in order. */
  readonly parameters: readonly EntryParameter[];
  /** The lanes of a block that it requires, with `.reqntid`. */
  readonly requiredThreads: readonly number[] | undefined;
  /** The lanes that a block may have, with `.maxntid`. */
  readonly maxThreads: readonly number[] | undefined;
  /** The blocks of a cluster that it requires, with `.reqnctapercluster`. */
  readonly requiredCluster: number | undefined;
}

/** PTX that was loaded: its kernels and variables. */
export class EmulatedModule {
  /** The kernels. */
  readonly entries: readonly Entry[];
  /** As written after `.target`: "sm_90a". */
  readonly target: string;
  /** As written after `.version`: "8.7". */
  readonly version: string;
  /** @internal */
  readonly module: PtxModule;

  /** @internal */
  constructor(module: PtxModule) {
    this.module = module;
    this.target = module.target;
    this.version = module.version;
    this.entries = module.declarations.flatMap((each) =>
      each.kind === "function" && each.entry && each.body !== undefined ? [entryOf(each)] : [],
    );
    Object.freeze(this);
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  /** The entry of this name, or the only one. */
  entry(name?: string): Entry {
    return entryNamed(this.entries, name);
  }
}

/** The entry of this name, or the only one. */
export function entryNamed(entries: readonly Entry[], name: string | undefined): Entry {
  const found =
    name === undefined && entries.length === 1
      ? entries[0]
      : entries.find((entry) => entry.name === name);
  if (found !== undefined) return found;
  throw new TilewrightError({
    code: "TW8003",
    message:
      name === undefined
        ? "the module has no single entry"
        : `the module has no entry ${typeof name === "string" ? name : optionText(name)}`,
    expected: entries.map((entry) => entry.name).join(", ") || "a module with an .entry",
    found: typeof name === "string" ? name : name === undefined ? "no name" : optionText(name),
  });
}

function entryOf({ name, parameters, directives }: PtxFunction): Entry {
  const valuesOf = (directive: string): readonly number[] | undefined =>
    directives.find((each) => each.name === directive)?.values;
  return {
    name,
    parameters: parameters.map(parameterOf),
    requiredThreads: valuesOf("reqntid"),
    maxThreads: valuesOf("maxntid"),
    requiredCluster: valuesOf("reqnctapercluster")?.[0],
  };
}

function parameterOf(variable: Variable): EntryParameter {
  const { name, type, count, vector, pointer } = variable;
  const space = pointer === undefined ? undefined : (pointer.space ?? "generic");
  return { name, type, count, vector, bytes: variableBytes(variable), pointer: space };
}

/** The known GPU that runs what is written for an architecture. */
export function targetOf({ target }: EmulatedModule, location: Location): Target {
  const number = Number(/^sm_(\d+)[a-z]?$/.exec(target)?.[1] ?? NaN);
  if (number === 121) return targets.sm_121a;
  if (number === 120) return targets.sm_120a;
  if (number === 103) return targets.sm_103a;
  if (number >= 100 && number < 110) return targets.sm_100a;
  if (number >= 90 && number < 100) return targets.sm_90a;
  if (number === 89) return targets.sm_89;
  if (number === 86) return targets.sm_86;
  if (number < 90) return targets.sm_80;
  throw new TilewrightError({
    code: "TW8003",
    message: `nothing is known of a GPU ${target}`,
    location,
    expected: "sm_121, or sm_103 and earlier",
    found: target,
    remedy: "say with target which GPU's limits are to hold",
  });
}
