/** Every feature that has a row, by the files that hold them. */
import type { MatrixCase } from "../matrix/case.ts";
import { exact } from "../matrix/case.ts";
import { argumentFeatures } from "./arguments.ts";
import { blockPairFeatures } from "./block-pairs.ts";
import { clusterFeatures } from "./cluster-barriers.ts";
import { controlFeatures } from "./control.ts";
import { conversionFeatures } from "./conversions.ts";
import { copyFeatures } from "./copies.ts";
import { multicastFeatures } from "./multicasts.ts";
import { tf32FactorFeatures } from "./tf32-factors.ts";
import type { Feature, FeatureCase } from "./feature.ts";
import { functionFeatures } from "./functions.ts";
import { memoryOrderFeatures } from "./memory-order.ts";
import { memoryFeatures } from "./memory.ts";
import { numberFeatures } from "./numbers.ts";
import { pipelineFeatures } from "./pipelines.ts";
import { productFeatures } from "./products.ts";
import { sizeFeatures } from "./sizes.ts";
import { synchronisationFeatures } from "./synchronisation.ts";

export const features: readonly Feature[] = [
  ...argumentFeatures,
  ...blockPairFeatures,
  ...clusterFeatures,
  ...controlFeatures,
  ...conversionFeatures,
  ...copyFeatures,
  ...multicastFeatures,
  ...tf32FactorFeatures,
  ...functionFeatures,
  ...memoryOrderFeatures,
  ...memoryFeatures,
  ...numberFeatures,
  ...pipelineFeatures,
  ...productFeatures,
  ...sizeFeatures,
  ...synchronisationFeatures,
];

export function casesOf({ cases }: Feature): readonly FeatureCase[] {
  return typeof cases === "function" ? cases() : [];
}

/** The kernels of the table for the device suite, which holds any device against the simulator. */
export function featureCases(): readonly MatrixCase[] {
  return features.flatMap((feature) =>
    casesOf(feature)
      .filter(({ device }) => device === undefined)
      .map(({ name, kernel, inputs, expected, within }) => ({
        name: `${feature.name}: ${name}`,
        prepare: () => ({
          definition: kernel(),
          inputs,
          tolerance:
            within === undefined
              ? exact
              : {
                  kind: "reference",
                  of: (output, index) => ({
                    value: Number(expected[output]?.[index] ?? NaN),
                    bound: within,
                  }),
                },
        }),
      })),
  );
}
