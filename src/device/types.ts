/** The types of a launch's arguments and results, which follow from the kernel's declaration. */
import type { DTypeName, HostValue } from "../formats/dtype.ts";
import type { GivenArray, HostArray, NestedList } from "../formats/hostarray.ts";
import type { TensorListSpec, TensorSpec, ScalarSpec, Signature } from "../lang/index.ts";
import type { KernelDefinition } from "../lang/index.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import type { DeviceArray } from "./device-array.ts";
import type { Operation } from "./operation.ts";

/** What a device runs. */
export type Launchable = KernelDefinition | CompiledKernel | Operation;

type Parameter<S, Array> = S extends ScalarSpec<infer D> ? HostValue<D> : Array;

type OnDevice<S> =
  S extends TensorSpec<infer D>
    ? DeviceArray<D>
    : S extends TensorListSpec<infer D>
      ? readonly DeviceArray<D>[]
      : Parameter<S, never>;

type Either<D extends DTypeName> = GivenArray<D> | NestedList | DeviceArray<D>;

type OnEither<S> =
  S extends TensorSpec<infer D>
    ? Either<D>
    : S extends TensorListSpec<infer D>
      ? readonly Either<D>[]
      : Parameter<S, never>;

/** Of a kernel whose declaration is not known, results are taken for arrays. */
type OnHost<S> = [S] extends [TensorListSpec<infer D extends DTypeName>]
  ? readonly HostArray<D>[]
  : S extends TensorSpec<infer D extends DTypeName>
    ? HostArray<D>
    : never;

/** The declaration of parameter `N` in whichever of the groups has it. */
type Declaration<K extends Signature, G extends keyof Signature, N> = {
  [Group in G]: N extends keyof K[Group] ? K[Group][N] : never;
}[G];

type Names<K extends Signature, G extends keyof Signature> = { [Group in G]: keyof K[Group] }[G];

/** What `launch` takes: every argument of the kernel, arrays on the device. */
export type DeviceArguments<K extends Signature> = {
  readonly [N in Names<K, keyof Signature>]: OnDevice<Declaration<K, keyof Signature, N>>;
};

/** What `run` takes: inputs and in-out arrays, on the host or on the device; lists count as arrays. */
export type RunArguments<K extends Signature> = {
  readonly [N in Names<K, "inputs" | "inouts">]: OnEither<Declaration<K, "inputs" | "inouts", N>>;
};

/** What `run` gives: outputs and in-out arrays, on the host. */
export type HostResults<K extends Signature> = {
  readonly [N in Names<K, "outputs" | "inouts">]: OnHost<Declaration<K, "outputs" | "inouts", N>>;
};
