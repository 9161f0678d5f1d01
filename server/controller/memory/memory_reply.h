#pragma once

#include <cstdint>
#include <string>

#include "server/controller/model/client_session.h"

namespace torpor::server {

// Answers an allocation, a free or a close. `error` is a cudaError_t; `address` is the client's
// new allocation, else 0.
inline void SendMemoryReply(const ClientSession& session, std::uint64_t request, std::int32_t error,
                            const std::string& message, std::uint64_t address) {
  session.link->Send(wire::MemoryReply{request, error, message, address});
}

}  // namespace torpor::server
