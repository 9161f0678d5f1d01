#pragma once

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/torpor/v1/admin.grpc.pb.h"

namespace torpor::torporctl {

// For calls that torpord answers at once.
inline constexpr std::chrono::seconds kQueryPatience(5);

// Calls the daemon on its admin socket. `call(stub, context, response)` makes the call and returns
// its grpc::Status. Blocks up to `patience`. Returns Unavailable, with a remedy, if no daemon
// answers, and otherwise the daemon's status.
template <typename Response, typename Call>
absl::StatusOr<Response> CallAdmin(const std::string& admin_socket, std::chrono::seconds patience,
                                   Call call) {
  const auto channel =
      grpc::CreateChannel("unix:" + admin_socket, grpc::InsecureChannelCredentials());
  const auto stub = v1::Admin::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  Response response;
  const grpc::Status status = call(*stub, context, response);
  if (status.ok()) return response;
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  return absl::UnavailableError(
      fmt::format("no torpord answers on {} ({}); is it running, and may you open its socket?",
                  admin_socket, status.error_message()));
}

}  // namespace torpor::torporctl
