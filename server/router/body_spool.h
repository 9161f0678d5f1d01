#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/config/config.h"
#include "server/router/body_bytes.h"
#include "server/router/loop_link.h"
#include "server/router/request_metrics.h"
#include "server/router/spool_file.h"

namespace torpor::server {

// The node's room for bodies of requests: accounts of memory and of disk space, and threads for the
// disk, so that the router's own thread never waits for a file. Used on the router's thread.
class BodySpool {
 public:
  // `metrics` gets the accounts, and must outlive the spool.
  BodySpool(boost::asio::io_context& io, const RouterConfig& config, RequestMetrics& metrics);
  // Waits for what the disk does.
  ~BodySpool();
  BodySpool(const BodySpool&) = delete;
  BodySpool& operator=(const BodySpool&) = delete;

  // Makes the config's limits and folder the spool's. Bodies stay where they are. Tries the folder,
  // and logs a warning if files cannot be kept there.
  void Configure(const RouterConfig& config);

  // Take room for `bytes`, until GiveBack. False, and nothing is taken, beyond the limit.
  bool TakeMemory(Bytes bytes);
  bool TakeDisk(Bytes bytes);
  // Gives back what was taken.
  void GiveBack(const BodyBytes& taken);
  const BodyBytes& used() const { return used_; }
  const BodyBytes& limits() const { return limits_; }

  // Returns a new file in the folder.
  std::shared_ptr<SpoolFile> MakeFile() const { return std::make_shared<SpoolFile>(folder_); }
  // Runs `work` on a thread of the disk's and returns the result. `work` must own all that is used
  // there: the caller may be gone before the end.
  boost::asio::awaitable<absl::Status> OnDisk(std::function<absl::Status()> work);
  // Closes the file on a thread of the disk's, as the end of a large file takes time.
  void Discard(std::shared_ptr<SpoolFile> file);

 private:
  struct Wait;

  boost::asio::io_context& io_;
  RequestMetrics& metrics_;
  const std::shared_ptr<LoopLink> link_;
  std::optional<std::string> tried_folder_;
  std::string folder_;
  BodyBytes limits_;
  BodyBytes used_;
  boost::asio::thread_pool disk_threads_;
};

}  // namespace torpor::server
