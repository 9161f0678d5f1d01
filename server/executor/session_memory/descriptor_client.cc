#include "server/executor/session_memory/descriptor_client.h"

#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/executor/gpu/packet_socket.h"

namespace torpor::executor {

absl::StatusOr<UniqueFd> FetchDescriptor(const std::string& socket_path, SessionId session,
                                         const std::array<std::uint8_t, 16>& key,
                                         wire::SharedMemory what) {
  TORPOR_ASSIGN_OR_RETURN(const UniqueFd connection, DialPacketSocket(socket_path));
  wire::DescriptorRequest request;
  request.session_id = session.value;
  request.key = key;
  request.what = what;
  wire::DescriptorReply reply;
  TORPOR_ASSIGN_OR_RETURN(
      std::vector<UniqueFd> files,
      Ask(connection, "the descriptor socket", std::as_bytes(std::span(&request, 1)),
          std::as_writable_bytes(std::span(&reply, 1))));
  if (reply.error != 0) {
    return absl::ErrnoToStatus(
        reply.error, absl::StrCat("torpord refused memory file ", static_cast<std::uint32_t>(what),
                                  " of session ", session.value));
  }
  if (files.empty()) return absl::DataLossError("the descriptor socket sent no descriptor");
  return std::move(files.front());
}

}  // namespace torpor::executor
