#include "server/processes/function_processes.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/poll_timeout.h"
#include "base/thread_name.h"
#include "server/processes/instance_process.h"
#include "server/supervisor/process_record.h"

namespace torpor::server {
namespace {

// The grace of a process whose command has left the configuration.
const Duration kDefaultGrace = FunctionConfig().stop_grace;
constexpr const char* kRecordSuffix = ".pid";

const char* NameOf(ProcessLife::State state) {
  switch (state) {
    case ProcessLife::State::kPausing:
      return "pausing";
    case ProcessLife::State::kRunning:
      return "running";
    case ProcessLife::State::kStopping:
      return "stopping";
    case ProcessLife::State::kOver:
      return "over";
  }
  return "";
}

}  // namespace

Duration FunctionProcesses::Entry::grace() const {
  return command ? command->stop_grace : kDefaultGrace;
}

absl::StatusOr<std::unique_ptr<FunctionProcesses>> FunctionProcesses::Start(
    Options options, const Commands& commands) {
  std::error_code error;
  std::filesystem::create_directories(options.record_dir, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot create ", options.record_dir, ": ", error.message()));
  }
  std::unique_ptr<FunctionProcesses> processes(new FunctionProcesses(std::move(options)));
  processes->Adopt(commands);
  processes->thread_ = std::thread([p = processes.get()] { p->Run(); });
  return processes;
}

FunctionProcesses::FunctionProcesses(Options options)
    : options_(std::move(options)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

FunctionProcesses::~FunctionProcesses() { Leave(); }

void FunctionProcesses::Post(Task task) {
  {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
  }
  eventfd_write(wake_.get(), 1);
}

std::string FunctionProcesses::RecordOf(const std::string& name) const {
  std::string file = name;
  std::ranges::replace(file, '/', '.');  // neither names nor functions have dots
  return absl::StrCat(options_.record_dir, "/", file, kRecordSuffix);
}

FunctionProcesses::Entry& FunctionProcesses::EntryOf(const std::string& name) {
  return entries_.try_emplace(name, RecordOf(name), options_.pauses, clock_.Now()).first->second;
}

void FunctionProcesses::Adopt(const Commands& commands) {
  for (const auto& file : std::filesystem::directory_iterator(options_.record_dir)) {
    if (file.path().extension() != kRecordSuffix) continue;
    const std::optional<ProcessRecord> record = ReadProcessRecord(file.path());
    auto process = record ? ChildProcess::Adopt(record->process) : nullptr;
    if (!process) {
      unlink(file.path().c_str());
      continue;
    }
    std::string name = file.path().stem();
    std::ranges::replace(name, '.', '/');
    spdlog::info("function {}: process {} of an earlier torpord is adopted", name, process->pid());
    process->Leave();
    Entry& entry = EntryOf(name);
    entry.process = std::move(process);
    entry.fingerprint = record->command;
    entry.life.OnStarted(clock_.Now());
    if (const auto command = commands.find(name); command != commands.end()) {
      entry.command = command->second;
    } else {
      entry.life.Stop(clock_.Now(), entry.grace());
    }
    if (entry.command && !options_.sessions_go_on) {
      spdlog::info("function {}: its sessions ended with torpord, so the process is started anew",
                   name);
      entry.life.Restart(clock_.Now(), entry.grace(), /*is_faulty=*/false);
    }
  }
}

void FunctionProcesses::SetCommands(const Commands& commands) {
  Post([this, commands] {
    has_commands_ = true;
    if (is_stopping_) return;
    for (auto& [name, entry] : entries_) {
      if (!commands.contains(name)) entry.command.reset();
    }
    for (const auto& [name, command] : commands) {
      Entry& entry = EntryOf(name);
      const bool is_another =
          entry.command && entry.command->Fingerprint() != command.Fingerprint();
      if (is_another) entry.life.Renew(clock_.Now());
      entry.command = command;
      const bool runs = entry.life.state() == ProcessLife::State::kRunning;
      const bool is_as_wanted = runs && entry.fingerprint == command.Fingerprint();
      if (is_as_wanted || entry.life.state() == ProcessLife::State::kPausing) continue;
      if (runs) spdlog::info("function {}: another command, so another process", name);
      entry.life.Restart(clock_.Now(), entry.grace(), /*is_faulty=*/false);
    }
  });
}

void FunctionProcesses::OnRemoved(const std::string& full_name) {
  Post([this, full_name] {
    const auto found = entries_.find(full_name);
    if (found == entries_.end() || is_stopping_) return;
    Entry& entry = found->second;
    // The name may have been added again meanwhile: the process with the old sessions goes.
    if (entry.command) return entry.life.Restart(clock_.Now(), entry.grace(), /*is_faulty=*/false);
    entry.life.Stop(clock_.Now(), entry.grace());
  });
}

void FunctionProcesses::OnBroken(const std::string& full_name, const std::string& why) {
  Post([this, full_name, why] {
    const auto found = entries_.find(full_name);
    if (found == entries_.end() || !found->second.command || is_stopping_) return;
    Entry& entry = found->second;
    if (entry.life.state() != ProcessLife::State::kRunning) return;
    spdlog::warn("function {}: process {} is started anew: {}", full_name, entry.process->pid(),
                 why);
    entry.life.Restart(clock_.Now(), entry.grace(), /*is_faulty=*/true);
  });
}

std::map<std::string, ProcessSnapshot> FunctionProcesses::Snapshot() const {
  MutexLock lock(&mutex_);
  return snapshot_;
}

void FunctionProcesses::Stop() {
  if (!thread_.joinable()) return;
  Post([this] {
    is_stopping_ = has_commands_ = true;
    for (auto& [name, entry] : entries_) entry.life.Stop(clock_.Now(), entry.grace());
  });
  thread_.join();
}

void FunctionProcesses::Leave() {
  if (!thread_.joinable()) return;
  Post([this] { is_leaving_ = true; });
  thread_.join();
}

void FunctionProcesses::Run() {
  NameThread("processes");
  for (;;) {
    std::vector<Task> tasks;
    {
      MutexLock lock(&mutex_);
      tasks.swap(tasks_);
    }
    for (const Task& task : tasks) task();
    if (is_leaving_) return;
    if (has_commands_) {
      for (auto& [name, entry] : entries_) DoDue(name, entry);
    }
    std::erase_if(entries_, [](const auto& item) {
      return item.second.life.state() == ProcessLife::State::kOver;
    });
    Publish();
    if (is_stopping_ && entries_.empty()) return;
    Wait();
    ReapEnded();
  }
}

void FunctionProcesses::DoDue(const std::string& name, Entry& entry) {
  switch (entry.life.Due(clock_.Now())) {
    case ProcessLife::Action::kNone:
      return;
    case ProcessLife::Action::kStart:
      return entry.command ? StartProcess(name, entry) : entry.life.Stop(clock_.Now(), {});
    case ProcessLife::Action::kTerminate:
      return entry.process->Signal(SIGTERM);
    case ProcessLife::Action::kKill:
      spdlog::warn("function {}: process {} does not end, and is killed", name,
                   entry.process->pid());
      return entry.process->Signal(SIGKILL);
  }
}

void FunctionProcesses::StartProcess(const std::string& name, Entry& entry) {
  auto process = StartInstance(*entry.command, entry.record);
  if (process.ok()) {
    entry.process = *std::move(process);
    entry.fingerprint = entry.command->Fingerprint();
    entry.life.OnStarted(clock_.Now());
    spdlog::info("function {}: process {} is started", name, entry.process->pid());
    return;
  }
  entry.last_end = std::string(process.status().message());
  spdlog::error("function {}: no process: {}", name, entry.last_end);
  entry.life.OnEnded(clock_.Now());
}

void FunctionProcesses::ReapEnded() {
  for (auto& [name, entry] : entries_) {
    std::string why;
    if (!entry.process || !entry.process->HasEnded(why)) continue;
    unlink(entry.record.c_str());
    spdlog::log(is_stopping_ ? spdlog::level::info : spdlog::level::warn,
                "function {}: process {} has ended: {}", name, entry.process->pid(), why);
    entry.process.reset();
    entry.last_end = why;
    entry.life.OnEnded(clock_.Now());
  }
}

void FunctionProcesses::Publish() {
  std::map<std::string, ProcessSnapshot> snapshot;
  for (const auto& [name, entry] : entries_) {
    snapshot[name] = {.state = NameOf(entry.life.state()),
                      .pid = entry.process ? entry.process->pid() : 0,
                      .restarts = entry.life.restarts(),
                      .last_end = entry.last_end};
  }
  MutexLock lock(&mutex_);
  snapshot_ = std::move(snapshot);
}

void FunctionProcesses::Wait() {
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
  TimePoint until = TimePoint::max();
  for (const auto& [name, entry] : entries_) {
    if (entry.process) polled.push_back({entry.process->descriptor(), POLLIN, 0});
    if (has_commands_) until = std::min(until, entry.life.next());
  }
  poll(polled.data(), polled.size(), PollTimeout(until, clock_.Now()));
  eventfd_t ignored = 0;
  eventfd_read(wake_.get(), &ignored);
}

void AddProcesses(const std::map<std::string, ProcessSnapshot>& processes, NodeSnapshot& node) {
  // The first that holds for any instance.
  const auto rank = [](const std::string& state) {
    return state == "pausing" ? 0 : state == "stopping" ? 1 : 2;
  };
  for (FunctionSnapshot& function : node.functions) {
    int count = 0;
    for (const auto& [full_name, process] : processes) {
      const std::size_t slash = std::min(full_name.find('/'), full_name.size());
      if (full_name.compare(0, slash, function.name) != 0) continue;
      for (InstanceSnapshot& instance : function.instances) {
        if (full_name.compare(std::min(slash + 1, full_name.size()), std::string::npos,
                              instance.name) == 0) {
          instance.process = process;
        }
      }
      ProcessSnapshot& all = function.process;
      const std::uint64_t restarts = all.restarts + process.restarts;
      if (count++ == 0 || rank(process.state) < rank(all.state)) all = process;
      all.restarts = restarts;
      if (count > 1) all.pid = 0;
    }
  }
}

}  // namespace torpor::server
