#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "base/units.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/task_loop.h"
#include "server/repository/repository.h"
#include "server/repository/session_addresses.h"

namespace torpor::server {

// Gives sessions their addresses and files, and takes both back. On the controller's thread.
class SessionStorage {
 public:
  struct Options {
    std::uint64_t address_base = 0;
    Bytes address_range = 0;  // at least so many for each session's device
    Bytes chunk_bytes = 0;
    Bytes window_bytes = 0;
    // Chunks lie apart on a GPU: an allocation cannot span two.
    bool is_apart = false;
  };

  // The arguments must outlive the object.
  SessionStorage(const Options& options, Repository& repository, TaskLoop& loop)
      : options_(options), repository_(repository), loop_(loop), addresses_(options.address_base) {}

  // `memory_limit`: bytes of device memory that the client may allocate. ResourceExhausted if no
  // addresses are left.
  absl::Status Create(ClientSession& session, Bytes memory_limit);
  // No executor and no client uses the session's memory any more. The files are freed in the
  // background.
  void Remove(ClientSession& session);

 private:
  void ReleaseAddresses(const ClientSession& session);

  const Options options_;
  Repository& repository_;
  TaskLoop& loop_;
  SessionAddresses addresses_;
};

}  // namespace torpor::server
