/** The types of a launch's arguments and results, which follow from the kernel's declaration. */
import type { DTypeName, HostValue } from "../formats/dtype.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { ArraySpec, KernelDefinition, ScalarSpec } from "../lang/index.ts";
import type { DeviceArray } from "./device-array.ts";
