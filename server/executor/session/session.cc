#include "server/executor/session/session.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/secret.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

// Time for the work of a broken stream to end when the client reconnects.
constexpr Duration kResetPatience = std::chrono::seconds(10);

// Interval at which a batch without room on the GPU looks for some.
constexpr Duration kRoomPause = std::chrono::microseconds(50);

}  // namespace

Session::Session(const SessionEnvironment& environment, SessionIdentity identity,
                 std::unique_ptr<SessionMemory> memory)
    : environment_(environment),
      identity_(std::move(identity)),
      memory_(std::move(memory)),
      runner_(MakeRunner()) {}

std::unique_ptr<BatchRunner> Session::MakeRunner() {
  return std::make_unique<BatchRunner>(
      environment_.device, environment_.modules, environment_.libraries, environment_.output,
      *memory_, lease_, [this](std::uint64_t last_command) { return SaveInLease(last_command); });
}

absl::Status Session::CheckNoLease(const char* operation) const {
  if (!has_lease()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(operation, " of session ", identity_.id.value,
                                                    " while it holds lease ", lease_.load()));
}

absl::StatusOr<ArrivedBytes> Session::SwapIn(const std::vector<memory::SwapAllocation>& live,
                                             bool is_whole, std::unique_ptr<PeerCopy> source,
                                             bool refreshes,
                                             const std::function<void()>& on_begun) {
  TORPOR_RETURN_IF_ERROR(CheckNoLease("swap-in"));
  DeviceImage& image = memory_->image();
  const bool waits = is_whole || image.options().pipeline == SwapPipeline::kNone;
  {
    MutexLock lock(&run_mutex_);
    if (refreshes) TORPOR_RETURN_IF_ERROR(image.ForgetStale());
    const DeviceImage::ArrivalSteps steps = StepsOfArrival();
    if (waits || source != nullptr || !on_begun) {
      return SwapInAtOnce(live, steps, std::move(source), waits);
    }
    TORPOR_RETURN_IF_ERROR(image.BeginSwapIn(live, steps));
  }
  on_begun();
  TORPOR_RETURN_IF_ERROR(image.ContinueSwapIn());
  MutexLock lock(&run_mutex_);
  return image.FinishSwapIn();
}

DeviceImage::ArrivalSteps Session::StepsOfArrival() {
  const TimePoint start = SteadyClock().Now();
  return {.enqueue_last = [this, before = memory_->image().resident()](CUstream stream)
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                                  run_mutex_) { return RestoreObjects(before, stream); },
          .on_complete =
              [this, start](const ArrivedBytes& bytes) {
                environment_.listener.OnArrival(identity_.id, bytes, SteadyClock().Now() - start);
              }};
}

absl::StatusOr<ArrivedBytes> Session::SwapInAtOnce(const std::vector<memory::SwapAllocation>& live,
                                                   const DeviceImage::ArrivalSteps& steps,
                                                   std::unique_ptr<PeerCopy> source, bool waits) {
  DeviceImage& image = memory_->image();
  TORPOR_ASSIGN_OR_RETURN(const ArrivedBytes copied, image.SwapIn(live, steps, std::move(source)));
  const absl::Status arrived = waits ? image.arrival().Wait() : absl::OkStatus();
  if (arrived.ok()) return copied;
  image.Drop().IgnoreError();
  return arrived;
}

absl::Status Session::RestoreObjects(const memory::ExtentSet& resident_before, CUstream stream) {
  TORPOR_RETURN_IF_ERROR(runner_->RebindTextures());
  TORPOR_RETURN_IF_ERROR(runner_->modules().RestoreVariables(resident_before, stream));
  return runner_->arrays().Restore(resident_before, stream);
}

absl::StatusOr<SwappedOut> Session::SwapOut(const SwapOutOptions& options, CUstream stream,
                                            MemoryFindings& findings) {
  TORPOR_RETURN_IF_ERROR(CheckNoLease("swap-out"));
  MutexLock lock(&run_mutex_);
  DeviceImage& image = memory_->image();
  if (options.is_shared) image.MarkDirty();
  if (options.becomes_source) TORPOR_RETURN_IF_ERROR(image.arrival().Wait());
  DeviceImage::WrittenBack copied;
  if (image.dirty() && !options.forgets_changes) {
    TORPOR_ASSIGN_OR_RETURN(copied, WriteBack(options.max_bytes, stream));
  }
  if (options.forgets_changes) {
    image.ForgetChanges();
  } else {
    image.CommitCheckpoint(last_command_);
  }
  if (options.becomes_source) image.BecomeSource();
  memory::ExtentSet unseen = std::move(copied.extents);
  for (const memory::Extent& extent : std::exchange(unscanned_, {}).extents()) unseen.Add(extent);
  for (const memory::Extent& allocation : image.touches().TakeUploaded(options.max_bytes)) {
    if (findings.uploaded.size() < memory::TouchLog::kMaxNoted) {
      findings.uploaded.push_back(allocation.begin);
    }
    unseen.Add(allocation);
  }
  findings.searched_whole_image = options.searches_whole_image;
  findings.address_holders =
      image.AddressHolders(options.searches_whole_image ? image.resident() : unseen);
  if (!findings.address_holders.empty()) {
    memory_->NoteAddressesAt(identity_.device_base + findings.address_holders.front());
  }
  findings.too_many_holders = findings.address_holders.size() > memory::TouchLog::kMaxNoted;
  if (findings.too_many_holders) findings.address_holders.clear();
  if (options.drop) {
    runner_->EndResidency();
    TORPOR_RETURN_IF_ERROR(image.Drop());
  }
  return SwappedOut{copied.bytes, !options.drop && image.is_partly_saved()};
}

