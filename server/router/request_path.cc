#include "server/router/request_path.h"

#include <algorithm>

namespace torpor::server {
namespace {

using Kind = RequestPath::Kind;

struct FixedPath {
  std::string_view path;
  Kind kind;
};
constexpr FixedPath kFixedPaths[] = {
    {"/livez", Kind::kLive},          {"/readyz", Kind::kReady},
    {"/v2/health/live", Kind::kLive}, {"/v2/health/ready", Kind::kReady},
    {"/metrics", Kind::kMetrics},
};

bool Consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// http://host:port/path is /path.
std::string_view WithoutAuthority(std::string_view target) {
  std::string_view rest = target;
  if (!Consume(rest, "http://") && !Consume(rest, "https://")) return target;
  const std::size_t path = rest.find_first_of("/?");
  return path == std::string_view::npos ? std::string_view() : rest.substr(path);
}

}  // namespace

RequestPath ParseRequestPath(std::string_view target) {
  target = WithoutAuthority(target);
  const std::size_t query_begin = std::min(target.find('?'), target.size());
  const std::string_view query = target.substr(query_begin);
  std::string_view path = target.substr(0, query_begin);

  const auto* const fixed = std::ranges::find(kFixedPaths, path, &FixedPath::path);
  if (fixed != std::end(kFixedPaths)) return {fixed->kind, {}, {}};

  if (Consume(path, "/function/")) {
    const std::size_t name_end = std::min(path.find('/'), path.size());
    const std::string_view rest = name_end == path.size() ? "/" : path.substr(name_end);
    std::string upstream_target(rest);
    upstream_target += query;
    return {Kind::kFunction, std::string(path.substr(0, name_end)), std::move(upstream_target)};
  }
  if (Consume(path, "/v2/models/")) {
    const std::size_t name_end = std::min(path.find('/'), path.size());
    if (path.substr(name_end) == "/ready") {
      return {Kind::kFunctionReady, std::string(path.substr(0, name_end)), {}};
    }
  }
  return {};
}

}  // namespace torpor::server
