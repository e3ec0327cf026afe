/** The usual theme, with the project's colours. */
import theme from "vitepress/theme";
import "./style.css";

export default theme;
