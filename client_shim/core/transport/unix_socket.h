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

// Returns where this process finds a socket that torpord names as `path`: beside torpord's own, as
// a container may see the sockets' folder anywhere. `path` itself if `daemon_socket` is empty.
std::string SocketBeside(const std::string& daemon_socket, const std::string& path);

// Connects to the Unix socket at `path`, close-on-exec and in blocking mode. `type` is SOCK_STREAM
// or SOCK_SEQPACKET. The failure's code is an errno.
Result<UniqueFd, int> ConnectUnix(const std::string& path, int type, Deadline deadline);

// Waits for poll's `events` on `fd`; false if the deadline passes first.
bool PollUntil(int fd, short events, Deadline deadline);

// Calls recv() and repeats interrupted calls. Returns the number of bytes, 0 at the end, -1 if no
// bytes are available (with MSG_DONTWAIT), -2 for a broken connection.
ssize_t Receive(int fd, void* data, std::size_t bytes, int flags);

// Receives a packet of exactly `bytes` bytes, and the descriptor attached to the packet, invalid
// without one. The failure's code is an errno.
Result<UniqueFd, int> ReceiveWithDescriptor(int socket, void* reply, std::size_t bytes);

// Asks torpord's descriptor socket for a memory file of the session, of at least `bytes` bytes. The
// failure's code is an errno.
Result<UniqueFd, int> FetchDescriptor(const wire::HelloReply& session, wire::SharedMemory what,
                                      std::uint64_t bytes, Deadline deadline);

}  // namespace torpor::shim
