/**
 * Kernels compiled ahead of time: code for one target, and a manifest that says everything a launch needs,
 * so that neither the kernel's source nor the compiler is there when it runs.
 *
 *   compileAhead(axpy, targets.sm_90a) ──▶ { ptx, manifest }
 *         axpy.sm_90a.ptx, axpy.sm_90a.ptx.json                        files, a download, a database …
 *   kernelFromCompiled(manifest, ptx)  ──▶ CompiledKernel ──▶ device.run(…), launch(…), bind(…)
 *
 *   manifest   format    what this is, and its version
 *              target    the GPU that the code is for, by name
 *              code      its form, and a checksum: a plan launches only the code that it was made with
 *              kernel    parameters, dimensions and grid, against which arguments are checked
 *              plan      how the entry is launched
 */
import { dtypes } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import type {
  GridAxis,
  Kernel,
  KernelInterface,
  KernelParameter,
  ParameterRole,
} from "../ir/node.ts";
import type { Dimension, Size } from "../ir/size.ts";
import { refType, scalarType } from "../ir/types.ts";
import type { TensorSpecs, InputSpecs, Signature } from "../lang/index.ts";
import { madeBy, thisCopy } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { locationAt, unknownLocation } from "../support/location.ts";
import type { Location, Position } from "../support/location.ts";
import { isShallow } from "../support/nesting-depth.ts";
import { isReadable, isRecord, optionText } from "../support/options.ts";
import { targets } from "../targets/target.ts";
import type { Target, TargetName } from "../targets/target.ts";
import { checksum } from "./checksum.ts";
import type { LaunchPlan } from "./executable.ts";
import { belongTogether } from "./manifest-check.ts";
import { isKernelData } from "./plan-check.ts";
import { freezePlan, revivePlan } from "./plan-json.ts";
import { portablePosition } from "./relative-source-paths.ts";

/** PTX as text, or a cubin. */
export type CompiledCode = string | Uint8Array;

const format = "tilewright compiled kernel 3";

/** What belongs to compiled code; plain data, as JSON has it. */
export interface CompiledManifest {
  /** The version of this form. */
  readonly format: typeof format;
  /** What it was compiled for. */
  readonly target: TargetName;
  /** The form of the code, and a checksum. */
  readonly code: { readonly form: "ptx" | "cubin"; readonly checksum: string };
  /** The kernel's name and arguments. */
  readonly kernel: InterfaceData;
  /** How it is launched. */
  readonly plan: unknown;
}

/** The part of a kernel that arguments are checked against. */
export interface InterfaceData {
  readonly name: string;
  readonly position: Position | undefined;
  readonly grid: readonly GridAxis[];
  readonly dimensions: readonly Dimension[];
  readonly parameters: readonly ParameterData[];
}

interface ParameterData {
  readonly name: string;
  readonly role: ParameterRole;
  readonly dtype: DTypeName;
  /** Absent for scalars. */
  readonly shape?: readonly Size[] | undefined;
  readonly strides?: readonly Size[] | undefined;
}

/** A kernel as compiled code; a device takes it like the kernel itself. */
export class CompiledKernel<
  Inputs extends InputSpecs = InputSpecs,
  Outputs extends TensorSpecs = TensorSpecs,
  Inouts extends TensorSpecs = TensorSpecs,
