#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "server/controller/model/instance_lives.h"
#include "server/controller/node_snapshot.h"
#include "server/processes/instance_command.h"
#include "server/processes/process_life.h"
#include "server/supervisor/child_process.h"

namespace torpor::server {

// Keeps the processes of instances with a command running, each started again when it ends, after
// longer and longer pauses if it ends soon. Processes outlive torpord, and are adopted by the next
// one. A thread of its own; thread-safe, and blocks nobody but in Stop.
class FunctionProcesses final : public InstanceLives {
 public:
  using Commands = std::map<std::string, InstanceCommand>;  // by FullNameOf
  struct Options {
    std::string record_dir;  // of the processes; survives torpord, not the machine
    RestartPauses::Options pauses{.first = std::chrono::milliseconds(100),
                                  .longest = std::chrono::seconds(30),
                                  .healthy_after = std::chrono::seconds(10)};
    // Whether the sessions of adopted processes go on. Otherwise adopted processes are ended, and
    // new ones started.
    bool sessions_go_on = true;
  };

  // Adopts the processes that an earlier torpord has left, and ends those without a command. Starts
  // no process before SetCommands. Fails if record_dir cannot be made.
  static absl::StatusOr<std::unique_ptr<FunctionProcesses>> Start(Options options,
                                                                  const Commands& commands);
  ~FunctionProcesses() override;  // Leave()

  // From now on these are the commands. A process of another command is ended, and one of this
  // command started. A process without a command lives until OnRemoved, since requests may run.
  void SetCommands(const Commands& commands);
  void OnRemoved(const std::string& full_name) override;
  void OnBroken(const std::string& full_name, const std::string& why) override;

  std::map<std::string, ProcessSnapshot> Snapshot() const;

  // Ends all processes, by force once the grace of each has passed. Idempotent.
  void Stop();
  // Leaves all processes to the next torpord. Idempotent.
  void Leave();

 private:
  struct Entry {
    Entry(std::string record_path, const RestartPauses::Options& pauses, TimePoint now)
        : record(std::move(record_path)), life(pauses, now) {}

    const std::string record;
    ProcessLife life;
    std::optional<InstanceCommand> command;  // nullopt: not wanted any more
    std::string fingerprint;                 // of the running process
    std::unique_ptr<ChildProcess> process;
    std::string last_end;

    Duration grace() const;
  };
  using Task = std::function<void()>;  // on the thread

  explicit FunctionProcesses(Options options);
  void Adopt(const Commands& commands);
  void Post(Task task);
  void Run();
  void Wait();
  void DoDue(const std::string& name, Entry& entry);
  void StartProcess(const std::string& name, Entry& entry);
  void ReapEnded();
  void Publish();
  Entry& EntryOf(const std::string& name);
  std::string RecordOf(const std::string& name) const;

  const Options options_;
  const SteadyClock clock_;
  const UniqueFd wake_;
  std::map<std::string, Entry> entries_;  // the thread's
  bool has_commands_ = false;             // the thread's
  bool is_stopping_ = false;              // the thread's
  bool is_leaving_ = false;               // the thread's

  mutable Mutex mutex_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, ProcessSnapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Adds what is known of processes to the snapshot, of an instance's to its function's, too.
void AddProcesses(const std::map<std::string, ProcessSnapshot>& processes, NodeSnapshot& node);

}  // namespace torpor::server
