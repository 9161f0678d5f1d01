#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client_shim/core/allocation_map.h"
#include "client_shim/core/batch.h"
#include "client_shim/core/client_core.h"
#include "client_shim/core/completion_slots.h"
#include "client_shim/core/current_core.h"
#include "client_shim/core/executor_link.h"
#include "client_shim/core/foreign_memory.h"
#include "client_shim/core/grpc_stream.h"
#include "client_shim/core/handshake.h"
#include "client_shim/core/held_time.h"
#include "client_shim/core/journal.h"
#include "client_shim/core/log.h"
#include "client_shim/core/payload_ring.h"
#include "client_shim/core/settings.h"
#include "client_shim/core/shared_regions.h"

namespace torpor::shim {

// The session of this process for one device. The one for the program's first device has what all
// share: the program's allocations, the further sessions. One mutex guards it all but the order of
// output: a call holds it for the microsecond that it takes to append a command or to hand a frame
// to the socket, never while it waits.
//
// To the daemon the function's device 0 is a process's first, which has the host arena. Where that
// is not the program's first, the session for it is one of the further ones, and opened before.
//
// A thread that waits for a reply reads the executor's socket itself, and then on behalf of all
// that wait; only what nobody waits for (grants, revokes, the flush timer, the return of an idle
// lease, output that a socket did not take) is left to the service thread.
//
// The life of a lease: kNone -> kRequested (a call needs it) -> kHeld -> kReturning (revoked or
// idle: flushed, draining) -> kNone. A lease whose executor fails becomes kLost: its calls fail
// with its error until the daemon ends it, an implicit one also not before a synchronising call
// has told the program. A grant whose executor cannot be reached is returned without an
// acknowledgement, and counts as lost.
class Session final : public ClientCore {
 public:
  // For the program's first device.
  explicit Session(std::function<Settings()> read_settings);
  ~Session() override;

  cudaError_t Start() override;
  bool IsOpen() const override {
    return started_.load(std::memory_order_acquire) && start_error_ == cudaSuccess;
  }
  const wire::HelloReply& session() const override { return hello_; }
  const std::vector<wire::DeviceDescription>& devices() const override { return first_.devices_; }
  int device() const override { return device_; }
  ClientCore* OfDevice(int device) override;
  void MakeCurrent() override { SetCurrentCore(this); }
  cudaError_t Inquire(wire::InquiryReply& reply) const override;
  ClientCore* FindOpen(int index) override;
  std::uint64_t MintHandle(HandleKind kind) override;
  cudaError_t Enqueue(const Command& command) override;
  cudaError_t Call(const Command& command, CallReply& reply) override;
  cudaError_t Flush() override;
  std::uint64_t CommandCount() const override { return uses_.load(std::memory_order_acquire); }
  bool IsDrained() const override;
  Use CurrentUse() const override;
  cudaError_t Create(std::uint64_t handle, const Command& create) override;
  using ClientCore::Configure;
  cudaError_t Configure(std::uint64_t handle, const Command& setting, std::uint64_t key) override;
  cudaError_t Destroy(std::uint64_t handle, const Command& destroy) override;
  bool IsLive(std::uint64_t handle) const override;
  cudaError_t TakeAsyncError() override;
  bool SetQuiet(bool quiet) override;
  cudaError_t AcquireWindow(std::uint64_t bytes, WindowPiece& piece) override;
  void ReleaseWindow(const WindowPiece& piece) override;
  std::uint32_t AllotSlot() override { return slots_.Allot(); }
  void FreeSlot(std::uint32_t slot) override { slots_.Free(slot); }
  std::uint64_t NextSlotValue(std::uint32_t slot) override { return slots_.NextValue(slot); }
  std::uint64_t SlotValue(std::uint32_t slot) const override { return slots_.Value(slot); }
  cudaError_t Malloc(std::uint64_t bytes, std::uint64_t& address) override;
  cudaError_t Free(std::uint64_t address) override;
  cudaError_t HostAlloc(std::uint64_t bytes, std::uint64_t& address) override;
  cudaError_t HostFree(std::uint64_t address) override;
  cudaError_t FreeAll() override;
  cudaError_t MemGetInfo(std::uint64_t& free_bytes, std::uint64_t& total_bytes) override;
  bool FindAllocation(std::uint64_t address, Allocation& allocation) const override;
  cudaError_t ShareMemory(std::uint64_t address, MemoryHandle& handle) override;
  cudaError_t OpenMemory(const MemoryHandle& handle, Allocation& opened) override;
  cudaError_t CloseMemory(std::uint64_t address) override;
  bool HasMemoryAlone() const override;
  std::uint64_t PerThreadStream() override;
  void WarnOnce(const std::string& key, const std::string& message) override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Time = std::chrono::steady_clock::time_point;
  using LinkPtr = std::shared_ptr<ExecutorLink>;
  using LinkKey = std::pair<std::string, std::uint64_t>;  // socket and epoch

