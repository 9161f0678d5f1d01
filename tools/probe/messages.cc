// Where the driver's messages, what kernels print and the texts of assertions go.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string>

#include "base/unique_fd.h"
#include "tools/probe/gpu.h"
#include "tools/probe/items.h"

namespace torpor::probe {
namespace {

// Keeps what is written to a descriptor, from construction on.
class Captured {
 public:
  explicit Captured(int fd) : file_(memfd_create("captured", MFD_CLOEXEC)) {
    dup2(file_.get(), fd);
  }

  bool Has(const std::string& text) const {
    std::string all(static_cast<std::size_t>(lseek(file_.get(), 0, SEEK_END)), '\0');
    const ssize_t got = pread(file_.get(), all.data(), all.size(), 0);
    return got > 0 && all.find(text) != std::string::npos;
  }

 private:
  UniqueFd file_;
};

// What the callback got.
struct Heard {
  std::atomic<int> count = 0;
  std::array<char, 256> last{};
};

void OnMessage(void* data, CUlogLevel, char* text, std::size_t length) {
  auto& heard = *static_cast<Heard*>(data);
  ++heard.count;
  std::snprintf(heard.last.data(), heard.last.size(), "%.*s", static_cast<int>(length), text);
}

// Tells which of the places has the text.
std::vector<std::string> Places(const Captured& out, const Captured& err, const Heard& heard,
                                const std::string& text) {
  std::vector<std::string> places;
  if (out.Has(text)) places.emplace_back("stdout");
  if (err.Has(text)) places.emplace_back("stderr");
  if (std::string(heard.last.data()).find(text) != std::string::npos) {
    places.emplace_back("log callback");
  }
  if (places.empty()) places.emplace_back("nowhere");
  return places;
}

CUresult Listen(Heard& heard) {
  CUlogsCallbackHandle handle = nullptr;
  return cuLogsRegisterCallback(&OnMessage, &heard, &handle);
}

}  // namespace

void ProbeMessages(Report& report) {
  static Heard heard;
  Gpu gpu(report);
  report.Texts("cuLogsRegisterCallback", {NameOf(Listen(heard))});
  const Captured out(STDOUT_FILENO);
  const Captured err(STDERR_FILENO);
  cuMemFree(1);
  CUmodule nothing = nullptr;
  cuModuleLoadData(&nothing, "this is no module");
  report.Numbers("messages about two failing calls", "count", {double(heard.count)});
  report.Texts("the last message", {heard.last.data()});
  Need(report, gpu.Launch(gpu.kernel("Print"), nullptr), "cuLaunchKernel");
  Need(report, cuCtxSynchronize(), "cuCtxSynchronize");
  report.Texts("printf goes to", Places(out, err, heard, "kernel prints"));
  std::fflush(nullptr);
  report.Texts("printf goes to, flushed", Places(out, err, heard, "kernel prints"));
}

void ProbeAssertions(Report& report) {
  static Heard heard;
  Gpu gpu(report);
  Listen(heard);
  const CUfunction deny = gpu.kernel("Deny");
  const Captured out(STDOUT_FILENO);
  const Captured err(STDERR_FILENO);
  Need(report, gpu.Launch(deny, nullptr), "cuLaunchKernel");
  report.Texts("answer", {NameOf(cuCtxSynchronize())});
  std::fflush(nullptr);
  report.Texts("text goes to", Places(out, err, heard, "kernel denies"));
  report.Numbers("messages", "count", {double(heard.count)});
  report.Texts("the last message", {heard.last.data()});
}

}  // namespace torpor::probe
