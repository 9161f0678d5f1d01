#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_shim/core/client_core.h"
#include "client_shim/core/commands/command_channel.h"
#include "client_shim/core/current_core.h"
#include "client_shim/core/log.h"
#include "client_shim/core/memory/deferred_frees.h"
#include "client_shim/core/memory/memory_requests.h"
#include "client_shim/core/memory/shared_window.h"
#include "client_shim/core/quiet_calls.h"
#include "client_shim/core/session/process_state.h"
#include "client_shim/core/session/service_thread.h"
#include "client_shim/core/session/session_service.h"
#include "client_shim/core/session_health.h"
#include "client_shim/core/transport/daemon_connection.h"
#include "client_shim/core/transport/handshake.h"

namespace torpor::shim {

// The session of this process for one device: opens the session at the daemon and passes each call
// to the part in charge. ProcessState makes and owns the sessions. Thread-safe.
class DeviceSession final : public ClientCore {
 public:
  // `index` is the device's among the function's devices; of the program's device 0 the index is
  // found when the session opens. `process` must outlive the session.
  DeviceSession(ProcessState& process, int device, int index);
  ~DeviceSession() override;
  // For ProcessState.
  static std::unique_ptr<ClientCore> Make(ProcessState& process, int device, int index) {
    return std::make_unique<DeviceSession>(process, device, index);
  }

  cudaError_t Start() override;
  bool IsOpen() const override { return health_.IsOpen(); }
  const wire::HelloReply& session() const override { return hello_; }
  const std::vector<wire::DeviceDescription>& devices() const override {
    return process_.devices().descriptions();
  }
  int device() const override { return device_; }
  ClientCore* OfDevice(int device) override { return process_.OfDevice(device); }
  void MakeCurrent() override { SetCurrentCore(this); }
  cudaError_t Inquire(wire::InquiryReply& reply) const override {
    return shim::Inquire(process_.ReadSettings(), IsOpen(), reply);
  }
  ClientCore* FindOpen(int index) override { return process_.FindOpen(index); }
  std::uint64_t MintHandle(HandleKind kind) override { return process_.MintHandle(kind); }
  cudaError_t Enqueue(const Command& command) override;
  cudaError_t Call(const Command& command, CallReply& reply) override;
  cudaError_t Flush() override;
  std::uint64_t CommandCount() const override { return IsOpen() ? channel_->command_count() : 0; }
  bool IsDrained() const override { return !IsOpen() || channel_->IsDrained(); }
  Use CurrentUse() const override;
  cudaError_t Create(std::uint64_t handle, const Command& create) override;
  using ClientCore::Configure;
  cudaError_t Configure(std::uint64_t handle, const Command& setting, std::uint64_t key) override;
  cudaError_t Destroy(std::uint64_t handle, const Command& destroy) override;
  bool IsLive(std::uint64_t handle) const override { return IsOpen() && channel_->IsLive(handle); }
  cudaError_t TakeAsyncError() override;
  bool SetQuiet(bool quiet) override { return SetCallsQuiet(quiet); }
  cudaError_t AcquireWindow(std::uint64_t bytes, WindowPiece& piece) override;
  void ReleaseWindow(const WindowPiece& piece) override { window_.ring().Release(piece); }
  std::uint32_t AllotSlot() override { return window_.slots().Allot(); }
  void FreeSlot(std::uint32_t slot) override { window_.slots().Free(slot); }
  std::uint64_t NextSlotValue(std::uint32_t slot) override {
    return window_.slots().NextValue(slot);
  }
  std::uint64_t SlotValue(std::uint32_t slot) const override { return window_.slots().Value(slot); }
  cudaError_t Malloc(std::uint64_t bytes, std::uint64_t& address) override;
  cudaError_t Free(std::uint64_t address) override;
  cudaError_t HostAlloc(std::uint64_t bytes, std::uint64_t& address) override;
  cudaError_t HostFree(std::uint64_t address) override;
  cudaError_t FreeAll() override;
  cudaError_t MemGetInfo(std::uint64_t& free_bytes, std::uint64_t& total_bytes) override;
  bool FindAllocation(std::uint64_t address, Allocation& allocation) const override {
    return process_.memory().Find(address, allocation);
  }
  cudaError_t ShareMemory(std::uint64_t address, MemoryHandle& handle) override;
  cudaError_t OpenMemory(const MemoryHandle& handle, Allocation& opened) override;
  cudaError_t CloseMemory(std::uint64_t address) override;
  bool HasMemoryAlone() const override;
  std::uint64_t PerThreadStream() override;
  void WarnOnce(const std::string& key, const std::string& message) override {
    log_.WarnOnce(key, message);
  }

 private:
  cudaError_t Open();
  cudaError_t OpenFailed(cudaError_t error, const std::string& why);
  cudaError_t ChooseDevices();
  Result<Handshake, cudaError_t> ShakeHands() const;
  cudaError_t MapWindow();
  void MakeChannel(const Nghttp2& http2);
  cudaError_t AwaitWork();
  cudaError_t Release(const Allocation& allocation);
  void Defer(const Allocation& allocation);
  cudaError_t AskMalloc(std::uint64_t bytes, std::uint64_t& address);

  ProcessState& process_;
  const int device_;
  int index_;
  Settings settings_;
  Log log_;
  SessionHealth health_;
  wire::HelloReply hello_;
  SharedWindow window_;
  MemoryRequests memory_{health_, log_};
  DeferredFrees deferred_;
  // Null until the session opens:
  std::unique_ptr<ServiceThread> service_;
  std::unique_ptr<DaemonConnection> daemon_;
  std::unique_ptr<CommandChannel> channel_;
  std::unique_ptr<SessionService> service_work_;
};

}  // namespace torpor::shim
