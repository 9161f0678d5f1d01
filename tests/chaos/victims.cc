#include "tests/chaos/victims.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/status_macros.h"
#include "tests/e2e/await.h"
#include "tests/e2e/child_process.h"
#include "tests/e2e/process_figures.h"
#include "tools/torporctl/node_report.h"

namespace torpor::chaos {
namespace {

double MebibytesOf(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); }

constexpr const char* kExecutorProgram = "torpor-executor";
constexpr const char* kRouterProgram = "torpor-router";

// Returns what torpord says of a process of the GPU.
std::int64_t ProcessOf(const v1::GpuStatus& gpu, Victim victim) {
  switch (victim) {
    case Victim::kSpare:
      return gpu.spare_pid();
    case Victim::kPoolOwner:
      return gpu.pool_owner_pid();
    default:
      return gpu.executor_pid();
  }
}

void Add(const std::string& who, pid_t process, Figures& figures, e2e::MemoryFiles& files) {
  const e2e::ProcessFigures of = e2e::FiguresOf(process);
  figures[who + ": memory (PSS), MiB"] += MebibytesOf(of.proportional);
  figures[who + ": descriptors"] += of.descriptor_count();
  figures[who + ": threads"] += static_cast<double>(of.threads);
  e2e::AddMemoryFilesOf(process, files);
}

}  // namespace

Victims::Victims(e2e::EmulatedNode& node, const std::vector<std::unique_ptr<Function>>& functions)
    : node_(node),
      functions_(functions),
      admin_socket_(node.folder().path() + "/admin/admin.sock") {}

absl::StatusOr<std::string> Victims::Kill(const chaos::Kill& kill, Load& load) {
  if (kill.victim == Victim::kFunction) {
    Function& function = *functions_[kill.which % functions_.size()];
    load.OnKill(kill.victim);
    function.Kill();
    return "function " + function.name();
  }
  std::vector<pid_t> processes;
  TORPOR_RETURN_IF_ERROR(e2e::Await(std::string("there is a ") + NameOf(kill.victim), [&] {
    processes = Candidates(kill.victim);
    return !processes.empty();
  }));
  const pid_t victim = processes[kill.which % processes.size()];
  load.OnKill(kill.victim);
  if (const auto identity = server::IdentityOf(victim)) killed_.push_back(*identity);
  // It may have died of another kill just now.
  ::kill(victim, SIGKILL);
  return fmt::format("{} {}", NameOf(kill.victim), victim);
}

std::vector<pid_t> Victims::Candidates(Victim victim) const {
  if (victim == Victim::kTorpord) return ProcessesOf("torpord");
  if (victim == Victim::kRouter) return ProcessesOf(kRouterProgram);
  std::vector<pid_t> processes;
  const auto status = torporctl::FetchStatus(admin_socket_);
  // Without torpord nobody tells the purposes of executors apart.
  if (!status.ok()) return ProcessesOf(kExecutorProgram);
  for (const v1::GpuStatus& gpu : status->gpus()) {
    const auto process = static_cast<pid_t>(ProcessOf(gpu, victim));
    if (process != 0 && IsAlive(process)) processes.push_back(process);
  }
  return processes;
}

bool Victims::IsAlive(pid_t process) const {
  const auto identity = server::IdentityOf(process);
  return identity && std::find(killed_.begin(), killed_.end(), *identity) == killed_.end();
}

// Without killed processes that have not ended yet.
std::vector<pid_t> Victims::ProcessesOf(const std::string& program) const {
  std::vector<pid_t> processes = e2e::DescendantsOf(node_.daemon().pid());
  const auto is_another = [&](pid_t process) {
    return !IsAlive(process) || e2e::ProgramNameOf(process) != program;
  };
  processes.erase(std::remove_if(processes.begin(), processes.end(), is_another), processes.end());
  std::sort(processes.begin(), processes.end());
  return processes;
}

bool Victims::AreGpusReady() const {
  const auto status = torporctl::FetchStatus(admin_socket_);
  if (!status.ok() || status->state() != "ready") return false;
  return std::all_of(status->gpus().begin(), status->gpus().end(), [&](const v1::GpuStatus& gpu) {
    return gpu.state() == "ready" && IsAlive(static_cast<pid_t>(gpu.executor_pid()));
  });
}

Figures Victims::Measure() const {
  Figures figures;
  e2e::MemoryFiles files;
  Add("torpor-init", node_.daemon().pid(), figures, files);
  for (const char* const program : {"torpord", kRouterProgram}) {
    for (const pid_t process : ProcessesOf(program)) Add(program, process, figures, files);
  }
  // Not the spares: some may not have started yet.
  for (const Victim kind : {Victim::kExecutor, Victim::kPoolOwner}) {
    for (const pid_t process : Candidates(kind)) Add(NameOf(kind), process, figures, files);
  }
  for (const auto& function : functions_) Add("functions", function->process(), figures, files);
  Bytes bytes = 0;
  for (const auto& [file, size] : files) bytes += size;
  figures["memory files: memory, MiB"] = MebibytesOf(bytes);
  figures["memory files: files"] = static_cast<double>(files.size());
  return figures;
}

}  // namespace torpor::chaos
