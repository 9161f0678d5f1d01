#include "client_shim/core/transport/ring_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace torpor::shim {
namespace {

Failure<int> Refused(int code, const std::string& what) {
  return {code, "rings: " + what + ": " + std::strerror(code)};
}

// Receives the answer, with the file's descriptor.
Result<UniqueFd, int> ReceiveFile(int socket) {
  wire::RingReply reply;
  Result<UniqueFd, int> file = ReceiveWithDescriptor(socket, &reply, sizeof reply);
  if (!file) return file;
  if (reply.error != 0) return Refused(reply.error, "the executor refuses the session");
  if (reply.version != wire::kRingVersion) return Refused(EPROTO, "another version");
  return file;
}

}  // namespace

Result<RingConnection, int> OpenRings(const std::string& executor_socket,
                                      const wire::Attach& attach, Deadline deadline) {
  Result<UniqueFd, int> socket =
      ConnectUnix(executor_socket + wire::kRingSocketSuffix, SOCK_SEQPACKET, deadline);
  if (!socket) return socket.failure();
  wire::RingRequest request;
  request.session_id = attach.session_id;
  request.session_key = attach.session_key;
  if (send(socket->get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request)
    return Refused(errno, "the executor takes no request");
  if (!PollUntil(socket->get(), POLLIN, deadline)) return Refused(ETIMEDOUT, "no answer");
  Result<UniqueFd, int> file = ReceiveFile(socket->get());
  if (!file) return file.failure();
  RingConnection connection{std::move(socket).value(), wire::RingFile::Map(file->get())};
  if (!connection.file) return Refused(errno, "the memory file cannot be mapped");
  return connection;
}

}  // namespace torpor::shim
