import { emulateCases } from "./emulated.ts";
import { sparseProductCases } from "./sparse-products.ts";

emulateCases(sparseProductCases(), 14);
