#pragma once

#include <atomic>
#include <cstdint>

namespace torpor::shim {

// The reasons for which a call of the program waits. A wait for kExecutor or kDaemon, an answer to
// the call itself, makes the call a synchronous one.
enum class TracedWaitFor : std::uint8_t {
  kExecutor,  // the executor's reply
  kDaemon,    // the daemon's answer about memory
  kLease,
  kRoom,    // a slow executor has too many bytes unread
  kWindow,  // room for bulk bytes
};

// Records the program's calls (docs/shim.md, "Tracing"). Begin, end and all notes between them
// concern the calling thread. Nested calls and nested waits count as part of the outer ones.
// Thread-safe.
class CallTracer {
 public:
  // `name` is a string literal.
  virtual void BeginCall(const char* name) noexcept = 0;
  virtual void EndCall() noexcept = 0;
  virtual void BeginWait(TracedWaitFor what) noexcept = 0;
  virtual void EndWait() noexcept = 0;
  // A command of the present call, with the bytes of its fields.
  virtual void NoteCommand(std::uint64_t bytes) noexcept = 0;
  // Additional bytes of the call to the executor (`up`) and from the executor (`down`).
  virtual void NoteBytes(std::uint64_t up, std::uint64_t down) noexcept = 0;
  virtual void NoteBatch() noexcept = 0;
  // Begins a section with this name for the calls of all threads; null ends the section.
  virtual void BeginSection(const char* name) noexcept = 0;

 protected:
  ~CallTracer() = default;
};

}  // namespace torpor::shim

// The process's tracer; null when tracing is off. Until the first call of the program a placeholder
// that reads the environment and stores the final tracer here.
extern "C" __attribute__((visibility("default"))) std::atomic<torpor::shim::CallTracer*>
    torpor_call_tracer;

// For programs, by dlsym or Python's ctypes: begins a section of the trace, or ends one (null).
extern "C" __attribute__((visibility("default"))) void torporTraceMark(const char* name);

namespace torpor::shim {

inline CallTracer* TheCallTracer() { return torpor_call_tracer.load(std::memory_order_acquire); }

// Traces a call of the program from construction to destruction. The default name is the name of
// the function that calls the constructor.
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

// Traces a wait of the present call from construction to destruction.
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
