#include "tools/torporctl/admin_requests.h"

#include "tools/torporctl/admin_call.h"

namespace torpor::torporctl {
namespace {

// Longer than the daemon's own time limit.
constexpr std::chrono::seconds kRequestPatience(40);

template <typename Call>
absl::Status Administer(const std::string& admin_socket, Call call) {
  return CallAdmin<v1::AdminResponse>(admin_socket, kRequestPatience, call).status();
}

}  // namespace

absl::Status Load(const std::string& admin_socket, const std::string& function,
                  std::optional<int> gpu) {
  v1::LoadRequest request;
  request.set_function(function);
  if (gpu) request.set_gpu(*gpu);
  return Administer(admin_socket, [&](auto& stub, auto& context, auto& response) {
    return stub.Load(&context, request, &response);
  });
}

absl::Status Evict(const std::string& admin_socket, const std::string& function) {
  v1::EvictRequest request;
  request.set_function(function);
  return Administer(admin_socket, [&](auto& stub, auto& context, auto& response) {
    return stub.Evict(&context, request, &response);
  });
}

absl::Status Pin(const std::string& admin_socket, const std::string& function, bool is_pinned) {
  v1::PinRequest request;
  request.set_function(function);
  request.set_is_pinned(is_pinned);
  return Administer(admin_socket, [&](auto& stub, auto& context, auto& response) {
    return stub.Pin(&context, request, &response);
  });
}

absl::Status Checkpoint(const std::string& admin_socket, const std::string& function) {
  v1::CheckpointRequest request;
  request.set_function(function);
  return Administer(admin_socket, [&](auto& stub, auto& context, auto& response) {
    return stub.Checkpoint(&context, request, &response);
  });
}

}  // namespace torpor::torporctl
