#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "proto/wire/control_messages.h"
#include "proto/wire/descriptor_socket.h"

namespace torpor::shim {

using Deadline = std::chrono::steady_clock::time_point;

// A close-on-exec connection to the Unix socket at `path`; the failure's code is an errno.
// `type` is SOCK_STREAM or SOCK_SEQPACKET.
Result<UniqueFd, int> ConnectUnix(const std::string& path, int type, Deadline deadline);

// Waits for `events` (poll's) on `fd`. False: the deadline passed.
bool PollUntil(int fd, short events, Deadline deadline);

// One recv() that is not interrupted: bytes read, 0 at the end, -1 for nothing now (with
// MSG_DONTWAIT), -2 for a broken connection.
ssize_t Receive(int fd, void* data, std::size_t bytes, int flags);

// Asks torpord's descriptor socket for one of the session's memory files, which must hold at
// least `bytes`.
Result<UniqueFd, int> FetchDescriptor(const wire::HelloReply& session, wire::SharedMemory what,
                                      std::uint64_t bytes, Deadline deadline);

}  // namespace torpor::shim
