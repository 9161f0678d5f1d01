#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "client_shim/core/transport/unix_socket.h"
#include "proto/wire/batch.h"
#include "proto/wire/ring_file.h"

namespace torpor::shim {

// The rings that an executor has made for a session, and the connection that keeps them.
struct RingConnection {
  UniqueFd socket;
  std::unique_ptr<wire::RingFile> file;
};

// Asks the executor at `executor_socket` for rings. The failure's code is an errno: ENOENT or
// ECONNREFUSED if the executor serves none.
Result<RingConnection, int> OpenRings(const std::string& executor_socket,
                                      const wire::Attach& attach, Deadline deadline);

}  // namespace torpor::shim
