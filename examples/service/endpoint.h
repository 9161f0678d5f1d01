#pragma once

#include <string>

#include "examples/service/http_server.h"
#include "examples/service/program.h"

namespace torpor::examples {

// The flags --host and --port that every service has: for ParseFlags, and for its usage.
Flags EndpointFlags();
inline constexpr const char* kEndpointUsage =
    R"(  --host ADDRESS  to listen on (default 127.0.0.1)
  --port N        0, the default, takes any free port; the port is printed on stdout
)";

// GET /healthz says that the service is up, POST `path` is answered by `answer`, which is called
// by one thread at a time. Anything else is refused: 404, 405.
HttpServer::Handler InferenceHandler(const std::string& path, HttpServer::Handler answer);

// Listens where the flags say, tells so on stdout ("listening on HOST:PORT"), and serves until
// the process ends. Throws std::system_error where it cannot listen.
void Serve(const Flags& flags, HttpServer::Handler handler);

}  // namespace torpor::examples
