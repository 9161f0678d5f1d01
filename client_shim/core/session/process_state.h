#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "client_shim/core/client_core.h"
#include "client_shim/core/log.h"
#include "client_shim/core/memory/memory_requests.h"
#include "client_shim/core/memory/process_memory.h"
#include "client_shim/core/program_devices.h"
#include "client_shim/core/settings.h"

namespace torpor::shim {

// The state that the sessions of one client process share, and the sessions themselves, one for
// each device. Thread-safe unless noted.
//
// The first session is the one for the program's device 0. The primary session is the one for the
// function's device 0: the daemon knows the process by it, and it owns the host arena. Both are the
// same unless CUDA_VISIBLE_DEVICES hides or moves the function's device 0.
class ProcessState {
 public:
  // Makes the session for the program's device `device` (-1: hidden from the program), which is
  // number `index` among the function's devices.
  using MakeSession =
      std::function<std::unique_ptr<ClientCore>(ProcessState&, int device, int index)>;

  // Makes the first session at once, with index 0 in lieu of the real one, which is known after
  // ChooseDevices.
  ProcessState(std::function<Settings()> read_settings, MakeSession make_session);

  Settings ReadSettings() const { return read_settings_(); }
  // Handles are unique in the process.
  std::uint64_t MintHandle(HandleKind kind) {
    return static_cast<std::uint64_t>(kind) << kHandleSerialBits |
           next_serial_.fetch_add(1, std::memory_order_relaxed);
  }
  ProcessMemory& memory() { return memory_; }
  const ProcessMemory& memory() const { return memory_; }

  // Filled in while the first session opens, constant from then on.
  ProgramDevices& devices() { return devices_; }
  const ProgramDevices& devices() const { return devices_; }
  // Fills in devices() according to CUDA_VISIBLE_DEVICES, if set, after an inquiry at the daemon.
  // cudaErrorNoDevice if no device is left. Called while the first session opens.
  cudaError_t ChooseDevices(const Settings& settings, const Log& log);

  ClientCore& first() { return *first_; }
  // The session for the program's device; null if the program has no such device.
  ClientCore* OfDevice(int device);
  // The session for the function's device `index`, made at the first call.
  ClientCore& OfIndex(int index);
  // As OfIndex, but never makes a session; null unless the session is open in this process.
  ClientCore* FindOpen(int index);

  // The primary session and its memory requests; the first session's until SetPrimary. Set while
  // the first session opens.
  const ClientCore& primary() const { return *primary_; }
  MemoryRequests& primary_memory() { return *primary_memory_; }
  void SetPrimary(const ClientCore& session, MemoryRequests& memory);

 private:
  const std::function<Settings()> read_settings_;
  const MakeSession make_session_;
  std::atomic<std::uint64_t> next_serial_{1};
  ProcessMemory memory_;
  ProgramDevices devices_;
  const ClientCore* primary_ = nullptr;
  MemoryRequests* primary_memory_ = nullptr;
  std::unique_ptr<ClientCore> first_;
  std::mutex others_mutex_;
  std::map<int, std::unique_ptr<ClientCore>> others_;  // by index; guarded by others_mutex_
};

}  // namespace torpor::shim
