#include "server/executor/image/pool_client.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/executor/gpu/device_mapping.h"
#include "server/executor/gpu/packet_socket.h"

namespace torpor::executor {
namespace {

constexpr auto kDialAgain = std::chrono::milliseconds(2);
constexpr const char* kOwner = "the owner of the GPU's memory";

absl::StatusOr<UniqueFd> Dial(const std::string& socket_path, Duration patience) {
  const SteadyClock clock;
  const TimePoint until = clock.Now() + patience;
  while (true) {
    absl::StatusOr<UniqueFd> connection = DialPacketSocket(socket_path);
    if (connection.ok() || clock.Now() >= until) return connection;
    std::this_thread::sleep_for(kDialAgain);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<PoolClient>> PoolClient::Connect(const std::string& socket_path,
                                                                Duration patience) {
  TORPOR_ASSIGN_OR_RETURN(UniqueFd connection, Dial(socket_path, patience));
  ucred owner{};
  socklen_t size = sizeof owner;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot ask who serves ", socket_path));
  }
  return std::unique_ptr<PoolClient>(new PoolClient(std::move(connection), owner.pid));
}

absl::StatusOr<PoolReply> PoolClient::Request(const PoolRequest& request,
                                              std::vector<UniqueFd>* descriptors) const {
  PoolReply reply;
  MutexLock lock(&mutex_);
  TORPOR_ASSIGN_OR_RETURN(std::vector<UniqueFd> received,
                          Ask(connection_, kOwner, std::as_bytes(std::span(&request, 1)),
                              std::as_writable_bytes(std::span(&reply, 1))));
  if (reply.error != 0) {
    return absl::ErrnoToStatus(reply.error, absl::StrCat(kOwner, " refuses"));
  }
  if (descriptors != nullptr) *descriptors = std::move(received);
  return reply;
}

absl::Status PoolClient::Try(const Device& device) const {
  std::vector<UniqueFd> descriptors;
  TORPOR_RETURN_IF_ERROR(Request({.what = PoolAsk::kTry}, &descriptors).status());
  if (descriptors.size() != 1) return absl::DataLossError(absl::StrCat(kOwner, " sends no chunk"));
  TORPOR_ASSIGN_OR_RETURN(const CUmemGenericAllocationHandle chunk,
                          ImportMemory(device, descriptors.front()));
  device.driver().MemRelease(chunk);
  return absl::OkStatus();
}

absl::StatusOr<PoolDescription> PoolClient::Open() const {
  TORPOR_ASSIGN_OR_RETURN(const PoolReply reply, Request({.what = PoolAsk::kOpen}));
  return reply.pool;
}

absl::StatusOr<std::vector<UniqueFd>> PoolClient::Fetch(std::uint64_t first,
                                                        std::uint32_t count) const {
  std::vector<UniqueFd> descriptors;
  const PoolRequest request{.what = PoolAsk::kFetch, .count = count, .first = first};
  TORPOR_RETURN_IF_ERROR(Request(request, &descriptors).status());
  if (descriptors.size() == count) return descriptors;
  return absl::DataLossError(
      absl::StrCat(kOwner, " sends ", descriptors.size(), " of ", count, " chunks"));
}

absl::Status PoolClient::Outlive(Duration patience) const {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  return Request({.what = PoolAsk::kOutlive, .patience_ms = static_cast<std::uint64_t>(ms)})
      .status();
}

}  // namespace torpor::executor
