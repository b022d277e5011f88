// Speaks JSON with the gateway. One place for the token, the time limit and the shape of refusals.

export class ApiError extends Error {
  constructor(status, code, message, details = {}, requestId = null) {
    super(message);
    Object.assign(this, { name: "ApiError", status, code, details, requestId });
  }
}

const TIME_LIMIT_MS = 20_000;

async function refusalOf(response) {
  const body = await response.json().catch(() => null);
  const {
    code = "internal",
    message = response.statusText,
    details = {},
    request_id: requestId = null,
  } = body?.error ?? {};
  return new ApiError(response.status, code, message, details ?? {}, requestId);
}

/**
 * `call(method, path, body)` answers the parsed JSON (null for an empty answer) with `status` beside it:
 * `{ status, data }`. Rejects with an ApiError; code "network" when nothing came back, "timeout" after 20 s.
 */
export function createApi({ csrf, fetch = globalThis.fetch.bind(globalThis), onSignedOut = () => {} }) {
  let token = csrf;

  async function call(method, path, body, { signal, keepalive = false } = {}) {
    const limit = AbortSignal.timeout(TIME_LIMIT_MS);
    const headers = { accept: "application/json" };
    if (method !== "GET") headers["x-csrf-token"] = token;
    if (body !== undefined) headers["content-type"] = "application/json";
    let response;
    try {
      response = await fetch(path, {
        method,
        headers,
        keepalive,
        cache: "no-store",
        credentials: "same-origin",
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, error.name === "TimeoutError" ? "timeout" : "network", "no answer");
    }
    if (response.status === 401) onSignedOut();
    if (!response.ok) throw await refusalOf(response);
    const text = await response.text();
    return { status: response.status, data: text ? JSON.parse(text) : null };
  }

  return {
    call,
    /** After a new sign-in in another tab the session has another token. */
    useToken(next) {
      token = next;
    },
  };
}
