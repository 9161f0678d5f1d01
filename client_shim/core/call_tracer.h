#pragma once

#include <atomic>
#include <cstdint>

namespace torpor::shim {

// What a call of the program may have to wait for. The first two are answers to the call itself,
// and make it a synchronous one.
enum class TracedWaitFor : std::uint8_t {
  kExecutor,  // its reply
  kDaemon,    // its answer about memory
  kLease,
  kRoom,    // a slow executor has too much unread
  kWindow,  // room for bulk bytes
};

// Told of what the program's calls do (docs/shim.md, "Tracing"). Begin and end, and what comes
// between them, are of the calling thread; calls inside of a call, and waits inside of a wait, are
// part of it. Thread-safe.
class CallTracer {
 public:
  // `name` is a literal.
  virtual void BeginCall(const char* name) noexcept = 0;
  virtual void EndCall() noexcept = 0;
  virtual void BeginWait(TracedWaitFor what) noexcept = 0;
  virtual void EndWait() noexcept = 0;
  // A command of the call at hand, with its own bytes.
  virtual void NoteCommand(std::uint64_t bytes) noexcept = 0;
  // Further bytes that the call gives to the executor, or gets.
  virtual void NoteBytes(std::uint64_t up, std::uint64_t down) noexcept = 0;
  virtual void NoteBatch() noexcept = 0;
  // What happens from now on, in all threads, is told of by this name; null ends that.
  virtual void BeginSection(const char* name) noexcept = 0;

 protected:
  ~CallTracer() = default;
};

}  // namespace torpor::shim

// Null when nothing is traced. Before the first call of the program it is one that looks what the
// environment says and puts the right one here, which is then the same for ever.
extern "C" __attribute__((visibility("default"))) std::atomic<torpor::shim::CallTracer*>
    torpor_call_tracer;

// For programs, by dlsym or Python's ctypes: begins a section of the trace, or ends it (null).
extern "C" __attribute__((visibility("default"))) void torporTraceMark(const char* name);

namespace torpor::shim {

inline CallTracer* TheCallTracer() { return torpor_call_tracer.load(std::memory_order_acquire); }

// A call of the program, for as long as it lives. Made where calls begin; by default its name is
// that of the function that calls the constructor.
class TracedCall {
 public:
  explicit TracedCall(const char* name = __builtin_FUNCTION()) : tracer_(TheCallTracer()) {
    if (tracer_) [[unlikely]]
      tracer_->BeginCall(name);
  }
  ~TracedCall() {
    if (tracer_) [[unlikely]]
      tracer_->EndCall();
  }
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

 private:
  CallTracer* const tracer_;
};

class TracedWait {
 public:
  explicit TracedWait(TracedWaitFor what) : tracer_(TheCallTracer()) {
    if (tracer_) [[unlikely]]
      tracer_->BeginWait(what);
  }
  ~TracedWait() {
    if (tracer_) [[unlikely]]
      tracer_->EndWait();
  }
  TracedWait(const TracedWait&) = delete;
  TracedWait& operator=(const TracedWait&) = delete;

 private:
  CallTracer* const tracer_;
};

inline void TraceCommand(std::uint64_t bytes) {
  if (CallTracer* const tracer = TheCallTracer()) [[unlikely]]
    tracer->NoteCommand(bytes);
}

inline void TraceBytes(std::uint64_t up, std::uint64_t down) {
  if (CallTracer* const tracer = TheCallTracer()) [[unlikely]]
    tracer->NoteBytes(up, down);
}

inline void TraceBatch() {
  if (CallTracer* const tracer = TheCallTracer()) [[unlikely]]
    tracer->NoteBatch();
}

inline void TraceSection(const char* name) {
  if (CallTracer* const tracer = TheCallTracer()) [[unlikely]]
    tracer->BeginSection(name);
}

}  // namespace torpor::shim
