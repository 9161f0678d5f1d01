#include "client_shim/core/transport/open_stream.h"

#include <sys/socket.h>

#include <utility>

#include "client_shim/core/transport/grpc_frame_stream.h"
#include "client_shim/core/transport/ring_connection.h"
#include "client_shim/core/transport/ring_stream.h"

namespace torpor::shim {

Result<std::unique_ptr<FrameStream>, int> OpenFrameStream(const Nghttp2& http2, Transport transport,
                                                          const std::string& executor_socket,
                                                          const wire::Attach& attach,
                                                          Deadline deadline) {
  if (transport != Transport::kGrpc) {
    Result<RingConnection, int> rings = OpenRings(executor_socket, attach, deadline);
    if (rings) return {std::make_unique<RingStream>(std::move(rings).value())};
    if (transport == Transport::kRings) return rings.failure();
  }
  Result<UniqueFd, int> socket = ConnectUnix(executor_socket, SOCK_STREAM, deadline);
  if (!socket) return socket.failure();
  return {std::make_unique<GrpcFrameStream>(http2, std::move(socket).value())};
}

}  // namespace torpor::shim