absl::StatusOr<DeviceImage::WrittenBack> Session::WriteBack(Bytes max_bytes, CUstream stream) {
  DeviceImage& image = memory_->image();
  // Variables and arrays are not saved before they have been restored.
  TORPOR_RETURN_IF_ERROR(image.arrival().Wait());
  // Already saved with an earlier part: no work has run since.
  if (!image.is_partly_saved()) {
    TORPOR_RETURN_IF_ERROR(runner_->modules().SaveVariables(stream));
    TORPOR_RETURN_IF_ERROR(runner_->arrays().Save(stream));
  }
  return image.WriteBack(stream, max_bytes);
}

absl::Status Session::SaveInLease(std::uint64_t last_command) {
  TORPOR_ASSIGN_OR_RETURN(const CUstream stream, environment_.device.CreateStream());
  MutexLock lock(&growth_mutex_);
  absl::StatusOr<DeviceImage::WrittenBack> written = WriteBack(DeviceImage::kAll, stream);
  environment_.device.driver().StreamDestroy(stream);
  TORPOR_RETURN_IF_ERROR(written.status());
  for (const memory::Extent& extent : written->extents.extents()) unscanned_.Add(extent);
  memory_->image().CommitCheckpoint(last_command);
  return absl::OkStatus();
}

absl::Status Session::MapPeer(const memory::ExtentSet& live, ChunkOwner& owner) {
  return memory_->image().MapPeer(live, owner);
}

absl::Status Session::Grow(memory::Extent extent, CUstream stream, bool is_replica) {
  MutexLock lock(&growth_mutex_);
  TORPOR_RETURN_IF_ERROR(memory_->image().Grow(extent, stream));
  if (is_replica) memory_->image().ForgetChanges();
  return absl::OkStatus();
}

absl::Status Session::Shrink(memory::Extent extent, const memory::ExtentSet& live) {
  MutexLock lock(&growth_mutex_);
  return memory_->image().Shrink(extent, live);
}

bool Session::may_be_moved() {
  if (!run_mutex_.TryLock()) return false;
  const bool is_movable = IsMovable();
  run_mutex_.Unlock();
  return is_movable;
}

absl::StatusOr<bool> Session::Move(const memory::Move& move, CUstream stream) {
  if (!run_mutex_.TryLock()) return false;
  absl::StatusOr<bool> is_moved = false;
  if (IsMovable()) is_moved = memory_->image().Move(move, stream);
  run_mutex_.Unlock();
  return is_moved;
}

bool Session::IsMovable() {
  // Recreating a texture at the new place may yield another handle, which would lose the texture;
  // siblings may hold addresses of the memory in their own memory.
  return !is_active() && memory_->image().may_be_moved() && !memory_->has_siblings() &&
         !runner_->has_memory_textures();
}

