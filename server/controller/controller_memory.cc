#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "memory/extent_set.h"
#include "server/controller/controller.h"
#include "server/controller/cuda_errors.h"
#include "server/controller/extents.h"

// Allocations of sessions, on the device and in the host arena.
namespace torpor::server {
namespace {

constexpr Bytes kHostAlignment = 4 * kKiB;
// Bounds what one session can make the daemon remember.
constexpr std::size_t kMaxBlocks = 1 << 20;
// Written back at a time on an idle GPU. A request that comes meanwhile waits for this: about a
// third of a millisecond on a link of 25 GB/s, and another one where host memory is pinned first.
constexpr Bytes kPartBytes = 8 * kMiB;

bool IsDrop(WriteBackReason reason) {
  return reason == WriteBackReason::kEviction || reason == WriteBackReason::kMove;
}

}  // namespace

Bytes Controller::MemoryLimit(const Instance& instance) const {
  return instance.config.memory_limit > 0 ? instance.config.memory_limit : LargestPool();
}

Bytes Controller::LiveBytes(const Instance& instance, int device_index) const {
  Bytes bytes = 0;
  for (const SessionPtr& session : SessionsOf(instance)) {
    if (session->device_index == device_index) bytes += session->device->live_bytes();
  }
  return bytes;
}

Bytes Controller::FreeBytes(const Instance& instance, int device_index) const {
  const Bytes limit = MemoryLimit(instance);
  return limit - std::min(limit, LiveBytes(instance, device_index));
}

void Controller::Reply(Session& session, std::uint64_t request, std::int32_t error,
                       const std::string& message, std::uint64_t address) {
  session.link->Send(wire::MemoryReply{request, error, message, address});
}

void Controller::Handle(const SessionPtr& session, const wire::MemGetInfo& call) {
  const Instance& instance = instances_.at(session->instance);
  session->link->Send(wire::MemGetInfoReply{
      call.request_id, FreeBytes(instance, session->device_index), MemoryLimit(instance)});
}

void Controller::Handle(const SessionPtr& session, const wire::Malloc& call) {
  // One after another: the second must not use a chunk for which the first still waits.
  session->mallocs.Add(
      [this, session, call](const StepQueue::Finish& finish) { MallocNow(session, call, finish); });
}

void Controller::MallocNow(const SessionPtr& session, const wire::Malloc& call,
                           const StepQueue::Finish& finish) {
  const Instance& instance = instances_.at(session->instance);
  const auto refuse = [&](const std::string& why) {
    Reply(*session, call.request_id, kCudaErrorMemoryAllocation, why, 0);
    finish();
  };
  if (sessions_.count(session->id) == 0) return refuse("the session is closed");
  const Bytes limit = MemoryLimit(instance);
  const Bytes live = LiveBytes(instance, session->device_index);
  const bool fits = call.bytes <= limit && live <= limit - call.bytes;
  if (call.bytes == 0 || !fits || session->device->live_count() >= kMaxBlocks) {
    return refuse(absl::StrCat("cannot allocate ", call.bytes, " bytes: function ",
                               instance.config.name, " uses ", live, " of its memory_limit ",
                               limit));
  }
  const Bytes before = session->device->occupied_bytes();
  const std::optional<memory::Block> block = session->device->Allocate(call.bytes);
  if (!block) {
    return refuse(absl::StrCat("no room for ", call.bytes, " bytes in the session's addresses"));
  }
  const Bytes chunks = session->device->occupied_bytes() - before;
  const Allocation allocation = {session, call.request_id, *block, finish};
  if (chunks == 0) return Grow(allocation);
  session->unanswered_growth = chunks;
  const scheduler::GrowthId growth{next_growth_++};
  growths_[growth] = [this, allocation, chunks](bool is_allowed) {
    allocation.session->unanswered_growth = 0;
    if (sessions_.count(allocation.session->id) == 0) {
      // It was forgotten, with all that it had, while the growth waited.
      if (is_allowed) Feed(scheduler::ImageShrunk{PartOf(*allocation.session), chunks});
      return allocation.finish();
    }
    if (is_allowed) return Grow(allocation);
    UndoMalloc(allocation, chunks, "the image would be larger than a GPU");
  };
  Feed(scheduler::GrowthWanted{growth, PartOf(*session), chunks});
}

void Controller::Grow(const Allocation& what) {
  what.session->steps.Add([this, what](const StepQueue::Finish& finish_step) {
    const SessionPtr& session = what.session;
    const auto succeed = [what, finish_step] {
      Reply(*what.session, what.request, kCudaSuccess, "",
            what.session->device_base + what.block.offset);
      what.finish();
      finish_step();
    };
    // The scheduler has set no memory aside where an image leaves.
    const bool is_here = session->resident && !session->is_source_only();
    if (!is_here || !session->is_announced) return succeed();
    v1::DaemonMessage message;
    message.mutable_grow()->set_session_id(session->id.value);
    SetExtent(*message.mutable_grow()->mutable_extent(), what.block);
    const auto fail = [this, what, finish_step](const absl::Status& status) {
      UndoMalloc(what, 0, std::string(status.message()));
      finish_step();
    };
    Run(*session->resident, message, [=, this](const OperationResult& result) {
      if (result.is_executor_lost) return succeed();
      if (!result.status.ok()) return fail(result.status);
      UpdatePeers(what.session, [succeed, fail](const absl::Status& status) {
        status.ok() ? succeed() : fail(status);
      });
    });
  });
}

void Controller::UndoMalloc(const Allocation& what, Bytes uncharged, const std::string& message) {
  const Bytes freed = FreeBlock(*what.session, what.block.offset);
  // Another block of the same chunks may have gone meanwhile.
  if (freed > uncharged) Feed(scheduler::ImageShrunk{PartOf(*what.session), freed - uncharged});
  Reply(*what.session, what.request, kCudaErrorMemoryAllocation, message, 0);
  what.finish();
}

Bytes Controller::FreeBlock(Session& session, Bytes offset) {
  const Bytes before = session.device->occupied_bytes();
  session.swaps.OnFreed(offset);
  session.device->Free(offset);
  return before - session.device->occupied_bytes();
}

void Controller::Handle(const SessionPtr& session, const wire::Free& call) {
  session->steps.Add([this, session, call](const StepQueue::Finish& finish) {
    const Bytes offset = call.address - session->device_base;
    const auto answer = [session, call, finish](bool is_known) {
      const std::string why =
          is_known ? "" : absl::StrCat("no allocation begins at 0x", absl::Hex(call.address));
      Reply(*session, call.request_id, is_known ? kCudaSuccess : kCudaErrorInvalidValue, why, 0);
      finish();
    };
    const FreeTime when = NoteFree(*session, offset);
    if (when != FreeTime::kNow) return answer(when == FreeTime::kWhenClosed);
    FreeNow(session, offset, answer);
  });
}

void Controller::FreeNow(const SessionPtr& session, Bytes offset,
                         const std::function<void(bool)>& then) {
  const Bytes before = session->device->occupied_bytes();
  const std::optional<memory::Block> block = session->device->Free(offset);
  if (!block) return then(false);
  session->swaps.OnFreed(offset);
  const Bytes chunks = before - session->device->occupied_bytes();
  const memory::Block emptied = session->device->EmptiedChunks(*block);
  const auto done = [this, session, block, emptied, chunks, then] {
    if (chunks > 0) Feed(scheduler::ImageShrunk{PartOf(*session), chunks});
    DiscardImage(session, *block, emptied, [then] { then(true); });
  };
  if (!session->resident) return done();
  v1::DaemonMessage message;
  message.mutable_shrink()->set_session_id(session->id.value);
  SetExtent(*message.mutable_shrink()->mutable_extent(), *block);
  SetLive(*message.mutable_shrink()->mutable_live(), *session->device);
  WithdrawFromPeers(session, /*nothing=*/false, [this, session, message, done] {
    if (!session->resident) return done();  // its executor has died meanwhile
    Run(*session->resident, message, [this, session, done](const OperationResult& result) {
      // Room that is only believed to be free would make later swaps fail.
      if (!result.status.ok() && !result.is_executor_lost) {
        Condemn(*ExecutorOf(*session->resident), result.status.ToString());
      }
      done();
    });
  });
}

void Controller::DiscardImage(const SessionPtr& session, memory::Block block, memory::Block emptied,
                              const TaskLoop::Task& then) {
  if (emptied.bytes == 0 || session->image_holders.empty()) {
    return Discard(session, wire::SharedMemory::kImage, block, emptied, then);
  }
  v1::DaemonMessage message;
  message.mutable_release_image()->set_session_id(session->id.value);
  SetExtent(*message.mutable_release_image()->mutable_extent(), emptied);
  RunOn(session->image_holders, message, [=, this](const absl::Status& status) {
    // Pages that an executor keeps must stay the file's, or its later copies miss the file.
    if (!status.ok()) spdlog::warn("freed host memory stays in use: {}", status.ToString());
    Discard(session, wire::SharedMemory::kImage, block, status.ok() ? emptied : memory::Block{},
            then);
  });
}

void Controller::Discard(const SessionPtr& session, wire::SharedMemory what, memory::Block block,
                         memory::Block unused, TaskLoop::Task then) {
  memory::ExtentSet rest;
  rest.Add({block.offset, block.offset + block.bytes});
  rest.Remove({unused.offset, unused.offset + unused.bytes});
  loop_.InBackground(
      [memory = session->memory, what, unused, rest] {
        absl::Status status;
        if (unused.bytes > 0) status = memory->Discard(what, unused.offset, unused.bytes);
        for (const memory::Extent& extent : rest.extents()) {
          status.Update(memory->Clear(what, extent.begin, extent.bytes()));
        }
        if (!status.ok()) spdlog::error("{}", status.ToString());
      },
      std::move(then));
}

void Controller::Handle(const SessionPtr& session, const wire::HostAlloc& call) {
  session->steps.Add([this, session, call](const StepQueue::Finish& finish) {
    HostAllocNow(session, call, finish);
  });
}

void Controller::HostAllocNow(const SessionPtr& session, const wire::HostAlloc& call,
                              const StepQueue::Finish& finish) {
  const bool is_sane =
      session->host && call.bytes <= kHostArenaBytes && session->host_blocks.size() < kMaxBlocks;
  const std::optional<memory::Block> block =
      is_sane ? session->host->Allocate(RoundUp(call.bytes, kHostAlignment)) : std::nullopt;
  if (!block) {
    Reply(*session, call.request_id, kCudaErrorMemoryAllocation,
          absl::StrCat("no room for ", call.bytes, " bytes in the session's host arena"), 0);
    return finish();
  }
  session->host_blocks[block->offset] = block->bytes;
  v1::DaemonMessage message;
  message.mutable_map_host()->set_session_id(session->id.value);
  SetExtent(*message.mutable_map_host()->mutable_extent(), *block);
  RunOnAll(message, [this, session, call, block, finish](const absl::Status& status) {
    if (status.ok()) {
      Reply(*session, call.request_id, kCudaSuccess, "", session->host_base + block->offset);
      return finish();
    }
    session->host_blocks.erase(block->offset);
    session->host->Free(block->offset);
    v1::DaemonMessage undo;
    undo.mutable_unmap_host()->set_session_id(session->id.value);
    SetExtent(*undo.mutable_unmap_host()->mutable_extent(), *block);
    RunOnAll(undo, [session, call, status, finish](const absl::Status&) {
      Reply(*session, call.request_id, kCudaErrorMemoryAllocation, std::string(status.message()),
            0);
      finish();
    });
  });
}

void Controller::Handle(const SessionPtr& session, const wire::HostFree& call) {
  session->steps.Add([this, session, call](const StepQueue::Finish& finish) {
    HostFreeNow(session, call, finish);
  });
}

void Controller::HostFreeNow(const SessionPtr& session, const wire::HostFree& call,
                             const StepQueue::Finish& finish) {
  const std::optional<memory::Block> block =
      session->host ? session->host->Free(call.address - session->host_base) : std::nullopt;
  if (!block) {
    Reply(*session, call.request_id, kCudaErrorInvalidValue,
          absl::StrCat("no host allocation begins at 0x", absl::Hex(call.address)), 0);
    return finish();
  }
  session->host_blocks.erase(block->offset);
  v1::DaemonMessage message;
  message.mutable_unmap_host()->set_session_id(session->id.value);
  SetExtent(*message.mutable_unmap_host()->mutable_extent(), *block);
  RunOnAll(message, [this, session, call, block, finish](const absl::Status& status) {
    if (!status.ok()) spdlog::error("unmapping host memory failed: {}", status.ToString());
    const memory::Block unused = status.ok() ? *block : memory::Block{};
    Discard(session, wire::SharedMemory::kHostArena, *block, unused, [session, call, finish] {
      Reply(*session, call.request_id, kCudaSuccess, "", 0);
      finish();
    });
  });
}

void Controller::AddSwap(const SessionPtr& session, GpuIndex gpu, const Executor::OnDone& then,
                         const StepQueue::Step& swap) {
  const std::uint64_t epoch = ExecutorOf(gpu)->epoch();
  session->steps.Add([this, gpu, epoch, then, swap](const StepQueue::Finish& finish) {
    if (ExecutorOf(gpu)->epoch() == epoch) return swap(finish);
    then(OperationResult::Lost());
    finish();
  });
}

void Controller::SwapInSession(const SessionPtr& session, GpuIndex gpu,
                               const Executor::OnDone& then) {
  AddSwap(session, gpu, then, [this, session, gpu, then](const StepQueue::Finish& finish) {
    // Those who have its memory open do not know what they would have to wait for.
    if (session->resident == gpu && session->is_arriving && !PeersOf(*session).empty()) {
      session->on_arrival.push_back([session, gpu, then, finish] {
        then(session->resident == gpu ? OperationResult() : OperationResult::Lost());
        finish();
      });
      return;
    }
    const bool is_used = !session->is_lost || IsOpenedByOthers(*session);
    const bool is_needed = session->is_announced && is_used && session->resident != gpu;
    if (!is_needed) {
      then({});
      return finish();
    }
    v1::DaemonMessage message;
    message.mutable_swap_in()->set_session_id(session->id.value);
    session->is_plan_joined = IsSentJoined(*session->device);
    if (session->is_plan_joined) session->swaps.OnUnseenChanges();
    SetPlan(*message.mutable_swap_in()->mutable_live(), *session->device, session->swaps);
    if (session->is_source_only()) {
      const Executor& source = *ExecutorOf(*session->source);
      message.mutable_swap_in()->set_source_socket_path(source.registration().peer_socket_path());
    }
    // Only the session's own work knows what it has to wait for.
    message.mutable_swap_in()->set_is_whole(!PeersOf(*session).empty());
    session->image_holders.insert(gpu);
    session->is_arriving = true;
    session->arrives_at = gpu;
    Run(gpu, message, [this, session, gpu, then, finish](const OperationResult& result) {
      if (!result.status.ok()) {
        OnArrived(*session);
        then(result);
        return finish();
      }
      session->resident = gpu;
      ShareWithPeers(session, [result, then, finish](const absl::Status& status) {
        OperationResult shared = result;
        shared.status = status;
        then(shared);
        finish();
      });
    });
  });
}

void Controller::LearnFromSwapOut(Session& session, const v1::Learned& learned) {
  if (session.is_plan_joined) return;
  if (learned.too_many_holders()) return session.swaps.OnUnseenChanges();
  session.swaps.OnUploaded(OffsetsOf(learned.uploaded()));
  session.swaps.OnLookedAt(OffsetsOf(learned.address_holders()), learned.looked_at_all());
}

void Controller::OnSwapInComplete(const Executor& executor,
                                  const v1::ExecutorMessage::SwapInComplete& what) {
  const SessionPtr session = FindSession(SessionId{what.session_id()});
  if (!session) return;
  const memory::MovedBytes from_host = ToMovedBytes(what.to_device());
  const memory::MovedBytes from_peer = ToMovedBytes(what.from_peer());
  const auto record = [&](SwapPath path, const memory::MovedBytes& bytes) {
    telemetry_.OnSwapIn({instances_.at(session->instance).config.name, executor.gpu(), path, bytes,
                         Duration(static_cast<Duration::rep>(what.duration_ns()))});
  };
  if (from_peer.total() > 0) record(SwapPath::kNvlink, from_peer);
  if (from_peer.total() == 0 || from_host.total() > 0) record(SwapPath::kPcie, from_host);
  // That of an earlier swap-in elsewhere ends nothing.
  if (session->arrives_at != executor.gpu()) return;
  OnArrived(*session);
  NoteArrival(PartOf(*session), executor.gpu());
}

void Controller::NoteArrival(InstanceId part, GpuIndex gpu) {
  const scheduler::NodeState& node = scheduler_.node();
  // Before the answer to the swap-in further sessions may have to come.
  if (node.gpus.at(gpu).loading != part || !node.instances.at(part).image.is_present_on(gpu))
    return;
  const std::vector<SessionPtr> sessions = SessionsOf(PartOf(part));
  const bool is_complete = std::none_of(sessions.begin(), sessions.end(),
                                        [](const auto& session) { return session->is_arriving; });
  if (is_complete) Feed(scheduler::ImageArrived{part, gpu});
}

void Controller::OnArrived(Session& session) {
  session.is_arriving = false;
  // Not from here: this may be the middle of a loss that the scheduler has not heard of yet.
  for (auto& task : std::exchange(session.on_arrival, {})) loop_.Post(std::move(task));
  loop_.Post([this] { AnswerHints(); });
}

void Controller::SwapOutSession(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason,
                                const Executor::OnDone& then) {
  AddSwap(session, gpu, then, [this, session, gpu, reason, then](const StepQueue::Finish& finish) {
    if (!session->is_announced || session->resident != gpu) {
      then({});
      return finish();
    }
    if (!IsDrop(reason)) return WriteBack(session, gpu, reason, /*drop=*/false, then, finish);
    Leave(session, gpu, reason, then, finish);
  });
}

void Controller::Leave(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason,
                       const Executor::OnDone& then, const StepQueue::Finish& finish) {
  session->is_leaving = true;
  WithdrawFromPeers(session, /*nothing=*/true, [=, this] {
    ForgetPeersAt(session, gpu,
                  [=, this] { WriteBack(session, gpu, reason, /*drop=*/true, then, finish); });
  });
}

bool Controller::ForgetsChanges(const Session& session) const {
  return instances_.at(session.instance).config.is_stateless && !session.unsaved_lease &&
         !session.was_opened;
}

void Controller::WriteBack(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason,
                           bool drop, const Executor::OnDone& then,
                           const StepQueue::Finish& finish) {
  const bool is_part = reason == WriteBackReason::kIdle;
  const LeaseId saved = session->unsaved_lease;
  v1::DaemonMessage message;
  message.mutable_swap_out()->set_session_id(session->id.value);
  message.mutable_swap_out()->set_drop(drop);
  message.mutable_swap_out()->set_is_shared(session->was_opened);
  message.mutable_swap_out()->set_becomes_source(reason == WriteBackReason::kMove && !drop);
  message.mutable_swap_out()->set_forgets_changes(IsDrop(reason) && ForgetsChanges(*session));
  // To look at all of the image takes longer than anybody who comes may have to wait.
  message.mutable_swap_out()->set_look_at_all(!is_part && !session->is_plan_joined &&
                                              !session->swaps.knows_holders());
  if (is_part) message.mutable_swap_out()->set_max_bytes(kPartBytes);
  Run(gpu, message, [=, this](const OperationResult& result) {
    if (drop) session->is_leaving = false;
    if (result.status.ok()) {
      LearnFromSwapOut(*session, result.learned);
      if (drop) session->resident.reset();
      if (!result.has_more) OnSaved(*session, saved);
      telemetry_.OnSwapOut({instances_.at(session->instance).config.name, gpu, SwapPath::kPcie,
                            result.to_host, result.duration},
                           reason);
    } else if (is_part) {
      spdlog::warn("GPU {}: not written back while idle: {}", gpu.value, result.status.ToString());
    } else if (!result.is_executor_lost) {
      // What is on the GPU can be neither kept nor trusted; the host's image remains.
      Condemn(*ExecutorOf(gpu), absl::StrCat("swap-out failed: ", result.status.ToString()));
    }
    then(result);
    finish();
  });
}

void Controller::OnSaved(Session& session, LeaseId unsaved_before) {
  if (session.unsaved_lease == unsaved_before) session.unsaved_lease = {};
  session.was_saved = true;
  session.has_changes = false;
}

void Controller::Obey(const scheduler::WriteBack& action) {
  const auto answer = [this, action](bool is_clean) {
    Feed(scheduler::WriteBackDone{action.instance, action.gpu, is_clean});
  };
  const SessionPtr session = UnsavedSessionOf(PartOf(action.instance), action.gpu);
  if (!session) return answer(true);
  if (session->is_arriving) {
    session->on_arrival.push_back([answer] { answer(false); });
    return;
  }
  SwapOutSession(session, action.gpu, WriteBackReason::kIdle,
                 [answer](const OperationResult& result) {
                   // What failed is not tried again before the next lease has ended.
                   if (!result.is_executor_lost) answer(!result.status.ok());
                 });
}

Controller::SessionPtr Controller::UnsavedSessionOf(const Part& part, GpuIndex gpu) const {
  for (const SessionPtr& session : SessionsOf(part)) {
    // Of memory that others reach nobody knows when it changes.
    const bool is_alone = !session->was_opened && PeersOf(*session).empty();
    const bool is_here = session->is_able() && session->resident == gpu && !session->is_leaving;
    if (is_here && is_alone && session->has_changes && !ForgetsChanges(*session)) return session;
  }
  return nullptr;
}

}  // namespace torpor::server
