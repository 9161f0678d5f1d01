#include "server/router/body_spool.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "server/router/loop_event.h"

namespace torpor::server {
namespace {

// So that a large file that is being closed does not stop every other body.
constexpr std::size_t kDiskThreads = 2;

bool TakeOf(Bytes bytes, Bytes limit, Bytes& used) {
  if (used > limit || bytes > limit - used) return false;
  used += bytes;
  return true;
}

void TryFolder(const std::shared_ptr<SpoolFile>& file) {
  const absl::Status status = file->Write(0, "x");
  if (!status.ok()) {
    spdlog::warn("long bodies of requests will be refused: {}", std::string(status.message()));
  }
}

}  // namespace

struct BodySpool::Wait {
  explicit Wait(boost::asio::io_context& io) : event(io) {}

  LoopEvent event;
  std::optional<absl::Status> status;
};

BodySpool::BodySpool(boost::asio::io_context& io, const RouterConfig& config,
                     RequestMetrics& metrics)
    : io_(io),
      metrics_(metrics),
      link_(std::make_shared<LoopLink>(io)),
      disk_threads_(kDiskThreads) {
  Configure(config);
  metrics_.OnBodies(used_);
}

BodySpool::~BodySpool() {
  link_->Cut();
  disk_threads_.join();
}

void BodySpool::Configure(const RouterConfig& config) {
  limits_ = {.memory = config.request_memory, .disk = config.spool_limit};
  metrics_.OnBodyLimits(limits_);
  folder_ = config.spool_dir;
  if (tried_folder_ == folder_) return;
  tried_folder_ = folder_;
  boost::asio::post(disk_threads_, [file = MakeFile()] { TryFolder(file); });
}

bool BodySpool::TakeMemory(Bytes bytes) {
  if (!TakeOf(bytes, limits_.memory, used_.memory)) return false;
  metrics_.OnBodies(used_);
  return true;
}

bool BodySpool::TakeDisk(Bytes bytes) {
  if (!TakeOf(bytes, limits_.disk, used_.disk)) return false;
  metrics_.OnBodies(used_);
  return true;
}

void BodySpool::GiveBack(const BodyBytes& taken) {
  used_.memory -= taken.memory;
  used_.disk -= taken.disk;
  metrics_.OnBodies(used_);
}

boost::asio::awaitable<absl::Status> BodySpool::OnDisk(std::function<absl::Status()> work) {
  const auto wait = std::make_shared<Wait>(io_);
  // The wait is destroyed on the loop's thread, or with the loop.
  boost::asio::post(disk_threads_,
                    [link = link_, weak = std::weak_ptr(wait), work = std::move(work)]() mutable {
                      absl::Status status = work();
                      work = nullptr;
                      link->Post([weak, status = std::move(status)] {
                        const auto still_there = weak.lock();
                        if (!still_there) return;
                        still_there->status = status;
                        still_there->event.Notify();
                      });
                    });
  while (!wait->status) co_await wait->event.Wait();
  co_return *wait->status;
}

void BodySpool::Discard(std::shared_ptr<SpoolFile> file) {
  boost::asio::post(disk_threads_, [file = std::move(file)]() mutable { file.reset(); });
}

}  // namespace torpor::server
