/**
 * Kernels of one's own with choices: an operation for every device, whose choices `tune` measures.
 *
 *   choices: { tile: [64, 128], stages: [2, 3] }     4 combinations, less those that `where` leaves out
 *   make({ tile: 64, stages: 2 })                    a kernel, or an operation of several launches
 *
 * Until something was measured the first combination is used.
 */
import type { OperationChoices } from "../device/tuning/advice.ts";
import { recordText } from "../device/tuning/line.ts";
import type { Choice, ChoiceValue, Sizes } from "../device/tuning/line.ts";
import { isOperation, operation } from "../device/operation.ts";
import type { Operation, Planned } from "../device/operation.ts";
import type { KernelInterface } from "../ir/node.ts";
import { sizeText } from "../ir/size.ts";
import { isKernelDefinition } from "../lang/index.ts";
import type { TensorSpecs, InputSpecs, KernelDefinition } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isRecord, optionText, requireKnownOptions } from "../support/options.ts";
import type { Target } from "../targets/target.ts";

/** The values that each choice may have. */
export interface ChoiceLists {
  readonly [name: string]: readonly ChoiceValue[];
}

/** One value of each. */
export type ChoiceOf<C extends ChoiceLists> = {
  readonly [N in keyof C]: C[N][number];
};

type Made<Inputs extends InputSpecs, Outputs extends TensorSpecs, Inouts extends TensorSpecs> =
  | KernelDefinition<Inputs, Outputs, Inouts>
  | Operation<Inputs, Outputs, Inouts>;

/** What `tunable` makes an operation of: the choices, and the kernel for each. */
export interface TunableSpec<
  C extends ChoiceLists,
  Inputs extends InputSpecs,
  Outputs extends TensorSpecs,
  Inouts extends TensorSpecs,
> {
  /** The operation's name, in tuning files and messages. */
  readonly name: string;
  /** The values of each choice. */
  readonly choices: C;
  /** Whether a combination makes sense at all. */
  readonly where?: (choice: ChoiceOf<C>) => boolean;
  /** Which sizes share a result; every size has its own unless given. */
  readonly bucket?: (dimensions: Sizes) => Sizes;
  /** Makes the kernel of a choice. */
  readonly make: (choice: ChoiceOf<C>) => Made<Inputs, Outputs, Inouts>;
}

const names = ["name", "choices", "where", "bucket", "make"];

/** An operation made of a kernel with choices: the fastest known choice is taken, by a tuning table or by default. */
export function tunable<
  const C extends ChoiceLists,
  Inputs extends InputSpecs,
  Outputs extends TensorSpecs,
  Inouts extends TensorSpecs,
>(spec: TunableSpec<C, Inputs, Outputs, Inouts>): Operation<Inputs, Outputs, Inouts, ChoiceOf<C>> {
  const location = captureLocation();
  requireKnownOptions("tunable", spec, names, "TW9813", location);
  const { name } = spec;
  const combinations = requireCombinations(spec, location);
  const [first] = combinations;
  if (first === undefined) throw nothingLeft(name, spec.choices, location);
  const make = remembering((choice: Choice) =>
    requireMade(name, spec.make(choice as ChoiceOf<C>), choice, location),
  );
  const declared = make(first);
  const variant = signatureText(declared.kernel);
  const known = new Set(combinations.map(recordText));
  const made = (choice: Choice): Made<InputSpecs, TensorSpecs, TensorSpecs> => {
    // A file may be older than the choices: `make` is not asked for what is not among them.
    if (!known.has(recordText(choice)))
      throw wrong(
        `${recordText(choice)} is no choice of ${name}`,
        `one of ${combinations.length}, such as ${recordText(first)}`,
        recordText(choice),
        location,
      );
    const found = make(choice);
    if (signatureText(found.kernel) === variant) return found;
    throw wrong(
      `${name} has other arguments for ${JSON.stringify(choice)}`,
      variant,
      signatureText(found.kernel),
      location,
    );
  };
  const choices: OperationChoices = {
    variant,
    bucket: (sizes) =>
      spec.bucket === undefined ? sizes : requireBucket(name, spec.bucket(sizes), location),
    candidates: () => combinations,
  };
  const { inputs, outputs, inouts } = declared;
  return operation({
    name,
    inputs,
    outputs,
    inouts,
    choices,
    plan: (dimensions, target, choice = first) => planOf(made(choice), choice, dimensions, target),
  }) as unknown as Operation<Inputs, Outputs, Inouts, ChoiceOf<C>>;
}

/** Makes a kernel once for each choice. */
function remembering<T>(make: (choice: Choice) => T): (choice: Choice) => T {
  const made = new Map<string, T>();
  return (choice) => {
    const key = JSON.stringify(choice);
    const found = made.get(key) ?? make(choice);
    made.set(key, found);
    return found;
  };
}

