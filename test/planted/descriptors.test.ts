import { descriptorKernels } from "./descriptors.ts";
import { definePlantedTests } from "./suite.ts";

definePlantedTests(descriptorKernels);
