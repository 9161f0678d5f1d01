#pragma once

#include <string>
#include <string_view>

namespace torpor::server {

// What the target of a request's first line asks for.
struct RequestPath {
  enum class Kind {
    kUnknown,
    kFunction,       // /function/<name>[/rest]
    kLive,           // /livez, /v2/health/live
    kReady,          // /readyz, /v2/health/ready
    kFunctionReady,  // /v2/models/<name>/ready
    kMetrics,        // /metrics
  };

  Kind kind = Kind::kUnknown;
  std::string function;         // as written; not necessarily a configured one
  std::string upstream_target;  // kFunction: /rest with its query; always begins with /
};

// Takes origin form (/path?query) and absolute form (http://host/path). The path is taken as
// written: nothing is decoded, so that the upstream sees what the client sent.
RequestPath ParseRequestPath(std::string_view target);

}  // namespace torpor::server