> implements Signature<Inputs, Outputs, Inouts> {
  /** The inputs, by name. */
  readonly inputs: Inputs;
  /** The outputs, by name. */
  readonly outputs: Outputs;
  /** Arrays that are read and written, by name. */
  readonly inouts: Inouts;
  /** What arguments are checked against. */
  readonly kernel: KernelInterface;
  /** How blocks and arguments are laid out for a launch. */
  readonly plan: LaunchPlan;
  /** The code, as PTX or as a cubin. */
  readonly code: CompiledCode;

  /** @internal */
  constructor(
    kernel: KernelInterface,
    signature: Signature<Inputs, Outputs, Inouts>,
    plan: LaunchPlan,
    code: CompiledCode,
  ) {
    this.kernel = kernel;
    this.inputs = signature.inputs;
    this.outputs = signature.outputs;
    this.inouts = signature.inouts;
    this.plan = plan;
    this.code = code;
    Object.freeze(this);
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  /** The kernel's name. */
  get name(): string {
    return this.kernel.name;
  }

  /** The GPU that the code is for. */
  get target(): Target {
    return this.plan.target;
  }
}

/** The manifest of a kernel's code. */
export function manifestOf(kernel: Kernel, plan: LaunchPlan, code: CompiledCode): CompiledManifest {
  return {
    format,
    target: targetName(plan.target.name),
    code: { form: typeof code === "string" ? "ptx" : "cubin", checksum: checksum(code) },
    kernel: interfaceData(kernel),
    plan: freezePlan(plan),
  };
}

function targetName(name: string): TargetName {
  if (isTargetName(name)) return name;
  throw new Error(`${name} is no target's name`);
}

function isTargetName(name: unknown): name is TargetName {
  return typeof name === "string" && Object.hasOwn(targets, name);
}

export function interfaceData({
  name,
  grid,
  dimensions,
  parameters,
  location,
}: Kernel): InterfaceData {
  return {
    name,
    position: portablePosition(location.position),
    grid,
    dimensions,
    parameters: parameters.map(parameterData),
  };
}

function parameterData({ name, role, value: { type }, strides }: KernelParameter): ParameterData {
  if (type.kind !== "ref" && type.kind !== "scalar") throw new Error(`${name} is a ${type.kind}`);
  const dtype = type.dtype.name;
  return type.kind === "scalar"
    ? { name, role, dtype }
    : { name, role, dtype, shape: type.shape, strides };
}

/**
 * The kernel that compiled code and its manifest make, given as what `JSON.parse` gives. A type argument
 * says what the kernel was, so that arguments are typed: `kernelFromCompiled<typeof axpy>(…)`.
 */
export function kernelFromCompiled<K extends Signature = Signature>(
  manifest: unknown,
  code: CompiledCode,
): CompiledKernel<K["inputs"], K["outputs"], K["inouts"]> {
  if (!isManifest(manifest)) throw notAManifest(manifest);
  const { kernel: data, plan, target } = manifest;
  requireOwnCode(manifest, code);
  const kernel = interfaceOf(data);
  // The caller says what the kernel was; arguments are checked against the manifest at every launch.
  const signature = signatureOf(data);
  const launchPlan = revivePlan(plan, { target: targets[target] });
  if (launchPlan === undefined || !belongTogether(data, launchPlan)) throw notAManifest(manifest);
  return new CompiledKernel(kernel, signature, launchPlan, code);
}

/** Sizes are nested as deep as the arithmetic that made them; nobody's is as deep as this. */
const mostLevels = 300;

const manifestParts = ["format", "target", "code", "kernel", "plan"];

function isManifest(value: unknown): value is CompiledManifest {
  if (typeof value !== "object" || value === null || !isReadable(value, manifestParts))
    return false;
  const {
    format: found,
    target,
    code,
    kernel,
    plan,
  } = value as { readonly [name: string]: unknown };
  const whole = [code, kernel, plan].every((part) => isRecord(part) && isShallow(part, mostLevels));
  const known = found === format && isTargetName(target) && isCodeData(code);
  return known && whole && isKernelData(kernel);
}

function isCodeData(value: unknown): boolean {
  const { form, checksum: sum } = isRecord(value) ? value : {};
  return (form === "ptx" || form === "cubin") && typeof sum === "string";
}

function notAManifest(value: unknown): TilewrightError {
  const named =
    typeof value === "object" && value !== null && "format" in value && "target" in value
      ? `${nameText(value.format)}, for ${nameText(value.target)}`
      : "something else";
  const found = named.startsWith(format) ? `${named}, with fields that are damaged` : named;
  return new TilewrightError({
    code: "TW4020",
    message: "this is no manifest of a compiled kernel",
    expected: `${format}, for ${Object.keys(targets).join(" or ")}`,
    found,
  });
}

function nameText(value: unknown): string {
  return typeof value === "string" ? value : optionText(value);
}

function requireOwnCode({ code: described, kernel }: CompiledManifest, code: CompiledCode): void {
  if (typeof code !== "string" && !(code instanceof Uint8Array)) throw notCode(code, kernel.name);
  const form = typeof code === "string" ? "ptx" : "cubin";
  const sum = checksum(code);
  if (form === described.form && sum === described.checksum) return;
  throw new TilewrightError({
    code: "TW4021",
    message: `the code is not what the manifest of kernel ${kernel.name} was made with`,
    expected: `${described.form}, checksum ${described.checksum}`,
    found: `${form}, checksum ${sum}`,
  });
}

function notCode(code: unknown, kernel: string): TilewrightError {
  return new TilewrightError({
    code: "TW4021",
    message: `this is no code of kernel ${kernel}`,
    expected: "PTX as a text, or a cubin as a Uint8Array",
    found: optionText(code),
  });
}

/**
 * Refuses code that a device of this target does not run: a cubin and a target that ends in "a" are for
 * their own kind of GPU alone, other PTX for later ones too.
 */
export function requireCodeFor(kernel: CompiledKernel, target: Target): void {
  const { target: own, code } = kernel;
  const portable = typeof code === "string" && !own.name.endsWith("a");
  if (own.name === target.name || (portable && own.architecture <= target.architecture)) return;
  throw unloadable(kernel, `code for ${target.name}`);
}

/** The report of a kernel that a device has no use for. */
export function unloadable({ name, code, target }: CompiledKernel, expected: string): Error {
  return new TilewrightError({
    code: "TW4019",
    message: `the device cannot run what kernel ${name} was compiled to`,
    expected,
    found: `${typeof code === "string" ? "PTX" : "a cubin"} for ${target.name}`,
  });
}

/** The interface that `interfaceData` was given. */
export function interfaceOf({
  name,
  position,
  grid,
  dimensions,
  parameters,
}: InterfaceData): KernelInterface {
  const location: Location =
    position === undefined
      ? unknownLocation
      : locationAt(position.file, position.line, position.column);
  return {
    name,
    grid,
    dimensions,
    location,
    parameters: parameters.map(({ name: own, role, dtype, shape, strides }, id) => {
      const type =
        shape === undefined ? scalarType(dtypes[dtype]) : refType("gmem", dtypes[dtype], shape);
      return { name: own, role, value: { id, type }, ...(strides !== undefined && { strides }) };
    }),
  };
}

function signatureOf({ parameters }: InterfaceData): Signature {
  const specs = (roles: readonly ParameterRole[]) =>
    Object.fromEntries(
      parameters
        .filter(({ role }) => roles.includes(role))
        .map(({ name, dtype, shape, strides }) => [
          name,
          shape === undefined
            ? { kind: "scalar", dtype: dtypes[dtype] }
            : { kind: "array", dtype: dtypes[dtype], shape, strides },
        ]),
    );
  return {
    inputs: specs(["input", "scalar"]) as InputSpecs,
    outputs: specs(["output"]) as TensorSpecs,
    inouts: specs(["inout"]) as TensorSpecs,
  };
}
