#include "server/executor/image/pool_client.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
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
// For an answer: chunks may have to be cleared before, in between other executors' kernels.
constexpr timeval kAnswerPatience{20, 0};
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
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerPatience, sizeof kAnswerPatience);
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
  if (is_lost_) return absl::UnavailableError(absl::StrCat("no connection to ", kOwner));
  absl::StatusOr<std::vector<UniqueFd>> received =
      Ask(connection_, kOwner, std::as_bytes(std::span(&request, 1)),
          std::as_writable_bytes(std::span(&reply, 1)));
  if (!received.ok()) {
    is_lost_ = true;
    if (when_lost_) when_lost_();
    return received.status();
  }
  free_chunks_.store(reply.free_chunks, std::memory_order_relaxed);
  if (reply.error != 0) {
    return absl::ErrnoToStatus(reply.error, absl::StrCat(kOwner, " refuses"));
  }
  if (descriptors != nullptr) *descriptors = *std::move(received);
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

absl::StatusOr<std::vector<std::uint32_t>> PoolClient::Take(std::uint64_t domain,
                                                            std::size_t count) const {
  std::vector<std::uint32_t> taken;
  while (taken.size() < count) {
    const std::size_t needed = count - taken.size();
    PoolRequest request{.what = PoolAsk::kTake, .domain = domain, .needed = needed};
    request.count = static_cast<std::uint32_t>(std::min<std::size_t>(needed, kMaxTaken));
    const absl::StatusOr<PoolReply> reply = Request(request);
    if (!reply.ok()) {
      if (const absl::Status back = Return(taken); !back.ok()) {
        spdlog::error("{} chunks are lost until this process ends: {}", taken.size(),
                      back.ToString());
      }
      return reply.status();
    }
    taken.insert(taken.end(), reply->numbers.begin(), reply->numbers.begin() + request.count);
  }
  return taken;
}

absl::Status PoolClient::Return(std::span<const std::uint32_t> numbers) const {
  while (!numbers.empty()) {
    const auto piece = numbers.first(std::min<std::size_t>(numbers.size(), kMaxTaken));
    PoolRequest request{.what = PoolAsk::kReturn,
                        .count = static_cast<std::uint32_t>(piece.size())};
    std::ranges::copy(piece, request.numbers.begin());
    TORPOR_RETURN_IF_ERROR(Request(request).status());
    numbers = numbers.subspan(piece.size());
  }
  return absl::OkStatus();
}

absl::Status PoolClient::Outlive(Duration patience) const {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  return Request({.what = PoolAsk::kOutlive, .patience_ms = static_cast<std::uint64_t>(ms)})
      .status();
}

}  // namespace torpor::executor
