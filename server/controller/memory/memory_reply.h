#pragma once

#include <cstdint>
#include <string>

#include "server/controller/model/client_session.h"
#include "server/controller/model/session_journal.h"

namespace torpor::server {

// Answers an allocation, a free or a close. `error` is a cudaError_t; `address` is the client's
// new allocation, else 0.
inline void SendMemoryReply(const ClientSession& session, std::uint64_t request, std::int32_t error,
                            const std::string& message, std::uint64_t address) {
  session.link->Send(wire::MemoryReply{request, error, message, address});
}

// What a reply is about to tell is recorded first.
inline void NoteAllocated(const ClientSession& session, MemoryKind kind, std::uint64_t request,
                          memory::Block block) {
  if (session.journal) session.journal->NoteAllocated(session, kind, request, block);
}
inline void NoteFreed(const ClientSession& session, MemoryKind kind, std::uint64_t request,
                      Bytes offset) {
  if (session.journal) session.journal->NoteFreed(session, kind, request, offset);
}

}  // namespace torpor::server
