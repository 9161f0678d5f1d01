#include "server/executor/session/batch_runner.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "proto/wire/hardware_errors.h"
#include "server/executor/gpu/call_status.h"
#include "server/executor/gpu/cuda_status.h"

namespace torpor::executor {
namespace {

constexpr auto kAttachId = static_cast<std::uint32_t>(wire::ProtocolCall::kAttach);
constexpr auto kDrainId = static_cast<std::uint32_t>(wire::ProtocolCall::kDrain);
constexpr auto kCheckpointId = static_cast<std::uint32_t>(wire::ProtocolCall::kCheckpoint);

// How long a checkpoint waits for the session's work.
constexpr Duration kCheckpointPatience = std::chrono::seconds(10);

// Whether a command can neither read nor write the session's memory.
bool LeavesMemoryAlone(std::uint32_t call_id) {
  switch (call_id) {
    case wire::StreamCreate::kCallId:
    case wire::StreamDestroy::kCallId:
    case wire::StreamWaitEvent::kCallId:
    case wire::StreamMark::kCallId:
    case wire::StreamFence::kCallId:
    case wire::StreamSynchronize::kCallId:
    case wire::DeviceSynchronize::kCallId:
    case wire::EventCreate::kCallId:
    case wire::EventDestroy::kCallId:
    case wire::EventRecord::kCallId:
    case wire::EventImport::kCallId:
    case wire::EventSynchronize::kCallId:
    case wire::EventElapsedTime::kCallId:
    case wire::KernelCreate::kCallId:
    case wire::FuncSetAttribute::kCallId:
    case wire::FuncGetAttributes::kCallId:
    case wire::ModuleLoad::kCallId:
    case wire::ModuleUpload::kCallId:
    case wire::ModuleUse::kCallId:
    case wire::OccupancyMaxActiveBlocks::kCallId:
    case wire::OccupancyClusters::kCallId:
      return true;
    default:
      return false;
  }
}

// What a call of a library may launch beside its first kernel.
constexpr std::size_t kPiecesOfLibraryCall = 7;

// Takes the next command off `rest`.
absl::StatusOr<wire::CommandHeader> ReadCommand(std::span<const std::uint8_t>& rest,
                                                std::span<const std::uint8_t>& fields) {
  wire::CommandHeader header;
  if (rest.size() < sizeof header) {
    return absl::InvalidArgumentError("the batch ends in the middle of a command");
  }
  std::memcpy(&header, rest.data(), sizeof header);
  if (header.size_bytes < sizeof header || header.size_bytes % wire::kAlignment != 0 ||
      header.size_bytes > rest.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a command claims ", header.size_bytes,
                                                   " bytes where ", rest.size(), " are left"));
  }
  fields = rest.subspan(sizeof header, header.size_bytes - sizeof header);
  rest = rest.subspan(header.size_bytes);
  return header;
}

}  // namespace

absl::StatusOr<ReceivedBatch> ReadBatch(std::span<const std::uint8_t> frame) {
  ReceivedBatch batch;
  if (frame.size() < sizeof batch.header) {
    return absl::InvalidArgumentError("a frame is too short for a batch");
  }
  std::memcpy(&batch.header, frame.data(), sizeof batch.header);
  batch.commands = frame.subspan(sizeof batch.header);
  return batch;
}

absl::StatusOr<wire::Attach> ReadAttach(std::span<const std::uint8_t> frame) {
  TORPOR_ASSIGN_OR_RETURN(ReceivedBatch batch, ReadBatch(frame));
  std::span<const std::uint8_t> fields;
  TORPOR_ASSIGN_OR_RETURN(const wire::CommandHeader header, ReadCommand(batch.commands, fields));
  wire::Attach attach;
  wire::Reader reader(fields);
  reader(attach);
  if (header.call_id != kAttachId || !reader.done() || !batch.commands.empty()) {
    return absl::InvalidArgumentError("the first frame of a stream must be one Attach");
  }
  return attach;
}

