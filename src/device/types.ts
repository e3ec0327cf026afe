/** The types of a launch's arguments and results, which follow from the kernel's declaration. */
import type { DTypeName, HostValue } from "../formats/dtype.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { ArraySpec, ScalarSpec, Signature } from "../lang/index.ts";
import type { DeviceArray } from "./device-array.ts";

type Parameter<S, Array> = S extends ScalarSpec<infer D> ? HostValue<D> : Array;

type OnDevice<S> = S extends ArraySpec<infer D> ? DeviceArray<D> : Parameter<S, never>;

type OnEither<S> =
  S extends ArraySpec<infer D> ? HostArray<D> | DeviceArray<D> : Parameter<S, never>;

type OnHost<S> = S extends ArraySpec<infer D extends DTypeName> ? HostArray<D> : never;

/** What `launch` takes: every argument of the kernel, arrays on the device. */
export type DeviceArguments<K extends Signature> = {
  readonly [N in keyof K["inputs"]]: OnDevice<K["inputs"][N]>;
} & { readonly [N in keyof K["inouts"]]: OnDevice<K["inouts"][N]> } & {
  readonly [N in keyof K["outputs"]]: OnDevice<K["outputs"][N]>;
};

/** What `run` takes: inputs and in-out arrays, on the host or on the device. */
export type RunArguments<K extends Signature> = {
  readonly [N in keyof K["inputs"]]: OnEither<K["inputs"][N]>;
} & { readonly [N in keyof K["inouts"]]: OnEither<K["inouts"][N]> };

/** What `run` gives: outputs and in-out arrays, on the host. */
export type HostResults<K extends Signature> = {
  readonly [N in keyof K["outputs"]]: OnHost<K["outputs"][N]>;
} & { readonly [N in keyof K["inouts"]]: OnHost<K["inouts"][N]> };
