#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/admin.pb.h"

// What `torporctl memory` asks and prints.
namespace torpor::torporctl {

// Asks the daemon on its admin socket. Unavailable, with what to do, where none answers.
absl::StatusOr<v1::NodeMemory> FetchMemory(const std::string& admin_socket);

std::string MemoryTable(const v1::NodeMemory& memory);
std::string MemoryJson(const v1::NodeMemory& memory);

}  // namespace torpor::torporctl