absl::Status BatchRunner::Run(ReceivedBatch& batch, ReplySink& replies) {
  const std::uint64_t first = batch.header.first_command;
  if (first != 0 && batch.header.lease_id == lease_ && first <= last_command_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch begins with command ", first, " after command ", last_command_));
  }
  counts_commands_ = first != 0;
  if (counts_commands_) {
    lease_ = batch.header.lease_id;
    last_command_ = first - 1;
  }
  runtime_.SetLease({batch.header.lease_id});
  for (; !batch.IsDone(); --batch.header.command_count) {
    if (!runtime_.streams().pending().HasRoom()) return absl::OkStatus();
    std::span<const std::uint8_t> fields;
    TORPOR_ASSIGN_OR_RETURN(const wire::CommandHeader header, ReadCommand(batch.commands, fields));
    TORPOR_RETURN_IF_ERROR(RunCommand(header.call_id, fields, replies));
    if (counts_commands_) batch.header.first_command = last_command_ + 1;
  }
  if (!batch.commands.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(batch.commands.size(), " bytes follow the last command of a batch"));
  }
  return absl::OkStatus();
}

absl::Status BatchRunner::RunCommand(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                                     ReplySink& replies) {
  const bool is_cudart =
      call_id == kDrainId || call_id == kCheckpointId || cuda_api::IsCudartCall(call_id);
  if (call_id == kDrainId) {
    if (!fields.empty()) return absl::InvalidArgumentError("a Drain has no fields");
    RunDrain();
  } else if (call_id == kCheckpointId) {
    if (!fields.empty()) return absl::InvalidArgumentError("a Checkpoint has no fields");
    RunCheckpoint();
  } else {
    CountCommand(call_id);
    TORPOR_RETURN_IF_ERROR(Dispatch(call_id, fields, outcome_));
    if (IsLibraryWork(call_id)) runtime_.streams().pending().NoteMore(kPiecesOfLibraryCall);
  }
  if (!outcome_.status.ok()) {
    const auto error = static_cast<cudaError_t>(outcome_.status.code);
    const bool sticky = is_cudart && IsSticky(error);
    if (sticky && !lost_) lost_ = outcome_.status;
    // The process ends, and torpord has the work repeated elsewhere or tells the client.
    if (lost_ && wire::IsHardwareError(lost_->code)) return absl::OkStatus();
    // Another library's failure comes to light in CUDA's own terms.
    if (sticky || !outcome_.is_sync) {
      Remember(is_cudart ? error : cudaErrorUnknown, outcome_.status.message);
    }
  }
  if (!outcome_.is_sync) return absl::OkStatus();
  PassOutputOn(replies);
  Answer(call_id, replies);
  return absl::OkStatus();
}

absl::Status BatchRunner::Dispatch(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                                   cuda_api::CallOutcome& outcome) {
  if (cuda_api::IsCublasCall(call_id)) {
    return cuda_api::DispatchCublas(cublas_, call_id, fields, outcome);
  }
  if (cuda_api::IsCublasLtCall(call_id)) {
    return cuda_api::DispatchCublasLt(cublaslt_, call_id, fields, outcome);
  }
  if (cuda_api::IsCudnnCall(call_id)) {
    return cuda_api::DispatchCudnn(cudnn_, call_id, fields, outcome);
  }
  return cuda_api::DispatchCudart(runtime_.handlers(), call_id, fields, outcome);
}

cuda_api::CallStatus BatchRunner::RunInGraph(const wire::GraphCommand& command) {
  const absl::Status decoded = Dispatch(command.call_id, command.fields, graph_outcome_);
  if (!decoded.ok()) return ToCallStatus(decoded, "a command of a graph");
  if (graph_outcome_.status.ok() || cuda_api::IsCudartCall(command.call_id)) {
    return std::move(graph_outcome_.status);
  }
  // As outside a graph: another library's failure comes to light in CUDA's own terms.
  return cuda_api::CallFailed(cudaErrorUnknown, std::move(graph_outcome_.status.message));
}

