#include "server/controller/memory/device_allocations.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/controller/memory/file_pages.h"
#include "server/controller/memory/memory_limits.h"
#include "server/controller/memory/memory_reply.h"
#include "server/controller/model/cuda_errors.h"
#include "server/controller/model/extents.h"
#include "server/controller/model/join.h"

namespace torpor::server {

void DeviceAllocations::GetInfo(const ClientSession& session, const wire::MemGetInfo& call) const {
  const FunctionInstance& instance = instances_.Of(session);
  session.link->Send(wire::MemGetInfoReply{call.request_id,
                                           limits_.FreeBytes(instance, session.device_index),
                                           limits_.LimitOf(instance)});
}

void DeviceAllocations::Restore(const ClientSession& session) {
  const scheduler::GrowthId growth{next_growth_++};
  growths_[growth] = [](bool) {};  // images on no GPU may grow
  events_.Feed(scheduler::GrowthWanted{growth, instances_.ShardOf(session),
                                       session.memory.device->occupied_bytes()});
  if (session.memory.spill.is_on_disk()) {
    events_.Feed(scheduler::ImageSpilled{instances_.ShardOf(session), true});
  }
}

void DeviceAllocations::Malloc(const SessionPtr& session, const wire::Malloc& call) {
  // In order: a second allocation must not use a chunk for which the first still waits.
  session->memory.mallocs.Add([this, session, call](const StepQueue::Finish& finish) {
    if (session->memory.unfinished_frees == 0) return MallocWithRoom(session, call, finish);
    // Clients free memory without waiting for the answer, and may need the room.
    session->steps.Add([this, session, call, finish](const StepQueue::Finish& finish_step) {
      finish_step();
      MallocWithRoom(session, call, finish);
    });
  });
}

void DeviceAllocations::MallocWithRoom(const SessionPtr& session, const wire::Malloc& call,
                                       const StepQueue::Finish& finish) {
  const auto malloc = [this, session, call, finish] { MallocNow(session, call, finish); };
  if (!ReasonToRefuse(*session, call.bytes).empty()) return malloc();
  room_.AwaitFor(*session->memory.device, call.bytes, malloc);
}

std::string DeviceAllocations::ReasonToRefuse(const ClientSession& session, Bytes bytes) const {
  if (!sessions_.Find(session.id)) return "the session is closed";
  const FunctionInstance& instance = instances_.Of(session);
  const Bytes limit = limits_.LimitOf(instance);
  const Bytes live = limits_.LiveBytes(instance, session.device_index);
  const bool fits = bytes <= limit && live <= limit - bytes;
  if (bytes > 0 && fits && session.memory.device->live_count() < kMaxBlocks) return "";
  return absl::StrCat("cannot allocate ", bytes, " bytes: function ", instance.config().name,
                      " uses ", live, " of its memory_limit ", limit);
}

void DeviceAllocations::MallocNow(const SessionPtr& session, const wire::Malloc& call,
                                  const StepQueue::Finish& finish) {
  const auto refuse = [&](const std::string& why) {
    SendMemoryReply(*session, call.request_id, kCudaErrorMemoryAllocation, why, 0);
    finish();
  };
  const std::string reason = ReasonToRefuse(*session, call.bytes);
  if (!reason.empty()) return refuse(reason);
  const absl::StatusOr<memory::Block> block = segments_.AllocateDevice(*session, call.bytes);
  if (!block.ok()) return refuse(std::string(block.status().message()));
  // Chunks shared with earlier allocations are set aside already.
  const memory::Block chunks = session->memory.device->OwnChunks(*block);
  const Allocation allocation = {session, call.request_id, *block, finish};
  if (chunks.bytes == 0) return Grow(allocation);
  session->memory.growth = chunks;
  AskToGrow(allocation, chunks.bytes);
}

void DeviceAllocations::AskToGrow(const Allocation& what, Bytes chunks) {
  const scheduler::GrowthId growth{next_growth_++};
  growths_[growth] = [this, what, chunks](bool is_allowed) {
    what.session->memory.growth = {};
    if (!sessions_.Find(what.session->id)) {
      // The session was forgotten with its memory while the growth waited.
      if (is_allowed) {
        events_.Feed(scheduler::ImageShrunk{instances_.ShardOf(*what.session), chunks});
      }
      return what.finish();
    }
    if (is_allowed) return Grow(what);
    UndoMalloc(what, chunks, "the image would be larger than a GPU");
  };
  events_.Feed(scheduler::GrowthWanted{growth, instances_.ShardOf(*what.session), chunks});
}

void DeviceAllocations::OnGrowthAnswered(scheduler::GrowthId growth, bool is_allowed) {
  const auto answered = growths_.extract(growth);
  answered.mapped()(is_allowed);
}

void DeviceAllocations::Grow(const Allocation& what) {
  what.session->steps.Add(
      [this, what](const StepQueue::Finish& finish_step) { GrowNow(what, finish_step); });
}

void DeviceAllocations::GrowNow(const Allocation& what, const StepQueue::Finish& finish_step) {
  freed_.Reuse(*what.session, what.block,
               [this, what, finish_step] { GrowOnGpu(what, finish_step); });
}

void DeviceAllocations::GrowOnGpu(const Allocation& what, const StepQueue::Finish& finish_step) {
  const SessionPtr& session = what.session;
  const auto succeed = [this, what, finish_step] {
    GrowReplicas(*what.session, what.block, [what, finish_step] {
      NoteAllocated(*what.session, MemoryKind::kDevice, what.request, what.block);
      SendMemoryReply(*what.session, what.request, kCudaSuccess, "",
                      what.session->memory.device_base + what.block.offset);
      what.finish();
      finish_step();
    });
  };
  session->image.NoteReplicasBehind();
  if (!session->image.gpu() || !session->is_announced) return succeed();
  const auto fail = [this, what, finish_step](const absl::Status& status) {
    UndoMalloc(what, 0, std::string(status.message()));
    finish_step();
  };
  v1::DaemonMessage message;
  message.mutable_grow()->set_session_id(session->id.value);
  SetExtent(*message.mutable_grow()->mutable_extent(), what.block);
  executors_.Run(session->On(*session->image.gpu()), std::move(message),
                 [=, this](const OperationResult& result) {
                   if (result.is_executor_lost) return succeed();
                   if (!result.status.ok()) return fail(result.status);
                   peers_.Update(what.session, [succeed, fail](const absl::Status& status) {
                     status.ok() ? succeed() : fail(status);
                   });
                 });
}

void DeviceAllocations::GrowReplicas(const ClientSession& session, memory::Block block,
                                     const TaskLoop::Task& then) {
  Join join([then](const absl::Status&) { then(); });
  // While the image is on no GPU, a copy may be about to be dropped, and the next lease brings the
  // block.
  const bool is_wanted = session.is_announced && session.image.gpu();
  const std::set<GpuIndex> gpus = is_wanted ? session.image.replicas() : std::set<GpuIndex>();
  for (const GpuIndex gpu : gpus) {
    // The room is promised to others.
    if (session.image.IsReplicaGoing(gpu)) continue;
    v1::DaemonMessage message;
    message.mutable_grow()->set_session_id(session.id.value);
    message.mutable_grow()->set_is_replica(true);
    SetExtent(*message.mutable_grow()->mutable_extent(), block);
    join.Add();
    executors_.Run(session.On(gpu), std::move(message), [gpu, join](const OperationResult& result) {
      // The next lease there tries again, if need be with another place for all of the image.
      if (!result.status_unless_lost().ok()) {
        spdlog::warn("GPU {}: a replica does not grow: {}", gpu.value, result.status.ToString());
      }
      join.Done();
    });
  }
  join.Done();
}

void DeviceAllocations::UndoMalloc(const Allocation& what, Bytes uncharged,
                                   const std::string& message) {
  const SessionPtr& session = what.session;
  memory::RangeAllocator& device = *session->memory.device;
  session->learning.OnFreed(what.block.offset);
  device.Free(what.block.offset);
  segments_.Settle(*session);
  // Other blocks of the same chunks may have gone meanwhile, so that the chunks are in use no more.
  const memory::Block emptied = device.EmptiedChunks(what.block);
  if (emptied.bytes > uncharged) {
    events_.Feed(scheduler::ImageShrunk{instances_.ShardOf(*session), emptied.bytes - uncharged});
  }
  if (emptied.bytes > 0) {
    session->steps.Add([this, session, emptied](const StepQueue::Finish& finish) {
      ClearFreed(session, emptied, emptied, finish);
    });
  }
  SendMemoryReply(*what.session, what.request, kCudaErrorMemoryAllocation, message, 0);
  what.finish();
}

void DeviceAllocations::Free(const SessionPtr& session, const wire::Free& call) {
  ++session->memory.unfinished_frees;
  session->steps.Add([this, session, call](const StepQueue::Finish& finish) {
    // What is freed is cleared in host memory. Clients do not wait for that.
    room_.BringBackUntil(
        TimePoint::max(), session,
        [this, session, call, finish](const absl::Status&) { FreeInStep(session, call, finish); });
  });
}

void DeviceAllocations::FreeInStep(const SessionPtr& session, const wire::Free& call,
                                   const StepQueue::Finish& finish) {
  const Bytes offset = call.address - session->memory.device_base;
  const auto answer = [session, call, offset, finish](bool is_known) {
    if (is_known) NoteFreed(*session, MemoryKind::kDevice, call.request_id, offset);
    const std::string why =
        is_known ? "" : absl::StrCat("no allocation begins at 0x", absl::Hex(call.address));
    SendMemoryReply(*session, call.request_id, is_known ? kCudaSuccess : kCudaErrorInvalidValue,
                    why, 0);
    --session->memory.unfinished_frees;
    finish();
  };
  using FreeTime = SharedBlocks::FreeTime;
  const FreeTime when = session->shared.Free(offset);
  if (when != FreeTime::kNow) return answer(when == FreeTime::kWhenClosed);
  FreeNow(session, offset, answer);
}

void DeviceAllocations::FreeNow(const SessionPtr& session, Bytes offset,
                                const std::function<void(bool)>& then) {
  memory::RangeAllocator& device = *session->memory.device;
  const Bytes before = device.occupied_bytes();
  const std::optional<memory::Block> block = device.Free(offset);
  if (!block) return then(false);
  segments_.Settle(*session);
  session->learning.OnFreed(offset);
  const Bytes chunks = before - device.occupied_bytes();
  const memory::Block emptied = device.EmptiedChunks(*block);
  const auto done = [this, session, block, emptied, chunks, then] {
    if (chunks > 0) events_.Feed(scheduler::ImageShrunk{instances_.ShardOf(*session), chunks});
    ClearFreed(session, *block, emptied, [then] { then(true); });
  };
  session->image.NoteReplicasBehind();
  Shrink(session, *block, done);
}

void DeviceAllocations::Shrink(const SessionPtr& session, memory::Block block,
                               const TaskLoop::Task& then) {
  v1::DaemonMessage message;
  message.mutable_shrink()->set_session_id(session->id.value);
  SetExtent(*message.mutable_shrink()->mutable_extent(), block);
  SetLive(*message.mutable_shrink()->mutable_live(), *session->memory.device,
          session->memory.growth);
  // The operation on the image's GPU waits for all copies from replicas.
  const auto shrink_replicas = [this, session, message, then] {
    ShrinkOn(*session, session->image.replicas(), message, then);
  };
  peers_.Withdraw(session, PeerAccess::Keep::kLive, [this, session, message, shrink_replicas] {
    const std::optional<GpuIndex> gpu = session->image.gpu();
    ShrinkOn(*session, gpu ? std::set{*gpu} : std::set<GpuIndex>(), message, shrink_replicas);
  });
}

void DeviceAllocations::ShrinkOn(const ClientSession& session, const std::set<GpuIndex>& gpus,
                                 const v1::DaemonMessage& message, const TaskLoop::Task& then) {
  Join join([then](const absl::Status&) { then(); });
  for (const GpuIndex gpu : gpus) {
    join.Add();
    const ExecutorKey executor = session.On(gpu);
    executors_.Run(executor, message, [this, executor, join](const OperationResult& result) {
      // Room wrongly believed free would make later swaps fail.
      if (!result.status_unless_lost().ok()) executors_.Kill(executor, result.status.ToString());
      join.Done();
    });
  }
  join.Done();
}

void DeviceAllocations::ClearFreed(const SessionPtr& session, memory::Block block,
                                   memory::Block emptied, const TaskLoop::Task& then) {
  if (emptied.bytes > 0) freed_.Add(*session, emptied);
  ClearImage(loop_, *session, block, emptied, then);
}

}  // namespace torpor::server
