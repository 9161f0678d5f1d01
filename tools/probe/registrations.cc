// What pinning memory files costs, by size and pages, in one process and in a second.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "tools/probe/gpu.h"
#include "tools/probe/items.h"
#include "tools/probe/memory_file.h"

namespace torpor::probe {
namespace {

constexpr std::size_t kFileSizes[] = {2 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB};
constexpr std::size_t kSharedSize = 256 * kMiB;
constexpr std::pair<Pages, const char*> kKinds[] = {{Pages::kSmall, "small pages"},
                                                    {Pages::kAdvised, "advised pages"},
                                                    {Pages::kHuge, "huge pages"}};

constexpr unsigned kFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

void Register(Report& report, const std::string& name, MemoryFile& file) {
  const Stopwatch watch;
  const CUresult result = cuMemHostRegister(file.begin(), file.size(), kFlags);
  if (result != CUDA_SUCCESS) return report.Failed(name, NameOf(result));
  report.Numbers(name + "/register", "ms", {watch.ms()});
  const Stopwatch unregister_watch;
  Need(report, cuMemHostUnregister(file.begin()), "cuMemHostUnregister");
  report.Numbers(name + "/unregister", "ms", {unregister_watch.ms()});
}

void RegisterSizes(Report& report, Pages pages, const std::string& kind) {
  for (const std::size_t size : kFileSizes) {
    const std::string name = std::to_string(size / kMiB) + "MiB of " + kind;
    MemoryFile file(size, pages);
    if (file.begin() == nullptr) {
      return report.Failed(name, "the system has no such memory");
    }
    Register(report, name + ", untouched", file);
    file.Touch();
    Register(report, name + ", touched", file);
  }
}

// Waits until the other end of the pipe is closed or has written.
void Await(int fd) {
  char byte = 0;
  [[maybe_unused]] const ssize_t got = read(fd, &byte, 1);
}

// Two executors register an image: the second while the first keeps the registration. Called before
// this process calls the driver, since a context does not survive fork().
void RegisterInTwoProcesses(Report& report) {
  MemoryFile file(kSharedSize, Pages::kSmall);
  file.Touch();
  std::array<int, 2> registered{};
  std::array<int, 2> done{};
  if (pipe(registered.data()) != 0 || pipe(done.data()) != 0) return;
  const pid_t first = fork();
  if (first == 0) {
    close(done[1]);
    const Gpu gpu(report);
    const Stopwatch watch;
    Need(report, cuMemHostRegister(file.begin(), file.size(), kFlags), "the first process");
    report.Numbers("256MiB, the first of two processes/register", "ms", {watch.ms()});
    close(registered[1]);
    Await(done[0]);
    _exit(EXIT_SUCCESS);
  }
  close(registered[1]);
  close(done[0]);
  Await(registered[0]);
  {
    const Gpu gpu(report);
    Register(report, "256MiB, the second of two processes", file);
  }
  close(done[1]);
  waitpid(first, nullptr, 0);
}

}  // namespace

void ProbeRegistrations(Report& report) {
  RegisterInTwoProcesses(report);
  for (const auto& [pages, kind] : kKinds) RegisterSizes(report, pages, kind);
}

}  // namespace torpor::probe
