/** Products by every instruction, with operands in every place and order. */
import { productCases } from "../matrix/products.ts";
import { sampledNames } from "./names.ts";
import { sample } from "./sample.ts";

sample("products", productCases(), sampledNames["products"]);
