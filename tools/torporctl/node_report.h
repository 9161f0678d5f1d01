#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/admin.pb.h"

// The calls and output of `torporctl status`, `functions` and `function show`.
namespace torpor::torporctl {

// Ask the daemon on its admin socket. Return Unavailable, with a remedy, if no daemon answers.
absl::StatusOr<v1::NodeStatus> FetchStatus(const std::string& admin_socket);
absl::StatusOr<v1::ListFunctionsResponse> FetchFunctions(const std::string& admin_socket);
// Returns NotFound for an unknown function.
absl::StatusOr<v1::FunctionStatus> FetchFunction(const std::string& admin_socket,
                                                 const std::string& function);

// Format the answers as tables, or as JSON objects.
std::string StatusTable(const v1::NodeStatus& status);
std::string StatusJson(const v1::NodeStatus& status);
std::string FunctionsTable(const v1::ListFunctionsResponse& functions);
std::string FunctionsJson(const v1::ListFunctionsResponse& functions);
// Formats a function's objective and its compliance.
std::string FunctionText(const v1::FunctionStatus& function);
std::string FunctionJson(const v1::FunctionStatus& function);

// Formats bytes in the largest fitting unit: "1.5GiB", "0B".
std::string HumanBytes(std::uint64_t bytes);

}  // namespace torpor::torporctl
