window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  persistAuthorization: true, // a reload keeps the token, in this browser only
  validatorUrl: null,
});
