import { emulateCases } from "./emulated.ts";
import { productCases } from "./products.ts";

emulateCases(productCases(), 14);
