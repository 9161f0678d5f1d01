#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "client_shim/core/call_tracer.h"
#include "client_shim/core/settings.h"
#include "client_shim/core/trace/tracer.h"

// Creates the tracer according to the environment, and its output.
namespace torpor::shim {
namespace {

void WriteAll(int fd, const std::string& text) {
  const int saved_errno = errno;  // a CUDA call leaves the program's errno alone
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(fd, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    at += static_cast<std::size_t>(written);
  }
  errno = saved_errno;
}

void Say(const std::string& text) { WriteAll(STDERR_FILENO, text); }

// The traced process. Forked children are not traced.
pid_t traced_process = 0;
Tracer* the_tracer = nullptr;

void FinishAtExit() {
  if (getpid() == traced_process) the_tracer->Finish();
}

void ForgetInChild() { torpor_call_tracer.store(nullptr); }

// Returns null, with a line on stderr, if the file cannot be written.
std::unique_ptr<Tracer> MakeFileTracer(const std::string& path) {
  const auto file = std::make_shared<UniqueFd>(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file->get() < 0) {
    Say("torpor: cannot write the trace " + path + " (" + std::strerror(errno) +
        "); TORPOR_TRACE_FILE names another file\n");
    return nullptr;
  }
  return std::make_unique<Tracer>(&Say, ChromeTrace(getpid(), program_invocation_short_name),
                                  [file](const std::string& text) { WriteAll(file->get(), text); });
}

std::unique_ptr<Tracer> MakeTracer() {
  const TraceSettings settings = ReadTraceSettings();
  switch (settings.mode) {
    case TraceMode::kOff:
      return nullptr;
    case TraceMode::kSummary:
      return std::make_unique<Tracer>(&Say, std::nullopt, nullptr);
    case TraceMode::kJson:
      return MakeFileTracer(settings.file);
    case TraceMode::kUnknown:
      Say("torpor: unknown TORPOR_TRACE; expected off, summary or json: nothing is traced\n");
      return nullptr;
  }
  return nullptr;
}

// Never destroyed: programs call CUDA from exit handlers too.
Tracer* StartTracing() noexcept try {
  the_tracer = MakeTracer().release();
  if (!the_tracer) return nullptr;
  traced_process = getpid();
  pthread_atfork(nullptr, nullptr, &ForgetInChild);
  std::atexit(&FinishAtExit);
  return the_tracer;
} catch (...) {
  return nullptr;
}

// The placeholder until the first traced call: starts tracing and passes the call on.
class LateTracer final : public CallTracer {
 public:
  void BeginCall(const char* name) noexcept override {
    if (CallTracer* const tracer = Start()) tracer->BeginCall(name);
  }
  void EndCall() noexcept override {
    if (CallTracer* const tracer = Start()) tracer->EndCall();
  }
  void BeginWait(TracedWaitFor what) noexcept override {
    if (CallTracer* const tracer = Start()) tracer->BeginWait(what);
  }
  void EndWait() noexcept override {
    if (CallTracer* const tracer = Start()) tracer->EndWait();
  }
  void NoteCommand(std::uint64_t bytes) noexcept override {
    if (CallTracer* const tracer = Start()) tracer->NoteCommand(bytes);
  }
  void NoteBytes(std::uint64_t up, std::uint64_t down) noexcept override {
    if (CallTracer* const tracer = Start()) tracer->NoteBytes(up, down);
  }
  void NoteBatch() noexcept override {
    if (CallTracer* const tracer = Start()) tracer->NoteBatch();
  }
  void BeginSection(const char* name) noexcept override {
    if (CallTracer* const tracer = Start()) tracer->BeginSection(name);
  }

 private:
  static CallTracer* Start() noexcept {
    static std::once_flag once;
    std::call_once(once, [] { torpor_call_tracer.store(StartTracing()); });
    return torpor_call_tracer.load();
  }
};
constinit LateTracer late_tracer;

}  // namespace
}  // namespace torpor::shim

constinit std::atomic<torpor::shim::CallTracer*> torpor_call_tracer{&torpor::shim::late_tracer};

void torporTraceMark(const char* name) { torpor::shim::TraceSection(name); }