absl::Status Session::BeginLease(LeaseId lease, bool learn) {
  TORPOR_RETURN_IF_ERROR(CheckNoLease("another lease"));
  if (!lease) return absl::InvalidArgumentError("a lease needs an id");
  memory_->image().touches().Begin(learn);
  lease_.store(lease.value, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status Session::EndLease(LeaseId lease, TimePoint deadline, bool is_last) {
  if (!is_last && lease_.load(std::memory_order_acquire) != lease.value) {
    return absl::FailedPreconditionError(
        absl::StrCat("session ", identity_.id.value, " does not hold lease ", lease.value));
  }
  lease_.store(0, std::memory_order_release);
  if (!is_last) return Drain(deadline);
  // The wait may be part of the work to drain; and a mark in flight may have undone the first
  // ReachAll.
  memory_->window().ReachAll();
  absl::Status drained = Drain(deadline);
  memory_->window().ReachAll();
  return drained;
}

absl::Status Session::ReleaseImage(memory::Extent extent, HostPlaces places, TimePoint deadline) {
  const auto release = [&] { return memory_->image().ReleaseHost(extent, places); };
  return places == HostPlaces::kTenantFile ? release() : AtRest(deadline, release);
}

absl::Status Session::Drain(TimePoint deadline) {
  return AtRest(deadline, [] { return absl::OkStatus(); });
}

absl::Status Session::AtRest(TimePoint deadline, const std::function<absl::Status()>& work) {
  if (!run_mutex_.TryLockUntil(deadline)) {
    return absl::DeadlineExceededError("a batch still runs");
  }
  const CUresult drained = runner_->Drain(deadline);
  absl::Status status = environment_.device.Status(drained, "draining a session");
  if (drained == CUDA_ERROR_TIMEOUT) {
    status = absl::DeadlineExceededError("the session's work still runs on the GPU");
  }
  if (status.ok()) status = work();
  run_mutex_.Unlock();
  return status;
}

absl::Status Session::Close(TimePoint deadline) {
  lease_.store(0, std::memory_order_release);
  {
    MutexLock lock(&stream_mutex_);
    closing_ = true;
    if (attached_) cancel_();
    while (attached_) {
      const Duration left = deadline - SteadyClock().Now();
      if (left <= Duration::zero()) {
        return absl::DeadlineExceededError("the session's stream does not end");
      }
      stream_mutex_.WaitFor(detached_, absl::FromChrono(left));
    }
  }
  TORPOR_RETURN_IF_ERROR(Drain(deadline));
  return memory_->image().Drop();
}

absl::Status Session::Attach(const wire::Attach& attach, std::function<void()> cancel) {
  if (attach.session_id != identity_.id.value || !SecretsEqual(attach.session_key, identity_.key)) {
    return absl::PermissionDeniedError("no session has this id and key");
  }
  MutexLock lock(&stream_mutex_);
  if (closing_) return absl::UnavailableError("the session is being closed");
  if (attached_) return absl::AlreadyExistsError("the session has a stream already");
  attached_ = true;
  cancel_ = std::move(cancel);
  return absl::OkStatus();
}

absl::Status Session::ResetObjects() {
  MutexLock lock(&run_mutex_);
  if (is_fresh_) return absl::OkStatus();
  TORPOR_RETURN_IF_ERROR(memory_->image().arrival().Wait());
  const CUresult drained = runner_->Drain(SteadyClock().Now() + kResetPatience);
  TORPOR_RETURN_IF_ERROR(environment_.device.Status(drained, "ending an earlier stream"));
  TORPOR_ASSIGN_OR_RETURN(const CUstream stream, environment_.device.CreateStream());
  absl::Status saved = runner_->modules().SaveVariables(stream);
  saved.Update(runner_->arrays().Save(stream));
  const CudaDriver& driver = environment_.device.driver();
  saved.Update(
      environment_.device.Status(driver.StreamSynchronize(stream), "saving variables and arrays"));
  environment_.device.discarded().Add(stream);
  TORPOR_RETURN_IF_ERROR(saved);
  runner_ = MakeRunner();
  is_fresh_ = true;
  return absl::OkStatus();
}

void Session::Detach() {
  MutexLock lock(&stream_mutex_);
  attached_ = false;
  cancel_ = nullptr;
  detached_.SignalAll();
}

absl::Status Session::RunFrame(std::span<const std::uint8_t> frame, ReplySink& replies) {
  TORPOR_ASSIGN_OR_RETURN(ReceivedBatch batch, ReadBatch(frame));
  while (true) {
    const std::uint32_t before = batch.header.command_count;
    TORPOR_RETURN_IF_ERROR(RunSome(batch, replies));
    if (batch.IsDone()) return absl::OkStatus();
    // Without run_mutex_: the lease may end meanwhile.
    if (batch.header.command_count == before) std::this_thread::sleep_for(kRoomPause);
  }
}

absl::Status Session::CheckLease(const ReceivedBatch& batch) const {
  const std::uint64_t lease = lease_.load(std::memory_order_acquire);
  if (lease != 0 && batch.header.lease_id == lease) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("a batch of lease ", batch.header.lease_id,
                                                    " came where the session's lease is ", lease));
}

absl::Status Session::RunSome(ReceivedBatch& batch, ReplySink& replies) {
  // Looked at before, too: whoever has ended the lease holds the lock until all work is done.
  TORPOR_RETURN_IF_ERROR(CheckLease(batch));
  MutexLock lock(&run_mutex_);
  TORPOR_RETURN_IF_ERROR(CheckLease(batch));
  is_fresh_ = false;
  const bool was_lost = runner_->lost().has_value();
  absl::Status status = runner_->Run(batch, replies);
  last_command_ = std::max(last_command_, runner_->last_command());
  if (!was_lost && runner_->lost().has_value()) {
    environment_.listener.OnContextLost(identity_.id, *runner_->lost());
  }
  return status;
}

}  // namespace torpor::executor
