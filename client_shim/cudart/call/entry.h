#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "client_shim/core/call_tracer.h"
#include "client_shim/core/client_core.h"
#include "client_shim/cudart/overrides.h"
#include "proto/cuda_api/cudart_commands.h"
#include "proto/wire/codec.h"

// What the hand-written entry points share: the edge to C, and commands on their way to the core.
namespace torpor::shim {

struct CoreUse {
  ClientCore* core = nullptr;
  int device = 0;  // its index
};
struct ThreadCores {
  CoreUse in_use;   // nothing: the current one's
  CoreUse current;  // of the thread's current device; nothing before its first call
};
// What a launch looks up again and again is at an offset that the loader knows ("initial-exec"),
// not behind a call. Then all thread-locals of the library must find room in what the loader sets
// aside for those that a program opens late, 1664 bytes for all of them: big ones are pointers.
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
// The core of the device that the call at hand is about: of the thread's current one, until the
// call turns to another for its rest.
inline ClientCore& Core() {
  if (!thread_cores.in_use.core) UseCurrentCore();
  return *thread_cores.in_use.core;
}
inline int DeviceInUse() {
  if (!thread_cores.in_use.core) UseCurrentCore();
  return thread_cores.in_use.device;
}
// Of a device whose index some object of it gave.
inline void UseDevice(int device) {
  if (DeviceInUse() != device) UseCore(*Core().OfDevice(device));
}

// A call, or another piece of work, in which the device may change. It begins with the thread's
// current one.
class CoreScope {
 public:
  CoreScope() : before_(std::exchange(thread_cores.in_use, thread_cores.current)) {}
  ~CoreScope() { thread_cores.in_use = before_; }
  CoreScope(const CoreScope&) = delete;
  CoreScope& operator=(const CoreScope&) = delete;

 private:
  const CoreUse before_;
};

// Does `body` for each device that the program has used, until one fails.
template <typename Body>
cudaError_t ForEachDevice(const Body& body) {
  const CoreScope scope;
  for (int device = 0; ClientCore* const core = Core().OfDevice(device); ++device) {
    if (!core->IsOpen()) continue;
    UseCore(*core);
    if (const cudaError_t error = body(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// The body of an entry point: its error becomes the thread's last error, nothing is thrown. `name`
// is the entry's, for a trace.
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

// Opens the session if it is not open. Every entry point that needs it calls this first.
cudaError_t Begin();

// The same for what is answered without a GPU, which the session's sticky error leaves as it is:
// destructors of PyTorch's ask which device is current and end the program where that fails.
cudaError_t BeginQuestion();

// Whether what this thread calls now is a call of the driver API (driver_seam.h): then it is no use
// of the runtime, and its errors are not the runtime's last error. Returns what was so before.
bool SetInsideDriverCall(bool is_inside);
bool IsInsideDriverCall();

// While one lives, what the thread calls is the shim's own: no use of the runtime by the program,
// which is still to be told of errors that come up.
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

// Whether this thread, or any, has called the runtime, which makes the primary context current.
bool ThreadUsesRuntime();
bool ProcessUsesRuntime();

// A buffer of the calling thread, empty; valid until the thread's next call of this. Usable from
// exit handlers too, unlike a thread_local object with a destructor.
std::vector<std::uint8_t>& EncodeBuffer();

template <typename Message>
Command Encode(const Message& message, const WindowPiece* piece = nullptr) {
  std::vector<std::uint8_t>& fields = EncodeBuffer();
  wire::Writer writer(fields);
  writer(message);
  return {Message::kCallId, fields, piece};
}

// Queues an asynchronous command.
template <typename Message>
cudaError_t Send(const Message& message, const WindowPiece* piece = nullptr) {
  return Core().Enqueue(Encode(message, piece));
}

// Sends a synchronous command. Reports an earlier asynchronous error before its own, as CUDA does.
cudaError_t AskRaw(const Command& command, std::vector<std::uint8_t>& result);

template <typename Result, typename Message>
cudaError_t Ask(const Message& message, Result& result) {
  std::vector<std::uint8_t> bytes;
  if (const cudaError_t error = AskRaw(Encode(message), bytes); error != cudaSuccess) return error;
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

// In a function that returns a cudaError_t: passes a failure on.
#define TORPOR_TRY(expression)                                                    \
  if (const cudaError_t torpor_error = (expression); torpor_error != cudaSuccess) \
  return torpor_error
