#include "server/controller/memory/host_allocations.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/controller/memory/file_pages.h"
#include "server/controller/memory/memory_reply.h"
#include "server/controller/model/cuda_errors.h"
#include "server/controller/model/extents.h"

namespace torpor::server {
namespace {

constexpr Bytes kHostAlignment = 4 * kKiB;

v1::DaemonMessage UnmapMessage(const ClientSession& session, memory::Block block) {
  v1::DaemonMessage message;
  message.mutable_unmap_host()->set_session_id(session.id.value);
  SetExtent(*message.mutable_unmap_host()->mutable_extent(), block);
  return message;
}

}  // namespace

void HostAllocations::Alloc(const SessionPtr& session, const wire::HostAlloc& call) {
  const auto alloc = [this, session, call] {
    session->steps.Add([this, session, call](const StepQueue::Finish& finish) {
      AllocNow(session, call, finish);
    });
  };
  // Not in a step: evictions, which make room, are steps of this session, too.
  if (!ReasonToRefuse(*session, call.bytes).empty()) return alloc();
  room_.AwaitFor(*session->memory.host, call.bytes, [session, alloc] {
    if (session->state == ClientSession::State::kOpen) alloc();
  });
}

void HostAllocations::AllocNow(const SessionPtr& session, const wire::HostAlloc& call,
                               const StepQueue::Finish& finish) {
  SessionAllocations& memory = session->memory;
  const absl::StatusOr<memory::Block> block = TakeAddresses(*session, call.bytes);
  if (!block.ok()) {
    SendMemoryReply(*session, call.request_id, kCudaErrorMemoryAllocation,
                    std::string(block.status().message()), 0);
    return finish();
  }
  memory.host_blocks[block->offset] = block->bytes;
  v1::DaemonMessage message;
  message.mutable_map_host()->set_session_id(session->id.value);
  SetExtent(*message.mutable_map_host()->mutable_extent(), *block);
  executors_.RunOnAll(session->domain, message,
                      [this, session, call, block, finish](const absl::Status& status) {
                        if (!status.ok()) return UndoAlloc(session, call, *block, status, finish);
                        NoteAllocated(*session, MemoryKind::kHost, call.request_id, *block);
                        SendMemoryReply(*session, call.request_id, kCudaSuccess, "",
                                        session->memory.host_base + block->offset);
                        finish();
                      });
}

std::string HostAllocations::ReasonToRefuse(const ClientSession& session, Bytes bytes) const {
  if (!session.memory.host) return "the process's first session has its host arena";
  if (bytes == 0 || bytes > kHostArenaBytes || session.memory.host_blocks.size() >= kMaxBlocks) {
    return absl::StrCat("no room for ", bytes, " bytes in the session's host arena of ",
                        kHostArenaBytes);
  }
  const FunctionInstance& instance = instances_.Of(session);
  const Bytes limit = limits_.PinnedLimitOf(instance);
  const Bytes pinned = limits_.PinnedBytes(instance);
  if (bytes <= limit && pinned <= limit - bytes) return "";
  return absl::StrCat("cannot allocate ", bytes, " bytes of pinned memory: function ",
                      instance.full_name, " has ", pinned, " of its pinned_limit ", limit);
}

absl::StatusOr<memory::Block> HostAllocations::TakeAddresses(ClientSession& session, Bytes bytes) {
  const std::string reason = ReasonToRefuse(session, bytes);
  if (!reason.empty()) return absl::ResourceExhaustedError(reason);
  return segments_.AllocateHost(session, RoundUp(bytes, kHostAlignment));
}

void HostAllocations::UndoAlloc(const SessionPtr& session, const wire::HostAlloc& call,
                                memory::Block block, const absl::Status& why,
                                const StepQueue::Finish& finish) {
  session->memory.host_blocks.erase(block.offset);
  session->memory.host->Free(block.offset);
  segments_.Settle(*session);
  executors_.RunOnAll(session->domain, UnmapMessage(*session, block),
                      [session, call, why, finish](const absl::Status&) {
                        SendMemoryReply(*session, call.request_id, kCudaErrorMemoryAllocation,
                                        std::string(why.message()), 0);
                        finish();
                      });
}

void HostAllocations::Free(const SessionPtr& session, const wire::HostFree& call) {
  session->steps.Add(
      [this, session, call](const StepQueue::Finish& finish) { FreeNow(session, call, finish); });
}

void HostAllocations::FreeNow(const SessionPtr& session, const wire::HostFree& call,
                              const StepQueue::Finish& finish) {
  SessionAllocations& memory = session->memory;
  const std::optional<memory::Block> block =
      memory.host ? memory.host->Free(call.address - memory.host_base) : std::nullopt;
  if (!block) {
    SendMemoryReply(*session, call.request_id, kCudaErrorInvalidValue,
                    absl::StrCat("no host allocation begins at 0x", absl::Hex(call.address)), 0);
    return finish();
  }
  memory.host_blocks.erase(block->offset);
  segments_.Settle(*session);
  const auto unmapped = [this, session, call, block, finish](const absl::Status& status) {
    if (!status.ok()) spdlog::error("unmapping host memory failed: {}", status.ToString());
    const memory::Block unused = status.ok() ? *block : memory::Block{};
    DiscardPages(loop_, *session, wire::SharedMemory::kHostArena, *block, unused,
                 [session, call, block, finish] {
                   NoteFreed(*session, MemoryKind::kHost, call.request_id, block->offset);
                   SendMemoryReply(*session, call.request_id, kCudaSuccess, "", 0);
                   finish();
                 });
  };
  executors_.RunOnAll(session->domain, UnmapMessage(*session, *block), unmapped);
}

}  // namespace torpor::server
