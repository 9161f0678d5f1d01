#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "base/try.h"
#include "client_shim/core/call_tracer.h"
#include "client_shim/core/client_core.h"
#include "client_shim/cudart/overrides.h"
#include "proto/cuda_api/cudart_commands.h"
#include "proto/wire/codec.h"

// Shared by the hand-written entry points: the edge to C, the device in use, and commands on their
// way to the core. Every call begins with the thread's current device in use; functions that meet a
// stream, event or address of another device turn to that device for the rest of the call.
namespace torpor::shim {

struct CoreUse {
  ClientCore* core = nullptr;
  int device = 0;  // index of the core's device
};
struct ThreadCores {
  CoreUse in_use;   // null core: use `current`
  CoreUse current;  // the thread's current device; null core before the thread's first call
};
// A launch reads these several times, so they lie at an offset known to the loader
// ("initial-exec"), not behind a call. The loader sets aside 1664 bytes for such thread-locals of
// all libraries opened late; hence large thread-locals here are pointers.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadCores thread_cores;

inline void UseCore(ClientCore& core) {
  CoreUse& in_use = thread_cores.in_use;
  if (in_use.core != &core) in_use = {&core, core.device()};
}
inline void UseCurrentCore() {
  ThreadCores& cores = thread_cores;
  if (!cores.current.core) {
    ClientCore* const core = torpor_client_core();
    cores.current = {core, core->device()};
  }
  cores.in_use = cores.current;
}
// The core of the device in use. Opens no session.
inline ClientCore& Core() {
  if (!thread_cores.in_use.core) UseCurrentCore();
  return *thread_cores.in_use.core;
}
inline int DeviceInUse() {
  if (!thread_cores.in_use.core) UseCurrentCore();
  return thread_cores.in_use.device;
}
// Turns to a device. `device`: a valid index, as kept in an object of the device.
inline void UseDevice(int device) {
  if (DeviceInUse() != device) UseCore(*Core().OfDevice(device));
}

// The extent of a call, or of a part, that may turn to other devices. Begins with the thread's
// current device; the destructor restores the device in use.
class CoreScope {
 public:
  CoreScope() : before_(std::exchange(thread_cores.in_use, thread_cores.current)) {}
  ~CoreScope() { thread_cores.in_use = before_; }
  CoreScope(const CoreScope&) = delete;
  CoreScope& operator=(const CoreScope&) = delete;

 private:
  const CoreUse before_;
};

// Runs `body` with each open device in use, in order of index, and returns the first error.
template <typename Body>
cudaError_t ForEachDevice(const Body& body) {
  const CoreScope scope;
  for (int device = 0; ClientCore* const core = Core().OfDevice(device); ++device) {
    if (!core->IsOpen()) continue;
    UseCore(*core);
    TORPOR_TRY(body());
  }
  return cudaSuccess;
}

// Runs the body of an entry point. Records the error as the thread's last error; turns exceptions
// into CUDA errors. `name`: the entry point's, for traces.
template <typename Body>
cudaError_t Entry(Body&& body, const char* name = __builtin_FUNCTION()) noexcept {
  const TracedCall traced(name);
  const CoreScope scope;
  try {
    return RecordError(body());
  } catch (const std::bad_alloc&) {
    return RecordError(cudaErrorMemoryAllocation);
  } catch (...) {
    return RecordError(cudaErrorUnknown);
  }
}

// Opens the session unless open. The first call of every entry point with need of a session.
// Returns the session's sticky error.
cudaError_t Begin();

// The same for questions answered without a GPU: succeeds despite a sticky error. PyTorch's
// destructors ask for the current device and end the program if the question fails.
cudaError_t BeginQuestion();

// Marks the calls that follow in this thread as calls of the driver API (driver_seam.h): no use of
// the runtime, and without effect on the runtime's last error. Returns the earlier mark.
bool SetInsideDriverCall(bool is_inside);
bool IsInsideDriverCall();

// Marks the calls of a scope as the shim's own: no use of the runtime by the program, and errors
// that come up stay to be reported to the program.
class OwnCalls {
 public:
  OwnCalls() : was_inside_(SetInsideDriverCall(true)), was_quiet_(Core().SetQuiet(true)) {}
  ~OwnCalls() {
    Core().SetQuiet(was_quiet_);
    SetInsideDriverCall(was_inside_);
  }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  const bool was_inside_;
  const bool was_quiet_;
};

// Whether this thread, or any thread, has called the runtime, which makes the primary context
// current.
bool ThreadUsesRuntime();
bool ProcessUsesRuntime();

// An empty buffer of the calling thread, valid until the thread's next call. Usable from exit
// handlers too, unlike a thread_local object with a destructor.
std::vector<std::uint8_t>& EncodeBuffer();

// Encodes a command into EncodeBuffer: valid until the thread encodes the next command.
template <typename Message>
Command Encode(const Message& message, const WindowPiece* piece = nullptr) {
  std::vector<std::uint8_t>& fields = EncodeBuffer();
  wire::Writer writer(fields);
  writer(message);
  return {Message::kCallId, fields, piece};
}

// Queues an asynchronous command of the device in use. Errors of the execution come with a later
// synchronous call.
template <typename Message>
cudaError_t Send(const Message& message, const WindowPiece* piece = nullptr) {
  return Core().Enqueue(Encode(message, piece));
}

// Sends a synchronous command and waits for the reply. Reports an earlier asynchronous error before
// the command's own, as CUDA does.
cudaError_t AskRaw(const Command& command, std::vector<std::uint8_t>& result);

// The same with a decoded result; cudaErrorUnknown if the reply is malformed.
template <typename Result, typename Message>
cudaError_t Ask(const Message& message, Result& result) {
  std::vector<std::uint8_t> bytes;
  TORPOR_TRY(AskRaw(Encode(message), bytes));
  wire::Reader reader(bytes);
  reader(result);
  return reader.done() ? cudaSuccess : cudaErrorUnknown;
}

// Sends a synchronous command whose result is empty.
template <typename Message>
cudaError_t Ask(const Message& message) {
  std::vector<std::uint8_t> ignored;
  return AskRaw(Encode(message), ignored);
}

inline std::uint64_t Address(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace torpor::shim