/** The plan of what was made; a kernel is a plan of one launch. */
function planOf(
  made: Made<InputSpecs, TensorSpecs, TensorSpecs>,
  configuration: Choice,
  dimensions: Sizes,
  target: Target,
): Planned<Choice> {
  if (isOperation(made)) {
    const { launches, scratch, notes } = made.planFor(new Map(Object.entries(dimensions)), target);
    return { configuration, source: "heuristic", launches, scratch, notes };
  }
  const args = made.kernel.parameters.map(({ name }) => [name, { argument: name }] as const);
  const launch = {
    kernel: made,
    arguments: Object.fromEntries(args),
    dimensions,
  };
  return { configuration, source: "heuristic", launches: [launch] };
}

/** The arguments of a kernel as text: names, formats, shapes and strides. */
function signatureText({ parameters }: KernelInterface): string {
  return parameters
    .map(({ name, role, value: { type }, strides }) => {
      if (type.kind === "scalar") return `${role} ${name} ${type.dtype.name}`;
      if (type.kind !== "ref") throw new Error("arguments are arrays and scalars");
      const shape = type.shape.map(sizeText).join(", ");
      const apart = strides === undefined ? "" : ` by ${strides.map(sizeText).join(", ")}`;
      return `${role} ${name} ${type.dtype.name}[${shape}]${apart}`;
    })
    .join("; ");
}

/** All combinations, in the order in which values are listed: those of the last name change fastest. */
function requireCombinations(
  {
    name,
    choices,
    where,
    bucket,
    make,
  }: {
    readonly name: unknown;
    readonly choices: unknown;
    readonly where?: unknown;
    readonly bucket?: unknown;
    readonly make: unknown;
  },
  location: Location,
): readonly Choice[] {
  if (typeof name !== "string" || name === "")
    throw wrong("tunable has no name", "a name for tuning files", optionText(name), location);
  for (const [option, value] of Object.entries({ where, bucket, make }))
    if (typeof value !== "function" && (option === "make" || value !== undefined))
      throw wrong(`${option} of ${name} is no function`, "a function", optionText(value), location);
  if (!isRecord(choices) || Object.keys(choices).length === 0)
    throw wrong(
      `${name} has no choices`,
      "lists of values by name, such as { tile: [64, 128] }",
      optionText(choices),
      location,
    );
  let combinations: readonly Choice[] = [{}];
  for (const [choice, values] of Object.entries(choices)) {
    const found = wrongValues(values);
    if (found !== undefined)
      throw wrong(
        `choice ${choice} of ${name} has no list of values`,
        "a list of different numbers, strings or truths, one at least",
        found,
        location,
      );
    combinations = combinations.flatMap((each) =>
      (values as readonly ChoiceValue[]).map((value) => ({ ...each, [choice]: value })),
    );
  }
  const keeps = where as ((choice: Choice) => boolean) | undefined;
  return keeps === undefined ? combinations : combinations.filter((each) => keeps(each));
}

/** What is wrong with the values of a choice, in words; undefined where nothing is. */
function wrongValues(values: unknown): string | undefined {
  if (!Array.isArray(values)) return optionText(values);
  if (values.length === 0) return "an empty list";
  const other: unknown = values.find((value) => !isChoiceValue(value));
  if (other !== undefined || values.includes(undefined)) return `a list with ${optionText(other)}`;
  const twice: unknown = values.find((value, index) => values.indexOf(value) !== index);
  return twice === undefined ? undefined : `a list that has ${JSON.stringify(twice)} twice`;
}

function isChoiceValue(value: unknown): value is ChoiceValue {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value === "string" || typeof value === "boolean";
}

function requireMade(
  name: string,
  made: unknown,
  choice: Choice,
  location: Location,
): Made<InputSpecs, TensorSpecs, TensorSpecs> {
  if (isKernelDefinition(made) || isOperation(made)) return made;
  throw wrong(
    `make of ${name} gives no kernel for ${JSON.stringify(choice)}`,
    "what kernel(…) or operation(…) gives",
    optionText(made),
    location,
  );
}

/** Refuses sizes that files cannot hold or cannot distinguish. */
function requireBucket(name: string, bucket: unknown, location: Location): Sizes {
  const isHeld = isRecord(bucket) && Object.values(bucket).every(Number.isSafeInteger);
  if (isHeld) return bucket as Sizes;
  const found = isRecord(bucket) ? Object.values(bucket).map(optionText).join(", ") : undefined;
  throw wrong(
    `bucket of ${name} gives no sizes by name`,
    "whole numbers by name, such as { n: powerOfTwo(n) }",
    found ?? optionText(bucket),
    location,
  );
}

function nothingLeft(name: string, choices: ChoiceLists, location: Location): TilewrightError {
  const all = Object.values(choices).reduce((count, values) => count * values.length, 1);
  return new TilewrightError({
    code: "TW9812",
    message: `where leaves none of the choices of ${name}`,
    location,
    expected: "true for one combination at least",
    found: `false for ${all === 1 ? "the only one" : `all ${all}`}`,
    remedy: "offer values that go together, or let where give true for those that do",
  });
}

function wrong(
  message: string,
  expected: string,
  found: string,
  location: Location,
): TilewrightError {
  return new TilewrightError({
    code: "TW9813",
    message,
    expected,
    found,
    location,
  });
}
