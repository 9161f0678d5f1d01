#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/admin.pb.h"

// What `torporctl status` and `torporctl functions` ask and print.
namespace torpor::torporctl {

// Ask the daemon on its admin socket. Unavailable, with what to do, where none answers.
absl::StatusOr<v1::NodeStatus> FetchStatus(const std::string& admin_socket);
absl::StatusOr<v1::ListFunctionsResponse> FetchFunctions(const std::string& admin_socket);

std::string StatusTable(const v1::NodeStatus& status);
std::string StatusJson(const v1::NodeStatus& status);
std::string FunctionsTable(const v1::ListFunctionsResponse& functions);
std::string FunctionsJson(const v1::ListFunctionsResponse& functions);

// "1.5GiB", "0B".
std::string HumanBytes(std::uint64_t bytes);

}  // namespace torpor::torporctl