  enum class LeaseState { kNone, kRequested, kHeld, kReturning, kLost };
  struct Lease {
    LeaseState state = LeaseState::kNone;
    std::uint64_t id = 0;
    bool is_explicit = false;
    std::uint64_t uses_answered = 0;  // `uses_` at its grant or the last call with a good answer
    LinkPtr link;                     // while kHeld or kReturning
    cudaError_t error = cudaSuccess;  // kLost
    bool program_knows = false;       // kLost: a synchronising call has returned the error
    bool failed_a_call = false;       // kLost: some call has returned the error
    bool daemon_knows = false;        // kLost: the daemon has ended the lease too
  };
  struct ControlWaiter {
    bool done = false;
    cudaError_t error = cudaSuccess;
    wire::ServerMessage reply;
    std::condition_variable changed;
  };

  // For a further device of the program (-1: one that it does not see).
  Session(Session& first, int device, int index);

  // session_open.cc: the handshake, on the thread of the first call.
  cudaError_t Open();
  cudaError_t OpenFailed(cudaError_t error, const std::string& why);
  cudaError_t ChooseDevices();
  cudaError_t Greet(Time deadline);
  cudaError_t MapRegions(Time deadline);
  void StartService();
  Session& OfIndex(int index);
  // The program's device that is the function's of this index; -1: it does not see it.
  int VisibleDevice(int index) const;

  // session_calls.cc
  cudaError_t Usable() const;
  cudaError_t AwaitLease(Lock& lock, bool tells_program);
  cudaError_t AwaitRoom(Lock& lock, bool tells_program);
  void Append(const Command& command);
  void FlushInTime();
  void FlushBatch();
  void SendBatch(ExecutorLink& link);
  cudaError_t AwaitWork();
  void PumpLink(const LinkPtr& link);
  void ReadLink(Lock& lock, const LinkPtr& link, bool wait);
  void HandOverReading(const LinkPtr& link);
  void DispatchReplies(const LinkPtr& link);
  bool OnReply(const LinkPtr& link, std::span<const std::uint8_t> payload);
  void NoteAsyncError(const wire::Reply& reply);
  void NoteOutput(const wire::Reply& output);
  void Print();

  // session_lease.cc
  void OnGrant(Lock& lock, const wire::LeaseGrant& grant);
  void OnRevoke(const wire::LeaseRevoke& revoke);
  void OnLost(Lock& lock, const wire::LeaseLost& lost);
  void AwaitLastWords(Lock& lock, const LinkPtr& link);
  // Gives up the lock while it connects.
  LinkPtr FindOrOpenLink(Lock& lock, const wire::LeaseGrant& grant, std::string& why);
  void TellExecutor(const LinkPtr& link);
  void BeginReturn();
  void OnDrained(const LinkPtr& link, std::span<const std::uint8_t> result);
  void EndLease();
  void KeepUntoldLoss();
  void TellChange(const Command& change);
  void BreakLink(const LinkPtr& link, cudaError_t error, const std::string& why);
  void LoseLease(cudaError_t error, bool program_knows);
  void SettleLostLease();

