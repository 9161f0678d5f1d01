#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/admin.pb.h"

// The calls and output of `torporctl memory`.
namespace torpor::torporctl {

// Asks the daemon on its admin socket. Returns Unavailable, with a remedy, if no daemon answers.
absl::StatusOr<v1::NodeMemory> FetchMemory(const std::string& admin_socket);

// Formats the answer as a table, or as a JSON object.
std::string MemoryTable(const v1::NodeMemory& memory);
std::string MemoryJson(const v1::NodeMemory& memory);

}  // namespace torpor::torporctl
