// Generates src/generated from the OpenAPI document; API_DOCUMENT names another place of it.
export default {
  input: process.env.API_DOCUMENT ?? "../../openapi.json",
  output: { path: "src/generated", importFileExtension: ".js" },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
};
