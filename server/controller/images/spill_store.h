#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/files.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/spill_figures.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Moves images between host memory and files on a disk. The files are of use to this torpord and
// the next, not after the machine's death. On the controller's thread.
class SpillStore {
 public:
  struct Options {
    std::string folder;
    Bytes limit = 0;              // of all files; 0: no image is spilled
    Files& disk = SystemFiles();  // outlives the object
  };
  using Then = std::function<void(const absl::Status&)>;

  // All references must outlive the object.
  SpillStore(const Options& options, ExecutorTable& executors, TaskLoop& loop)
      : folder_(options.folder), executors_(executors), loop_(loop), disk_(options.disk) {
    figures_.limit = options.limit;
  }

  bool is_on() const { return figures_.limit > 0; }
  // Whether an image of so many bytes may be spilled now: for a while after a failure none is.
  bool TakesNow(Bytes bytes) const;

  // Part of a step of a session whose image is in host memory and on no GPU: moves the image to its
  // file. Aborted, with the image where it was, if NoteWanted was called meanwhile.
  void Spill(const SessionPtr& session, const Then& then);
  // The image of the session is needed soon.
  static void NoteWanted(ClientSession& session) { session.memory.spill.is_wanted = true; }
  // Part of a step of a session whose image is on the disk: moves the image to host memory.
  // DataLoss or Unavailable if the file cannot be read: the image is lost.
  void BringBack(const SessionPtr& session, const Then& then);

  // The session has ended.
  void Remove(ClientSession& session);
  // The session of an earlier torpord has its image on the disk.
  void Adopt(const ClientSession& session);
  // Removes all files of sessions that were not adopted. Blocks.
  void RemoveUnknown() const;

  const SpillFigures& figures() const { return figures_; }

 private:
  std::string PathOf(SessionId session) const;
  void Write(const SessionPtr& session, const Then& then);
  void OnWritten(const SessionPtr& session, SpilledImage image, const Then& then);
  // The image stays in host memory, and so do others for a while.
  void OnWriteFailed(const SessionPtr& session, const absl::Status& why, const Then& then);
  void GiveBack(const SessionPtr& session, const TaskLoop::Task& then);
  // Lets all executors unpin pages that the image has lost: later copies would come from there.
  // Ends executors that do not.
  void Unpin(const SessionPtr& session, const TaskLoop::Task& then);
  void OnRead(const SessionPtr& session, const absl::Status& status, const Then& then);
  void NoteOnDisk(const ClientSession& session);
  // The file is needed no more.
  void Drop(ClientSession& session);
  static void Count(SpillFigures::Moves& moves, Bytes bytes, Duration duration);

  const std::string folder_;
  ExecutorTable& executors_;
  TaskLoop& loop_;
  Files& disk_;
  std::set<std::string> paths_;  // of the files
  SpillFigures figures_;
  TimePoint paused_until_{};  // after a failure
};

}  // namespace torpor::server
