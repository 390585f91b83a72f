/** The API's reference, on which it can be tried: with the token that the dashboard was given, and on this host only. */

import {token} from "/js/api.js";

window.SwaggerUIBundle({
  url: "/api/v1/openapi.json",
  domNode: document.getElementById("reference"),
  validatorUrl: null, // it would be sent to another host
  requestInterceptor(request) {
    if (token()) request.headers.Authorization = `Bearer ${token()}`;
    return request;
  },
});