  // session_service.cc: the background thread.
  struct Watched {
    LinkPtr link;
    short events = 0;
  };
  void Serve();
  std::vector<Watched> LinksToWatch() const;
  bool NextWake(Time now, Time& wake);
  void OnTimers(Time now);
  void ReadControl(Lock& lock);
  void OnControl(Lock& lock, std::span<const std::uint8_t> payload);
  void Wake() const;
  void LoseDaemon(const std::string& why);

  // session_memory.cc
  void SendControl(const wire::ClientMessage& message);
  cudaError_t Ask(std::uint64_t request_id, const wire::ClientMessage& request,
                  wire::ServerMessage& reply);
  cudaError_t AllocateHost(std::uint64_t bytes, int device, std::uint64_t& address);
  cudaError_t AskAddress(std::uint64_t request_id, const wire::ClientMessage& request,
                         std::uint64_t& address);
  bool Forget(std::uint64_t address, bool on_device);
  cudaError_t Release(const Allocation& allocation);

  // session_shared_memory.cc
  cudaError_t AskToOpen(const MemoryHandle& handle, Allocation& opened);
  cudaError_t AskToClose(const MemoryHandle& handle);
  // However often it was opened.
  cudaError_t CloseWholly(std::uint64_t address);
  cudaError_t CloseLast(std::uint64_t address);
  void OnMemoryAnswer(std::uint64_t request_id, wire::ServerMessage reply);

  Session& first_;
  Session* head_ = this;  // the first's: the daemon's first session of the process
  const int device_ = 0;
  int index_ = 0;  // among the function's devices; the first's is known when Open begins
  const std::function<Settings()> read_settings_;
  Settings settings_;
  mutable Log log_;

  std::mutex start_mutex_;
  std::atomic<bool> started_{false};
  cudaError_t start_error_ = cudaSuccess;
  // Once set every call fails with it: the session's sticky error.
  mutable std::atomic<cudaError_t> fatal_{cudaSuccess};

  const Nghttp2* http2_ = nullptr;
  std::optional<std::vector<int>> visible_;       // the first's: indices; nothing: all, as they are
  std::vector<wire::DeviceDescription> devices_;  // the first's
  wire::HelloReply hello_;
  SharedRegions regions_;
  CompletionSlots slots_;
  PayloadRing ring_{slots_};
  AllocationMap allocations_;                  // the first's
  std::atomic<bool> shares_memory_{false};     // with other processes, or once did
  std::mutex foreign_mutex_;                   // held while the daemon is asked
  ForeignMemory foreign_;                      // the first's; guarded by foreign_mutex_
  std::atomic<std::uint64_t> next_serial_{1};  // the first's
  std::mutex further_mutex_;
  std::map<int, std::unique_ptr<Session>> further_;  // the first's, by index; by further_mutex_
  std::atomic<std::uint64_t> next_request_{1};

  std::mutex print_mutex_;    // one thread prints at a time, in order; taken before mutex_
  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<GrpcStream> control_;
  std::unordered_map<std::uint64_t, ControlWaiter*> control_waiters_;
  Lease lease_;
  HeldTime held_time_;  // of leases, until they end or are lost
  std::condition_variable lease_changed_;
  std::condition_variable room_;  // a link took output
  std::map<LinkKey, LinkPtr> links_;
  Journal journal_;
  Batch batch_{0};
  Time batch_since_;
  bool timer_is_armed_ = false;         // the service thread will look at the batch by itself
  std::atomic<std::uint64_t> uses_{0};  // grows with every command
  std::uint64_t uses_at_check_ = 0;
  Time next_idle_check_;
  cudaError_t async_error_ = cudaSuccess;
  std::vector<std::uint8_t> printed_;  // by kernels, for standard output

  UniqueFd wake_;
  bool stopping_ = false;
  bool lost_daemon_ = false;
  std::thread service_;
};

}  // namespace torpor::shim
