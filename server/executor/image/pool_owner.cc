#include "server/executor/image/pool_owner.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "base/poll_timeout.h"
#include "base/status_macros.h"
#include "server/executor/gpu/packet_server.h"
#include "server/executor/gpu/packet_socket.h"

namespace torpor::executor {

namespace {

int ErrnoOf(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return EINVAL;
  return absl::IsResourceExhausted(status) ? ENOSPC : EIO;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PoolOwner>> PoolOwner::Create(const Device& device,
                                                             const Options& options,
                                                             WatchProcess watch) {
  TORPOR_ASSIGN_OR_RETURN(const Bytes free, device.FreeMemory());
  return std::unique_ptr<PoolOwner>(new PoolOwner(device, options, free, std::move(watch)));
}

void PoolOwner::Serve(UniqueFd listener) {
  PacketServer server(
      std::move(listener), UniqueFd(eventfd(0, EFD_CLOEXEC)), sizeof(PoolRequest),
      [this](int connection, std::span<const std::byte> packet) {
        PoolRequest request;
        std::memcpy(&request, packet.data(), sizeof request);
        return Answer(connection, request);
      },
      [this](int connection) {
        if (lender_) lender_->OnClosing(connection);
      });
  const SteadyClock clock;
  TimePoint alone_since = clock.Now();
  while (true) {
    if (server.connections() > 0) alone_since = clock.Now();
    const TimePoint end = patience_ ? alone_since + *patience_ : TimePoint::max();
    if (server.connections() == 0 && clock.Now() >= end) return;
    server.Serve(server.connections() > 0 ? -1 : PollTimeout(end, clock.Now()));
  }
}

bool PoolOwner::Answer(int connection, const PoolRequest& request) {
  PoolReply reply;
  absl::StatusOr<std::vector<int>> descriptors = Carry(connection, request, reply);
  if (!descriptors.ok()) {
    reply.error = ErrnoOf(descriptors.status());
    const bool is_usual = request.what == PoolAsk::kTake && reply.error == ENOSPC;
    if (!is_usual) spdlog::error("the GPU's memory: {}", descriptors.status().ToString());
    descriptors.emplace();
  }
  if (lender_) reply.free_chunks = lender_->free_chunks();
  return SendPacket(connection, std::as_bytes(std::span(&reply, 1)), *descriptors);
}

absl::StatusOr<std::vector<int>> PoolOwner::Carry(int connection, const PoolRequest& request,
                                                  PoolReply& reply) {
  switch (request.what) {
    case PoolAsk::kTry:
      return pool_ ? Export(0, 1) : ExportSample();
    case PoolAsk::kOpen:
      TORPOR_RETURN_IF_ERROR(Open());
      reply.pool = description_;
      return std::vector<int>();
    case PoolAsk::kFetch:
      return Export(request.first, request.count);
    case PoolAsk::kOutlive:
      Outlive(std::chrono::milliseconds(request.patience_ms));
      return std::vector<int>();
    case PoolAsk::kTake:
    case PoolAsk::kReturn:
      return Lend(connection, request, reply);
  }
  return absl::InvalidArgumentError("an unknown request");
}

absl::StatusOr<std::vector<int>> PoolOwner::Lend(int connection, const PoolRequest& request,
                                                 PoolReply& reply) {
  if (!lender_) return absl::InvalidArgumentError("a request for chunks before the pool is open");
  TORPOR_RETURN_IF_ERROR(request.what == PoolAsk::kTake ? lender_->Take(connection, request, reply)
                                                        : lender_->Return(connection, request));
  return std::vector<int>();
}

absl::StatusOr<std::vector<int>> PoolOwner::ExportSample() {
  TORPOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<PhysicalPool> one,
      PhysicalPool::Create(device_, options_.chunk_bytes, options_.chunk_bytes));
  if (!one->can_export()) {
    return absl::FailedPreconditionError("the driver lets no other process have this memory");
  }
  TORPOR_ASSIGN_OR_RETURN(sample_, one->Export(0));
  return std::vector<int>{sample_.get()};
}

Bytes PoolOwner::RoomForOthers(Bytes free) const {
  const Bytes taken_by_first = free_alone_ > free ? free_alone_ - free : 0;
  return taken_by_first * static_cast<Bytes>(std::max(options_.contexts - 1, 0));
}

absl::Status PoolOwner::Open() {
  if (pool_) return absl::OkStatus();
  sample_.Reset();  // which holds a chunk's memory
  TORPOR_ASSIGN_OR_RETURN(const Bytes free, device_.FreeMemory());
  const PoolNeeds needs{.total = device_.properties().total_bytes,
                        .free = free,
                        .reserve = options_.driver_reserve,
                        .spare = RoomForOthers(free),
                        .asked = options_.pool_bytes};
  TORPOR_ASSIGN_OR_RETURN(pool_, MakePool(device_, needs, options_.chunk_bytes));
  cleaner_.emplace(device_, *pool_);
  lender_.emplace(pool_->chunks(), watch_, [this](std::span<const std::uint32_t> chunks) {
    return cleaner_->Clear(chunks);
  });
  description_ = Describe(*pool_);
  exported_.resize(pool_->chunks());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> PoolOwner::Export(std::uint64_t first, std::uint32_t count) {
  const bool is_inside = count > 0 && count <= kMaxDescriptors && first < exported_.size() &&
                         count <= exported_.size() - first;
  if (!is_inside) return absl::InvalidArgumentError("a request for chunks that there are not");
  std::vector<int> descriptors;
  descriptors.reserve(count);
  for (std::uint64_t number = first; number < first + count; ++number) {
    UniqueFd& exported = exported_[number];
    if (!exported) {
      TORPOR_ASSIGN_OR_RETURN(exported, pool_->Export(static_cast<std::uint32_t>(number)));
    }
    descriptors.push_back(exported.get());
  }
  return descriptors;
}

void PoolOwner::Outlive(Duration patience) {
  patience_ = patience;
  // Until here the kernel ends the process with its torpord, which did not know of it yet.
  prctl(PR_SET_PDEATHSIG, 0);
}

}  // namespace torpor::executor
