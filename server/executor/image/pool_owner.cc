#include "server/executor/image/pool_owner.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include <cerrno>
#include <chrono>
#include <span>
#include <utility>

#include "base/poll_timeout.h"
#include "base/status_macros.h"
#include "server/executor/gpu/packet_server.h"
#include "server/executor/gpu/packet_socket.h"

namespace torpor::executor {

absl::StatusOr<std::unique_ptr<PoolOwner>> PoolOwner::Create(const Device& device,
                                                             const Options& options) {
  TORPOR_ASSIGN_OR_RETURN(const Bytes free, device.FreeMemory());
  return std::unique_ptr<PoolOwner>(new PoolOwner(device, options, free));
}

void PoolOwner::Serve(UniqueFd listener) {
  PacketServer server(std::move(listener), UniqueFd(eventfd(0, EFD_CLOEXEC)),
                      [this](int connection) { return Answer(connection); });
  const SteadyClock clock;
  TimePoint alone_since = clock.Now();
  while (true) {
    if (server.connections() > 0) alone_since = clock.Now();
    const TimePoint end = patience_ ? alone_since + *patience_ : TimePoint::max();
    if (server.connections() == 0 && clock.Now() >= end) return;
    server.Serve(server.connections() > 0 ? -1 : PollTimeout(end, clock.Now()));
  }
}

bool PoolOwner::Answer(int connection) {
  PoolRequest request;
  switch (ReceivePacket(connection, std::as_writable_bytes(std::span(&request, 1)))) {
    case Received::kNothing:
      return true;
    case Received::kEnd:
      return false;
    case Received::kPacket:
      break;
  }
  PoolReply reply;
  absl::StatusOr<std::vector<UniqueFd>> descriptors = Carry(request, reply);
  if (!descriptors.ok()) {
    spdlog::error("the GPU's memory: {}", descriptors.status().ToString());
    reply.error = absl::IsInvalidArgument(descriptors.status()) ? EINVAL : EIO;
    descriptors.emplace();
  }
  return SendPacket(connection, std::as_bytes(std::span(&reply, 1)), *descriptors);
}

absl::StatusOr<std::vector<UniqueFd>> PoolOwner::Carry(const PoolRequest& request,
                                                       PoolReply& reply) {
  std::vector<UniqueFd> descriptors;
  switch (request.what) {
    case PoolAsk::kTry: {
      TORPOR_ASSIGN_OR_RETURN(descriptors, ExportOne());
      break;
    }
    case PoolAsk::kOpen:
      TORPOR_RETURN_IF_ERROR(Open());
      reply.pool = description_;
      break;
    case PoolAsk::kFetch: {
      TORPOR_ASSIGN_OR_RETURN(descriptors, Export(request));
      reply.pool = description_;
      break;
    }
    case PoolAsk::kOutlive:
      Outlive(std::chrono::milliseconds(request.patience_ms));
      break;
    default:
      return absl::InvalidArgumentError("an unknown request");
  }
  return descriptors;
}

absl::StatusOr<std::vector<UniqueFd>> PoolOwner::ExportOne() {
  if (pool_) return Export({.what = PoolAsk::kFetch, .count = 1});
  TORPOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<PhysicalPool> one,
      PhysicalPool::Create(device_, options_.chunk_bytes, options_.chunk_bytes));
  if (!one->can_export()) {
    return absl::FailedPreconditionError("the driver lets no other process have this memory");
  }
  TORPOR_ASSIGN_OR_RETURN(UniqueFd descriptor, one->Export(0));
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(std::move(descriptor));
  return descriptors;
}

absl::Status PoolOwner::Open() {
  if (pool_) return absl::OkStatus();
  TORPOR_ASSIGN_OR_RETURN(const Bytes free, device_.FreeMemory());
  const PoolNeeds needs{.total = device_.properties().total_bytes,
                        .free = free,
                        .reserve = options_.driver_reserve,
                        .spare = free_alone_ > free ? free_alone_ - free : 0,
                        .asked = options_.pool_bytes};
  TORPOR_ASSIGN_OR_RETURN(pool_, MakePool(device_, needs, options_.chunk_bytes));
  description_ = Describe(*pool_);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<UniqueFd>> PoolOwner::Export(const PoolRequest& request) const {
  const bool is_inside = pool_ && request.count > 0 && request.count <= kMaxDescriptors &&
                         request.first < pool_->chunks() &&
                         request.count <= pool_->chunks() - request.first;
  if (!is_inside) return absl::InvalidArgumentError("a request for chunks that there are not");
  std::vector<UniqueFd> descriptors;
  for (std::uint32_t i = 0; i < request.count; ++i) {
    TORPOR_ASSIGN_OR_RETURN(UniqueFd descriptor,
                            pool_->Export(static_cast<std::uint32_t>(request.first) + i));
    descriptors.push_back(std::move(descriptor));
  }
  return descriptors;
}

void PoolOwner::Outlive(Duration patience) {
  patience_ = patience;
  // Until here the kernel ends the process with its torpord, which did not know of it yet.
  prctl(PR_SET_PDEATHSIG, 0);
}

}  // namespace torpor::executor
