#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/admin.pb.h"

// What `torporctl status`, `functions` and `function show` ask and print.
namespace torpor::torporctl {

// Ask the daemon on its admin socket. Unavailable, with what to do, where none answers.
absl::StatusOr<v1::NodeStatus> FetchStatus(const std::string& admin_socket);
absl::StatusOr<v1::ListFunctionsResponse> FetchFunctions(const std::string& admin_socket);
// NotFound where there is no such function.
absl::StatusOr<v1::FunctionStatus> FetchFunction(const std::string& admin_socket,
                                                 const std::string& function);

std::string StatusTable(const v1::NodeStatus& status);
std::string StatusJson(const v1::NodeStatus& status);
std::string FunctionsTable(const v1::ListFunctionsResponse& functions);
std::string FunctionsJson(const v1::ListFunctionsResponse& functions);
// Of one function: what it is to reach and what it has reached.
std::string FunctionText(const v1::FunctionStatus& function);
std::string FunctionJson(const v1::FunctionStatus& function);

// "1.5GiB", "0B".
std::string HumanBytes(std::uint64_t bytes);

}  // namespace torpor::torporctl