void BatchRunner::RunDrain() {
  outcome_.is_sync = true;
  outcome_.result.clear();
  wire::DrainReply drained;
  outcome_.status = runtime_.Synchronize();
  if (!outcome_.status.ok()) return;
  runtime_.ForgetWork();
  ReleaseLibraryHandles();
  // Events without a time from the driver are left out; the work is done all the same.
  runtime_.events().TakeCompleted(drained.events);
  wire::Writer writer(outcome_.result);
  writer(drained);
}

void BatchRunner::RunCheckpoint() {
  outcome_.is_sync = true;
  outcome_.result.clear();
  // Work may wait for later commands.
  const TimePoint deadline = SteadyClock().Now() + kCheckpointPatience;
  if (runtime_.streams().SynchronizeUntil(deadline) == CUDA_ERROR_TIMEOUT) {
    outcome_.status = cuda_api::CallFailed(cudaErrorNotReady, "work on the GPU goes on and on");
    return;
  }
  outcome_.status = runtime_.Synchronize();
  if (!outcome_.status.ok()) return;
  outcome_.status = ToCallStatus(save_image_(last_command_), "saving the memory");
  if (!outcome_.status.ok()) return;
  wire::CheckpointReply saved;
  saved.saved_command = last_command_;
  runtime_.events().TakeCompleted(saved.events);
  wire::Writer writer(outcome_.result);
  writer(saved);
}

void BatchRunner::CountCommand(std::uint32_t call_id) {
  runtime_.NoteCommand(call_id);
  if (counts_commands_) ++last_command_;
  // Uploads alone leave memory fresh.
  FreshMemory& fresh = image_.uploads().fresh();
  if (fresh.has_any() && call_id != wire::MemcpyHtoD::kCallId && !LeavesMemoryAlone(call_id)) {
    fresh.UseAll();
  }
}

void BatchRunner::ReleaseLibraryHandles() {
  cublas_.ReleaseHandles();
  cudnn_.ReleaseHandle();
  runtime_.graphs().NoteReleasedLibraries();
}

CUresult BatchRunner::Drain(TimePoint deadline) {
  CUresult result = runtime_.streams().SynchronizeUntil(deadline);
  // All work is done, but the driver writes printed text only in synchronizing calls, and the text
  // must not appear in another session.
  if (result == CUDA_SUCCESS) result = runtime_.streams().Synchronize();
  if (result == CUDA_SUCCESS) {
    runtime_.ForgetWork();
    ReleaseLibraryHandles();
  }
  output_.Discard();
  return result;
}

void BatchRunner::Remember(cudaError_t error, const std::string& message) {
  if (async_error_ != cudaSuccess && !IsSticky(error)) return;
  if (IsSticky(async_error_)) return;
  async_error_ = error;
  async_message_ = message;
}

void BatchRunner::Answer(std::uint32_t call_id, ReplySink& replies) {
  reply_.call_id = call_id;
  reply_.status = outcome_.status.code;
  reply_.async_error = async_error_;
  reply_.async_error_is_sticky = IsSticky(async_error_) ? 1 : 0;
  reply_.message = outcome_.status.ok() ? async_message_ : outcome_.status.message;
  std::swap(reply_.result, outcome_.result);
  if (!IsSticky(async_error_)) {
    async_error_ = cudaSuccess;
    async_message_.clear();
  }
  Send(reply_, replies);
}

void BatchRunner::PassOutputOn(ReplySink& replies) {
  wire::Reply output;
  output.call_id = static_cast<std::uint32_t>(wire::ProtocolCall::kOutput);
  // Bounds the parts, so that a kernel that prints without end delays no reply: the rest follows
  // with the next reply.
  constexpr int kMaxParts = 64;
  // Assertions lose the context, and nothing else that is said concerns the program.
  if (IsSticky(async_error_)) output.message = output_.TakeSaid();
  for (int part = 0; part < kMaxParts; ++part) {
    if (!output_.TakePrinted(output.result) && output.message.empty()) return;
    Send(output, replies);
    output.message.clear();
  }
}

void BatchRunner::Send(wire::Reply& reply, ReplySink& replies) {
  encoded_.clear();
  wire::Writer writer(encoded_);
  writer(reply);
  replies.Send(encoded_);
}

}  // namespace torpor::executor
